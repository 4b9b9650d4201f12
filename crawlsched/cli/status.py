"""``crawlsched status``: the state of a collection, and the use of its bandwidth."""

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crawlsched.cli.members import owner_of_all, say_sharing, sharing, status_of_all
from crawlsched.cli.sources import described, worth
from crawlsched.cli.stores import open_stores
from crawlsched.jobs.stored_planners import freshness
from crawlsched.settings import Settings, format_bandwidth
from crawlsched.wording import or_dash, say_count, say_duration, say_past, say_rate, say_share, say_table, say_trust

if TYPE_CHECKING:
    from crawlsched.store import Host, Store
    from crawlsched.store.lease import LeaseRow

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]

# At most this many hosts, best sources and worst sources are shown; --json lists all.
_SHOWN = 5
# Counting this number of pages takes a second. For more pages, the newest plan's counts are shown.
_ALL_COUNTED = 500_000


HELP = "pages, freshness, use of the bandwidth, sources of announcements"
EXAMPLES = ("crawlsched status --database sqlite:///crawlsched.db",)
OPTIONS = ()


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the status of all shards together."""
    now = time.time()
    with open_stores(arguments) as stores:
        parts = [_of_store(store, stores.settings_of(store), now) for store in stores]
        shared = None if stores.shared is None else sharing(stores.shared)
    statuses = [part["status"] for part in parts]
    status = statuses[0] if shared is None else status_of_all(shared)
    crawls = statuses if shared is None else shared["members"]
    host_rows = [host for part in parts for host in part["hosts"]]
    sources = [source for part in parts for source in part["sources"]]
    planner: dict[str, Any] = next((known["planner"] for known in statuses if known.get("planner")), {})
    estimator, parameters = planner.get("estimator", (None, ()))
    return {
        "collection": stores.name,
        "shard": stores.target.shard or 0,
        "database": stores.database.name,
        # The crawl may have written later times after `now` was read.
        "time": max(now, *(status.get(name) or 0.0 for name in ("last_sent_at", "paused_since"))),
        "owner": parts[0]["owner"] if shared is None else owner_of_all(shared, parts),
        "shared": shared,
        "pages": _pages([part["counts"] for part in parts]),
        "pages_counted_at": _earliest(parts, "counted_at"),
        **_fresh(parts),
        **{name: status.get(name) for name in ("last_sent_at", "paused_since", "threshold")},
        "rests": bool(status.get("rests")),
        "budget": {name: status.get(name) for name in ("bandwidth", "dispatched", "resolved", "slots")},
        "policy": {
            "crawl_value": planner.get("crawl_value"),
            "estimator": estimator,
            "parameters": dict(parameters),
        },
        "replanned_at": _earliest(parts, "replanned_at"),
        "last_hour": _visits_together([part["last_hour"] for part in parts]),
        "last_day": _visits_together([part["last_day"] for part in parts]),
        "hosts": _hosts(host_rows),
        "failing_hosts": {row.host: row.counts["failing"] for row in host_rows if row.counts.get("failing")},
        "withheld": _withheld(host_rows),
        **{name: _sums(crawls, name) for name in ("first_copies", "not_data", "failing_callbacks")},
        "growth": [known["growth"] for known in crawls if known.get("growth")],
        "sources": sorted(sources, key=lambda source: (*worth(source), source["pages"]), reverse=True),
    }


def _of_store(store: "Store", settings: Settings, now: float) -> dict[str, Any]:
    from crawlsched.store.records import last_plan

    owner, plan = store.owner(), last_plan(store)
    counts, counted_at = _counted(store)
    return {
        "status": owner.status if owner is not None else {},
        "owner": _owner(owner, store.clock()),
        "freshness": freshness(store, settings, now),
        "counts": counts,
        "counted_at": counted_at,
        "replanned_at": None if plan is None else plan.get("time"),
        "last_hour": _visits_since(store, now - 3600.0),
        "last_day": _visits_since(store, now - 86_400.0),
        "hosts": list(store.reader.hosts()),
        "sources": [{**source, "pages": counts["sources"].get(source["source"], 0)} for source in described(store)],
    }


def _counted(store: "Store") -> tuple[dict[str, Any], float | None]:
    """Count the pages. For very many pages, return the counts of the newest plan, if any, and the plan's time."""
    from crawlsched.pages import STATE_NAMES
    from crawlsched.store.records import last_plan

    plan = last_plan(store)
    if plan is not None and "page_counts" in plan and store.reader.next_page() > _ALL_COUNTED:
        found = plan["page_counts"]
        return {**found, "sources": dict(found["sources"])}, plan.get("time")
    states, sources, hosts = dict.fromkeys(STATE_NAMES[1:], 0), Counter[int](), set()
    for host, state, source, n in store.reader.counts():
        states[STATE_NAMES[state]] += n
        sources[source] += n
        hosts.add(host)
    return {"states": states, "sources": sources, "hosts": len(hosts)}, None


