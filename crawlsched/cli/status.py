"""``crawlsched status``: what the database knows of a collection, and how its bandwidth is used."""

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crawlsched.cli.members import owner_of_all, say_sharing, sharing, status_of_all
from crawlsched.cli.planning import freshness
from crawlsched.cli.recent import visits_since, visits_together
from crawlsched.cli.sources import worth
from crawlsched.cli.stores import open_stores
from crawlsched.cli.target import Target, common_options, find_target
from crawlsched.cli.wording import say_count, say_duration, say_past, say_share, say_table, say_trust
from crawlsched.settings import format_bandwidth

if TYPE_CHECKING:
    from crawlsched.cli.planning import Freshness
    from crawlsched.estimators.sampled_share import Estimate
    from crawlsched.pages.counts import PageCounts
    from crawlsched.store import Host, LeaseRow, Source, Store, StoredPlan
from crawlsched.cli.parsing import examples

__all__ = ["add_parser", "report", "say"]

# So many of the best and of the worst sources are shown; --json has them all.
_SHOWN_SOURCES = 5
_SHOWN_HOSTS = 5
# Of so many pages all are counted, which takes a second. Of more the counts are those of the newest plan.
_ALL_COUNTED = 500_000


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "status",
        help="pages, freshness, use of the bandwidth, sources of announcements",
        parents=[common_options()],
        epilog=examples("crawlsched status --database sqlite:///crawlsched.db"),
    )
    parser.add_argument(
        "--count",
        action="store_true",
        help="count the pages of a large collection now (2 s a million); otherwise they are those of the newest plan",
    )
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gather everything, of all shards where there are several."""
    target = find_target(arguments)
    now = time.time()
    stores = open_stores(target)
    try:
        # The newest plan of a shard may say how many pages there were before it was one.
        counts = arguments.count or stores.shared is not None
        parts = [_of_store(store, target, now, counts) for store in stores]
        shared = None if stores.shared is None else sharing(stores.shared)
    finally:
        stores.close()
    statuses = [part["status"] for part in parts]
    status = statuses[0] if shared is None else status_of_all(shared)
    crawls = statuses if shared is None else shared["members"]
    fresh = _fresh([part["freshness"] for part in parts])
    sources = [source for part in parts for source in part["sources"]]
    replanned = [part["replanned_at"] for part in parts if part["replanned_at"] is not None]
    return {
        "collection": stores.name,
        "shard": target.shard or 0,
        "database": stores.database.name,
        # A running crawl may have said something since `now` was read.
        "time": max(now, *(status.get(name) or 0.0 for name in ("last_sent_at", "paused_since"))),
        "owner": parts[0]["owner"] if shared is None else owner_of_all(shared, parts),
        "shared": shared,
        "pages": _pages([part["counts"] for part in parts]),
        "pages_counted_at": min((at for part in parts if (at := part["counted_at"]) is not None), default=None),
        "expected_freshness": None if fresh is None else fresh.share,
        "freshness_error": None if fresh is None else fresh.error,
        "freshness_pages": {
            "wanted": sum(part["freshness"].n_all for part in parts),
            "failing": sum(part["freshness"].n_failing for part in parts),
        },
        "last_sent_at": status.get("last_sent_at"),
        "paused_since": status.get("paused_since"),
        "rests": bool(status.get("rests")),
        "budget": {name: status.get(name) for name in ("bandwidth", "dispatched", "resolved", "slots")},
        "threshold": status.get("threshold"),
        "policy": _policy(next((said["planner"] for said in statuses if said.get("planner")), {})),
        "replanned_at": min(replanned, default=None),
        "last_hour": visits_together([part["last_hour"] for part in parts]),
        "last_day": visits_together([part["last_day"] for part in parts]),
        "hosts": [host for part in parts for host in part["hosts"]],
        "failing_hosts": {
            row.host: row.counts["failing"] for part in parts for row in part["host_rows"] if row.counts.get("failing")
        },
        "withheld": _withheld([host for part in parts for host in part["host_rows"]]),
        "first_copies": _sums([said.get("first_copies") or {} for said in crawls]),
        "growth": [said["growth"]["says"] for said in crawls if said.get("growth")],
        "not_data": _sums([said.get("not_data") or {} for said in crawls]),
        "failing_callbacks": _sums([said.get("failing_callbacks") or {} for said in crawls]),
        "sources": sorted(sources, key=lambda source: (*worth(source), source["pages"]), reverse=True),
    }


def _of_store(store: "Store", target: Target, now: float, count: bool) -> dict[str, Any]:
    """Gather what one store has."""
    from crawlsched.sources.source_quality import VISITS

    owner = store.owner()
    sources = [source for source in store.reader.sources() if source.kind != "robots"]
    plan = store.plans.newest()
    counts, counted_at = _counted(store, None if count else plan)
    visits = store.reader.signal_observations(0.0, VISITS)
    host_rows = list(store.reader.hosts())
    return {
        "status": owner.status if owner is not None else {},
        "owner": _owner(owner, store.clock()),
        "freshness": freshness(store, target, now),
        "counts": counts,
        "counted_at": counted_at,
        "replanned_at": None if plan is None else plan.data.get("time"),
        "last_hour": visits_since(store, now - 3600.0),
        "last_day": visits_since(store, now - 86_400.0),
        "host_rows": host_rows,
        "hosts": _hosts(host_rows),
        "sources": [_source(source, counts.sources.get(source.source, 0), visits) for source in sources],
    }


def _counted(store: "Store", plan: "StoredPlan | None") -> "tuple[PageCounts, float | None]":
    """Count the pages, as of now; of very many, say what was counted for a plan, if there is one, and when that was."""
    from crawlsched.pages.counts import PageCounts

    if plan is not None and "page_counts" in plan.data and store.reader.next_page() > _ALL_COUNTED:
        found = plan.data["page_counts"]
        return PageCounts(found["states"], dict(found["sources"]), found["hosts"]), plan.made_at
    return _all_counted(store.reader.counts()), None


def _sums(counted: "Sequence[Mapping[str, Any]]") -> dict[str, Any]:
    """Add up counts by name."""
    together: dict[str, Any] = {}
    for counts in counted:
        for name, n in counts.items():
            together[name] = together.get(name, 0) + n
    return together


def _policy(planner: dict[str, Any]) -> dict[str, Any]:
    """Say by which crawl value slots go, and which estimator, with what parameters, learns change rates."""
    name, parameters = planner.get("estimator", (None, ()))
    return {"crawl_value": planner.get("crawl_value"), "estimator": name, "parameters": dict(parameters)}


def _hosts(rows: "Sequence[Host]") -> list[dict[str, Any]]:
    """Describe the hosts of which something was learned: what they serve in the place of pages, whose headers lie."""
    from crawlsched.content.validators import standings

    described = [
        {
            "host": host.host,
            "wrong_pages": len(host.counts.get("wrong_pages", ())),
            "validators": standings(host.counts.get("validators", {})),
        }
        for host in rows
        if host.counts
    ]
    return [host for host in described if host["wrong_pages"] or host["validators"]]


def _withheld(rows: "Sequence[Host]") -> dict[str, dict[str, int]]:
    """Count what did not reach the spider: reason to host to number."""
    counted: dict[str, dict[str, int]] = {}
    for host in rows:
        for reason, row in host.counts.get("withheld", {}).items():
            counted.setdefault(reason, {})[host.host] = row["n"]
    return counted


def _source(source: "Source", n_pages: int, visits: dict[str, Any]) -> dict[str, Any]:
    from crawlsched.sources.source_quality import named, quality_of

    return {
        "source": source.source,
        "kind": source.kind,
        "url": source.url,
        "name": named(source),
        "host": source.host,
        "pages": n_pages,
        **quality_of(source, visits),
        "polled_at": source.polled_at,
        "next_poll_at": source.next_poll_at,
        "problems": source.problems,
    }


def _owner(owner: "LeaseRow | None", now: float) -> dict[str, Any] | None:
    if owner is None:
        return None
    return {
        "running": owner.is_held(now),
        "spider": owner.spider,
        "host": owner.host,
        "pid": owner.pid,
        "started_at": owner.started_at,
        "heartbeat_at": owner.heartbeat_at,
        "released_at": owner.released_at,
    }


def _fresh(parts: "Sequence[Freshness]") -> "Estimate | None":
    """Say how fresh the collection is, by importance, with its standard error if only a sample was looked at."""
    from numpy import concatenate

    from crawlsched.estimators.sampled_share import estimated

    fresh, importance = (concatenate([getattr(part, name) for part in parts]) for name in ("fresh", "importance"))
    return estimated(fresh, importance, sum(part.n_all for part in parts))


def _all_counted(rows: "Sequence[tuple[str, int, int, int]]") -> "PageCounts":
    from crawlsched.pages import STATE_NAMES
    from crawlsched.pages.counts import PageCounts

    states, sources = dict.fromkeys(STATE_NAMES[1:], 0), Counter[int]()
    for _, state, source, n in rows:
        states[STATE_NAMES[state]] += n
        sources[source] += n
    return PageCounts(states, sources, len({host for host, *_ in rows}))


def _pages(counted: "Sequence[PageCounts]") -> dict[str, Any]:
    states = _sums([counts.states for counts in counted])
    return {"total": sum(states.values()), "hosts": sum(counts.hosts for counts in counted), "states": states}


def say(report: dict[str, Any]) -> str:
    """Put it on one screen."""
    now = report["time"]
    lines = [f"{report['collection']}  ({report['database']})"]
    lines += [f"  {_say_owner(report['owner'], now)}"] if report["shared"] is None else say_sharing(report["shared"])
    lines += [*_say_sending(report, now), ""]
    lines += [*_say_pages(report, now), ""]
    lines += _say_budget(report)
    lines += _say_hosts(report)
    lines += _say_held_back(report)
    # An index of sitemaps covers no page itself; --json has it.
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
    """Say when the last request went out: a crawl that lives and one that crawls are two things."""
    if not (report["owner"] or {}).get("running"):
        return (
            ["  paused; the next crawl sends nothing until `crawlsched bandwidth resume`"]
            if report["paused_since"]
            else []
        )
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
    return [*lines, *_say_first_copies(report["first_copies"])]


def _say_first_copies(known: dict[str, Any]) -> list[str]:
    """Say how many pages wait for their first copy, and when all will have it at this pace."""
    if not known.get("waiting"):
        return []
    pace = known["per_second"]
    until = f"; all have one in {say_duration(known['waiting'] / pace)}" if pace else ""
    made = f"{known['made']:,} made by this crawl, {format_bandwidth(pace) if pace else 'none'} lately"
    return [f"  first copies: {known['waiting']:,} wait, {made}{until}"]


def _say_budget(report: dict[str, Any]) -> list[str]:
    budget = report["budget"]
    bandwidth = budget["bandwidth"]
    lines = [f"bandwidth {'not known yet' if bandwidth is None else format_bandwidth(bandwidth)}"]
    slots = {name: n for name, n in (budget["slots"] or {}).items() if name != "paid"}
    if total := sum(slots.values()):
        said = ", ".join(f"{name.replace('_', ' ')} {say_share(n / total)}" for name, n in slots.items())
        lines.append(f"  slots of this crawl: {said}")
    policy = report["policy"]
    if (policy["crawl_value"] or "posterior", policy["estimator"] or "posterior") != ("posterior", "posterior"):
        given = "".join(f", {name} = {value}" for name, value in policy["parameters"].items())
        lines.append(f"  policy: {policy['crawl_value']}; change rates by {policy['estimator'] or 'posterior'}{given}")
    rows = [["", "visits", "changes found", "per 100 visits"]]
    for name, recent in (("last hour", report["last_hour"]), ("last day", report["last_day"])):
        per_100 = recent["changes_per_100"]
        numbers = [f"{recent['visits']:,}", f"{recent['changes']:,}", "-" if per_100 is None else f"{per_100:.1f}"]
        rows.append([name, *numbers])
    return lines + say_table(rows, right="lrrr")


def _say_hosts(report: dict[str, Any]) -> list[str]:
    """Say what deserves a look: hosts that fail, pages served in the place of others, and headers that lie."""
    from crawlsched.web.vitals import say_failing

    failing = report["failing_hosts"]
    lines = [say_failing(host, failing[host], report["time"]) for host in list(failing)[:_SHOWN_HOSTS]]
    if len(failing) > _SHOWN_HOSTS:
        lines.append(f"and {len(failing) - _SHOWN_HOSTS:,} more hosts fail")
    wrong = report["last_day"]["outcomes"].get("wrong", 0)
    if wrong:
        names = [host["host"] for host in report["hosts"] if host["wrong_pages"]]
        lines.append(f"another page served in {say_count(wrong, 'visit')} of the last day, by {_some(names)}")
    for name in ("ETag", "Last-Modified"):
        lying = [host["host"] for host in report["hosts"] if host["validators"].get(name) == "lying"]
        if lying:
            lines.append(f"{name} stays the same when pages change, and is not believed, at {_some(lying)}")
    return ["", *lines] if lines else []


def _say_held_back(report: dict[str, Any]) -> list[str]:
    """Say what does not reach the spider, and which of its callbacks need a look."""
    lines = list(report["growth"])
    for reason, hosts in sorted(report["withheld"].items()):
        if reason != "known":  # that is how it should be
            names = sorted(hosts, key=lambda host: -hosts[host])
            lines.append(f"held back {say_count(sum(hosts.values()), 'time')} ({reason}), of {_some(names)}")
    for callback, n in report["failing_callbacks"].items():
        lines.append(f"the callback {callback} raised {say_count(n, 'time')} in this crawl, or its items did")
    for callback, n in report["not_data"].items():
        lines.append(f"{say_count(n, 'request')} for {callback} cannot be written down, and are crawled once")
    return ["", *lines, "`crawlsched withheld` has the pages"] if lines else []


def _some(names: list[str]) -> str:
    """Name the first few, and say how many more there are."""
    more = len(names) - _SHOWN_HOSTS
    return ", ".join(names[:_SHOWN_HOSTS]) + (f" and {more:,} more" if more > 0 else "") if names else "hosts"


def _say_sources(sources: list[dict[str, Any]]) -> list[str]:
    """Say the best and the worst, and how many stand between them."""
    best = sources[:_SHOWN_SOURCES]
    worst = sources[_SHOWN_SOURCES:][-_SHOWN_SOURCES:]
    rows = [["precision", "recall", "pages", "source"]]
    rows += [_source_row(source) for source in best]
    if between := len(sources) - len(best) - len(worst):
        rows.append(["", "", "", f"... {between:,} more ..."])
    rows += [_source_row(source) for source in worst]
    return ["sources of announcements, best first", *say_table(rows, right="rrrl")]


def _source_row(source: dict[str, Any]) -> list[str]:
    problems = f"  ({', '.join(source['problems'])})" if source["problems"] else ""
    precision = say_trust(source["precision"], source["precision_interval"], source["unknown"])
    recall = say_trust(source["recall"], source["recall_interval"])
    return [precision, recall, f"{source['pages']:,}", f"{source['name']}{problems}"]