def _earliest(parts: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return min((part[name] for part in parts if part[name] is not None), default=None)


def _sums(statuses: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    together: Counter[str] = Counter()
    for status in statuses:
        together.update(status.get(name) or {})
    return dict(together)


def _visits_since(store: "Store", since: float) -> dict[str, Any]:
    from sqlalchemy import func, select

    from crawlsched.store.models import observations as table

    wanted = (
        select(table.c.outcome, func.count().label("n"), func.sum(table.c.changed).label("changed"))
        .where(table.c.shard == store.key[0], table.c.collection == store.key[1], table.c.time >= since)
        .group_by(table.c.outcome)
        .order_by(table.c.outcome)
    )
    with store.database.reading() as connection:
        rows = connection.execute(wanted).all()
    return {"outcomes": {row.outcome: row.n for row in rows}, "changes": sum(int(row.changed or 0) for row in rows)}


def _visits_together(counted: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    outcomes, changes = _sums(counted, "outcomes"), sum(one["changes"] for one in counted)
    visits = sum(outcomes.values())
    per_100 = 100 * changes / visits if visits else None
    return {"visits": visits, "changes": changes, "changes_per_100": per_100, "outcomes": outcomes}


def _hosts(rows: "Sequence[Host]") -> list[dict[str, Any]]:
    """Return the hosts that served wrong pages, and the hosts whose validators were tested."""
    from crawlsched.crawl.validators import standings

    described = [
        {
            "host": host.host,
            "wrong_pages": len(host.counts.get("wrong_pages", ())),
            "validators": standings(host.counts.get("validators", {})),
        }
        for host in rows
    ]
    return [host for host in described if host["wrong_pages"] or host["validators"]]


def _withheld(rows: "Sequence[Host]") -> dict[str, dict[str, int]]:
    """Count how often pages were held back from the spider, by reason and host."""
    counted: dict[str, dict[str, int]] = {}
    for host in rows:
        for reason, row in host.counts.get("withheld", {}).items():
            counted.setdefault(reason, {})[host.host] = row["n"]
    return counted


def _owner(owner: "LeaseRow | None", now: float) -> dict[str, Any] | None:
    if owner is None:
        return None
    names = ("spider", "host", "pid", "started_at", "heartbeat_at", "released_at")
    return {"running": owner.is_held(now), **{name: getattr(owner, name) for name in names}}


def _fresh(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the freshness, weighted by importance, and its standard error if only a sample is known."""
    from numpy import concatenate

    from crawlsched.freshness import estimated

    fresh, importance, wanted, failing = zip(*[part["freshness"] for part in parts], strict=True)
    share, error = estimated(concatenate(fresh), concatenate(importance), sum(wanted))
    return {
        "expected_freshness": share,
        "freshness_error": error,
        "freshness_pages": {"wanted": sum(wanted), "failing": sum(failing)},
    }


def _pages(counted: Sequence[dict[str, Any]]) -> dict[str, Any]:
    states = _sums(counted, "states")
    return {"total": sum(states.values()), "hosts": sum(counts["hosts"] for counts in counted), "states": states}


def say(report: dict[str, Any]) -> str:
    """Say the status on one screen."""
    now = report["time"]
    lines = [f"{report['collection']}  ({report['database']})"]
    lines += [f"  {_say_owner(report['owner'], now)}"] if report["shared"] is None else say_sharing(report["shared"])
    lines += [*_say_sending(report, now), "", *_say_pages(report, now), "", *_say_budget(report)]
    lines += [*_say_hosts(report), *_say_held_back(report)]
    # A sitemap index names no pages itself, so only --json lists it.
    if shown := [source for source in report["sources"] if source["pages"] or source["problems"]]:
        lines += ["", *_say_sources(shown)]
    return "\n".join(lines)


def _say_owner(owner: dict[str, Any] | None, now: float) -> str:
    if owner is None:
        return "never crawled"
    who = f"spider {owner['spider']!r}, pid {owner['pid']} on {owner['host']}"
    if owner["running"]:
        beat = say_duration(max(now - owner["heartbeat_at"], 0.0))
        return f"crawling for {say_duration(now - owner['started_at'])} ({who}; last sign of life {beat} ago)"
    if owner["released_at"] is None:
        return f"not crawling; {who} broke off, its last sign of life {say_past(owner['heartbeat_at'], now)}"
    return f"not crawling; the last crawl ended {say_past(owner['released_at'], now)} ({who})"


def _say_sending(report: dict[str, Any], now: float) -> list[str]:
    """Say when the last request was sent, since a running crawl may send nothing."""
    if not (report["owner"] or {}).get("running"):
        paused = "  paused; the next crawl sends nothing until `crawlsched bandwidth resume`"
        return [paused] if report["paused_since"] else []
    last = report["last_sent_at"]
    sent = "nothing sent yet" if last is None else f"last request {say_duration(max(now - last, 0.0))} ago"
    if report["paused_since"] is not None:
        return [f"  paused since {say_past(report['paused_since'], now)}; {sent}"]
    return [f"  nothing goes out at this hour (CRAWLSCHED_BANDWIDTH); {sent}" if report["rests"] else f"  {sent}"]


def _say_pages(report: dict[str, Any], now: float) -> list[str]:
    from crawlsched.web.vitals import of_pages

    pages, error, counted_at = report["pages"], report["freshness_error"], report["pages_counted_at"]
    rows = [[name, f"{n:,}", say_share(n / pages["total"])] for name, n in pages["states"].items() if n]
    counted = "" if counted_at is None else f", counted {say_past(counted_at, now)}"
    lines = [f"{say_count(pages['total'], 'page')} on {say_count(pages['hosts'], 'host')}{counted}"]
    if rows:
        lines += say_table(rows, right="lrr")
    sampled = f" ±{100 * error:.1f} (of a sample)" if error else ""
    over = of_pages(report["freshness_pages"])
    lines.append(f"  expected to be fresh, by importance: {say_share(report['expected_freshness'])}{over}{sampled}")
    if waiting := report["first_copies"].get("waiting"):
        made, pace = report["first_copies"]["made"], report["first_copies"]["per_second"]
        until = f"; all have one in {say_duration(waiting / pace)}" if pace else ""
        lately = say_rate(pace) if pace else "none"
        lines.append(f"  first copies: {waiting:,} wait, {made:,} made by this crawl, {lately} lately{until}")
    return lines


def _say_budget(report: dict[str, Any]) -> list[str]:
    budget = report["budget"]
    bandwidth = budget["bandwidth"]
    lines = [f"bandwidth {'not known yet' if bandwidth is None else format_bandwidth(bandwidth)}"]
    slots = {name: n for name, n in (budget["slots"] or {}).items() if name != "paid"}
    if total := sum(slots.values()):
        used = ", ".join(f"{name.replace('_', ' ')} {say_share(n / total)}" for name, n in slots.items())
        lines.append(f"  slots of this crawl: {used}")
    policy = report["policy"]
    crawl_value, estimator = policy["crawl_value"] or "posterior", policy["estimator"] or "posterior"
    if (crawl_value, estimator) != ("posterior", "posterior"):
        given = "".join(f", {name} = {value}" for name, value in policy["parameters"].items())
        lines.append(f"  policy: {crawl_value}; change rates by {estimator}{given}")
    rows = [["", "visits", "changes found", "per 100 visits"]]
    for name in ("last_hour", "last_day"):
        recent = report[name]
        numbers = [f"{recent['visits']:,}", f"{recent['changes']:,}", or_dash(recent["changes_per_100"], "{:.1f}")]
        rows.append([name.replace("_", " "), *numbers])
    return lines + say_table(rows, right="lrrr")


def _say_hosts(report: dict[str, Any]) -> list[str]:
    """Name hosts that fail, hosts that served wrong pages, and headers that are not believed."""
    from crawlsched.web.vitals import say_failing

    failing = report["failing_hosts"]
    lines = [say_failing(host, failing[host], report["time"]) for host in list(failing)[:_SHOWN]]
    if len(failing) > _SHOWN:
        lines.append(f"and {len(failing) - _SHOWN:,} more hosts fail")
    if wrong := report["last_day"]["outcomes"].get("wrong", 0):
        names = [host["host"] for host in report["hosts"] if host["wrong_pages"]]
        lines.append(f"another page served in {say_count(wrong, 'visit')} of the last day, by {_some(names)}")
    for name in ("ETag", "Last-Modified"):
        if lying := [host["host"] for host in report["hosts"] if host["validators"].get(name) == "lying"]:
            lines.append(f"{name} stays the same when pages change, and is not believed, at {_some(lying)}")
    return ["", *lines] if lines else []


def _say_held_back(report: dict[str, Any]) -> list[str]:
    """Say which pages did not reach the spider, and which callbacks failed."""
    lines = list(report["growth"])
    for reason, hosts in sorted(report["withheld"].items()):
        if reason != "known":  # requests for known pages are no fault
            names = sorted(hosts, key=lambda host: -hosts[host])
            lines.append(f"held back {say_count(sum(hosts.values()), 'time')} ({reason}), of {_some(names)}")
    for callback, n in report["failing_callbacks"].items():
        lines.append(f"the callback {callback} failed {say_count(n, 'time')} in this crawl, or a pipeline behind it")
    for callback, n in report["not_data"].items():
        lines.append(f"{say_count(n, 'request')} for {callback} cannot be written down, and are crawled once")
    return ["", *lines, "`crawlsched withheld` has the pages"] if lines else []


def _some(names: list[str]) -> str:
    """List the first names, and say how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "") if names else "hosts"


def _say_sources(sources: list[dict[str, Any]]) -> list[str]:
    """List the best and the worst sources, and say how many are between them."""
    best, others = sources[:_SHOWN], sources[_SHOWN:]
    worst = others[-_SHOWN:]
    rows = [["precision", "recall", "pages", "source"], *map(_source_row, best)]
    if between := len(others) - len(worst):
        rows.append(["", "", "", f"... {between:,} more ..."])
    return ["sources of announcements, best first", *say_table([*rows, *map(_source_row, worst)], right="rrrl")]


def _source_row(source: dict[str, Any]) -> list[str]:
    problems = f"  ({', '.join(source['problems'])})" if source["problems"] else ""
    precision = say_trust(source["precision"], source["precision_interval"], source["unknown"])
    recall = say_trust(source["recall"], source["recall_interval"])
    return [precision, recall, f"{source['pages']:,}", f"{source['name']}{problems}"]
