"""``crawlsched why URL``: what is known of a page, what a crawl of it is worth, when it comes, what decides that."""

import argparse
import math
import time
from typing import TYPE_CHECKING, Any

from crawlsched.cli.planning import before, planner_of_page, settings_of, waiting_since
from crawlsched.cli.stores import open_stores
from crawlsched.cli.target import Target, common_options, find_target, owner_now
from crawlsched.cli.wording import (
    say_count,
    say_duration,
    say_interval,
    say_moment,
    say_past,
    say_share,
    say_table,
    say_trust,
)
from crawlsched.exceptions import CrawlschedError, UnknownPage
from crawlsched.settings import Settings
from crawlsched.web.words import BINDS

if TYPE_CHECKING:
    from crawlsched.store import ObservationRow, PageFacts, Store
from crawlsched.cli.parsing import examples

__all__ = ["add_parser", "report", "say"]

_SHOWN_VISITS = 8
# An announcement is likely by a time until which so many are expected: in two of five cases one has come.
_LIKELY = 0.5

_NOTHING_YET = "which has announced nothing yet"


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "why",
        help="everything about one page, and why it is not crawled now",
        parents=[common_options()],
        epilog=examples("crawlsched why https://example.com/news/1"),
    )
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--visits", metavar="N", type=int, default=_SHOWN_VISITS, help="how many of its last visits")
    parser.add_argument("--diff", action="store_true", help="what changed in it last, where its texts are kept")
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gather everything, of all pages that the URL has."""
    target = find_target(arguments)
    now = time.time()
    stores = open_stores(target)
    try:
        store, page = stores.find_page(arguments.url)
        url = _facts(store, page, arguments.url).url
        first, *others = [
            _of_page(store, target, number, arguments, now) for number in sorted({page, *store.reader.pages_of(url)})
        ]
        return {**first, "variants": others}
    finally:
        stores.close()


def _facts(store: "Store", page: int, url: str) -> "PageFacts":
    facts = store.reader.facts([page])[0]
    if facts is None:  # forgotten between two questions
        raise UnknownPage(url, store.name)
    return facts


def _of_page(store: "Store", target: Target, page: int, arguments: argparse.Namespace, now: float) -> dict[str, Any]:
    from crawlsched.planner import explain
    from crawlsched.planner.starvation import wait_after_rounds

    facts = _facts(store, page, arguments.url)
    planner = planner_of_page(store, target, page, now)
    threshold = planner.threshold
    if planner.plan is not None:
        # Soon after a first crawl pages of little value go, and not for long.
        planner.threshold = max(threshold, planner.plan.threshold)
    explanation = {**explain(planner, 0, now).to_dict(), "threshold": threshold}
    settings = settings_of(store, target)
    patience, bandwidth = _patience(store), _status(store).get("bandwidth")
    round_ends = goes_at = now - explanation["elapsed"] + patience
    if bandwidth and round_ends < min(explanation["likely_time"], explanation["deadline"]):
        # Such pages go in one slot of some, and others wait, too.
        goes_at = max(round_ends, now) + wait_after_rounds(waiting_since(store, now - patience), bandwidth)
    columns = {name: column[0] for block in store.load(pages=[page]) for name, column in block.items()}
    rest_until = _rest_until(store, facts.url)
    if rest_until > now and explanation["binds"] in ("value", "overdue"):
        explanation["binds"] = "host"
    next_at = _next_crawl_at(explanation, min(explanation["deadline"], goes_at), rest_until, now)
    n_before = 0
    if explanation["binds"] == "value":
        # Others wait, too: all that are worth more than what goes when none does.
        level = max(explanation["crawl_value"], planner.threshold)
        n_worth_more = before(store, target, level, now)
        they_have_gone = now + (n_worth_more / bandwidth if bandwidth else 0.0)
        if they_have_gone >= next_at:
            n_before, next_at = n_worth_more, max(they_have_gone, next_at)
    return {
        "url": facts.url,
        "variant": facts.variant,
        "collection": store.name,
        # A running crawl may have visited it since `now` was read.
        "time": max(now, float(columns["crawled_at"])),
        **_owned(store),
        **explanation,
        "page": page,
        "host_rests_until": rest_until if rest_until > now else None,
        "round_ends": round_ends if math.isfinite(round_ends) else None,
        "next_crawl_at": next_at,
        "n_before": n_before,
        **_history(columns),
        "undelivered": facts.pending_fingerprint is not None,
        "moved_to": facts.moved_to,
        "recipe": facts.recipe,
        **_places(store, facts),
        **_host_notes(store, facts.url),
        **_rules(settings, facts.url),
        "visits": [_visit(row) for row in store.reader.observations_of(page, arguments.visits)],
        **_announced_by(store, page, int(columns["source"])),
        **({"diff": _difference(store, page, facts.url)} if arguments.diff else {}),
    }


def _difference(store: "Store", page: int, url: str) -> dict[str, Any]:
    """Compare the last two texts that are kept of a page."""
    from crawlsched.content.kept_texts import differences

    kept = store.reader.text_of(page)
    if kept is None or kept.before is None:
        what = "No text of" if kept is None else "Only one text of"
        raise CrawlschedError(
            f"{what} {url} is kept; texts are kept of changes that are found with CRAWLSCHED_KEPT_TEXT_BYTES above 0, "
            "and it takes two to compare."
        )
    return {
        "before_seen_at": kept.before_seen_at,
        "seen_at": kept.seen_at,
        "lines": differences(kept.before, kept.text, 1),
    }


def _owned(store: "Store") -> dict[str, Any]:
    """Say whether it is crawled now, and by whom where several processes share the collection."""
    owner = owner_now(store)
    if owner is None or not owner.is_shared:
        return {"running": owner is not None}
    return {"running": True, "shard": store.key[0], "crawled_by": {"host": owner.host, "pid": owner.pid}}


def _places(store: "Store", facts: Any) -> dict[str, Any]:
    """What is left out on pages of its template, what it is suggested to leave out, and what of it was told last."""
    from crawlsched.change_detection import Trace
    from crawlsched.content.learned import places_of, template_and_site

    if facts.recipe is None:
        return {"ignored": [], "suggested": [], "told": []}
    places = list(places_of(store.reader.noise_mask, [template_and_site(facts.url, facts.recipe)[0]]))
    given = Trace.unpacked(facts.block_sketch)
    return {
        "ignored": [place for place in places if "suggestion" not in place],
        "suggested": [place["suggestion"] for place in places if "suggestion" in place],
        "told": [] if given is None else given.changes,
    }


def _host_notes(store: "Store", url: str) -> dict[str, Any]:
    """What is thought of the host's validators."""
    from crawlsched.content.validators import standings
    from crawlsched.store import host_of

    host = store.reader.host(host_of(url))
    return {"validators": standings({} if host is None else host.counts.get("validators", {}))}


def _rules(settings: Settings, url: str) -> dict[str, Any]:
    """What the settings say of this page, and of its host."""
    from crawlsched.collection.page_rules import PageRules
    from crawlsched.store import host_of

    rule = PageRules(settings.pages).of(url)
    shares = dict(settings.host_shares)
    return {
        "rule": None if rule is None else rule._asdict(),
        "host_share": shares.get(host_of(url), shares.get("*")),
    }


def _rest_until(store: "Store", url: str) -> float:
    from crawlsched.store import host_of

    host = store.reader.host(host_of(url))
    return 0.0 if host is None else host.rest_until


def _patience(store: "Store") -> float:
    """For how many seconds a page waits at most, by the rounds of the crawl that ran last; inf: there is no limit."""
    from crawlsched.planner.starvation import MAX_CRAWL_ROUNDS

    n_pages, bandwidth = _status(store).get("pages"), _status(store).get("bandwidth")
    return MAX_CRAWL_ROUNDS * n_pages / bandwidth if n_pages and bandwidth else math.inf


def _status(store: "Store") -> dict[str, Any]:
    owner = store.owner()
    return {} if owner is None else owner.status


def _next_crawl_at(explanation: dict[str, Any], deadline: float, rest_until: float, now: float) -> float:
    """When it is crawled again, by the likeliest time and the limits; inf: never."""
    if explanation["binds"] in ("forced", "in_flight"):
        return now
    wanted = min(explanation["likely_time"], deadline)
    return float(max(wanted, explanation["next_allowed"], rest_until, now))


def _history(columns: dict[str, Any]) -> dict[str, Any]:
    return {
        "first_seen": float(columns["first_seen"]),
        "crawled_at": float(columns["crawled_at"]),
        "changed_at": float(columns["changed_at"]),
        "n_crawls": int(columns["n_crawls"]),
        "n_changes": int(columns["n_changes"]),
        "n_errors": int(columns["n_errors"]),
        "n_signals_total": int(columns["n_signals_total"]),
    }


def _visit(row: "ObservationRow") -> dict[str, Any]:
    return {
        "time": row.time,
        "outcome": row.outcome,
        "status": row.status,
        "changed": row.changed,
        "elapsed": row.elapsed,
        "n_signals": row.n_signals + sum(n for _, n in row.further),
        "changed_share": row.changed_share,
        "similarity": row.similarity,
    }


def _announced_by(store: "Store", page: int, first: int) -> dict[str, Any]:
    """Say which sources list the page, and what each has proved to be worth, as `crawlsched sources` says it."""
    from crawlsched.sources.source_quality import VISITS, named, quality_of

    listed = {number: (lastmod, n) for number, lastmod, n in store.reader.announcements_of(page)}
    sources = [source for source in store.reader.sources() if source.source in listed or source.source == first]
    visits = store.reader.signal_observations(0.0, VISITS) if sources else {}
    rows = []
    for source in sources:
        lastmod, n_announced = listed.get(source.source, (None, 0))
        said = {"kind": source.kind, "url": source.url, "name": named(source), "lastmod": lastmod}
        rows.append({**said, "n_announced": n_announced, **quality_of(source, visits)})
    # What the planner takes an announcement for before any was heard is nothing that was learned.
    is_heard = any(row["heard"] for row in rows)
    return {"announced_by": rows, **({} if is_heard else {"precision": None, "recall": None})}


def say(report: dict[str, Any]) -> str:
    """Put it on one screen, one for each page that the URL has."""
    return "\n\n".join(map(_say_page, [report, *report["variants"]]))


def _say_page(report: dict[str, Any]) -> str:
    now = report["time"]
    paragraphs = {
        "changes": [_say_changes(report), *_say_found(report, now)],
        "announced": _say_announced(report, now),
        "copy": [_say_copy(report, now)],
        "worth now": _say_worth(report),
        "next crawl": [_say_next(report, now)],
        "decided by": [_say_binds(report)],
        "rules": _say_rules(report),
    }
    variant = "" if report["variant"] is None else f", variant {report['variant']!r}"
    lines = [f"{report['url']}  (page {report['page']} of {report['collection']!r}, {report['state']}{variant})", ""]
    lines += say_table([["" if n else name, line] for name, said in paragraphs.items() for n, line in enumerate(said)])
    if difference := report.get("diff"):
        seen = (
            f"{mark} {say_past(difference[at], now)}" for mark, at in (("---", "before_seen_at"), ("+++", "seen_at"))
        )
        lines += ["", *seen, *(difference["lines"] or ["(nothing that is kept of them differs)"])]
    if report["visits"]:
        lines += ["", "last visits", *_say_visits(report["visits"], now)]
    return "\n".join(lines)


def _say_changes(report: dict[str, Any]) -> str:
    if report["n_crawls"] < 2:
        return "not known yet; it was seen once" if report["n_crawls"] else "not known yet; it was not seen yet"
    low, high = report["change_rate_interval"]
    between = f"{say_duration(1 / high)} and {say_duration(1 / low)}"
    return (
        f"{say_interval(report['change_rate'])} as far as is known; if it changes at random, between {between} (90 %)"
    )


def _say_found(report: dict[str, Any], now: float) -> list[str]:
    found = f"{say_count(report['n_changes'], 'change')} found in {say_count(report['n_crawls'], 'visit')}"
    if report["n_changes"]:
        found += f", the last {say_past(report['changed_at'], now)}"
    lines = [found]
    if report["undelivered"]:
        lines.append("its last change has not been through the spider's callback and pipelines yet")
    for known in report["ignored"]:
        place = f"{known['place']}, which {known['evidence']}, and said last: {known['said']}"
        lines.append(f"ignored since {say_past(known['since'], now)}: {place}")
    lines += report["suggested"]
    lines += [f"told last: {place}: {before!r} became {after!r}" for place, before, after in report["told"]]
    if report["visits"] and report["visits"][0]["outcome"] == "wrong":
        lines.append("at its last visit another page (a log-in wall, an error page) was served in its place")
    lying = [name for name, standing in report["validators"].items() if standing == "lying"]
    if lying:
        lines.append(f"its host's {' and '.join(lying)} did not move when pages changed, and count for nothing")
    if report["moved_to"]:
        lines.append(f"it moved to {report['moved_to']}")
    return lines


def _say_announced(report: dict[str, Any], now: float) -> list[str]:
    lines = []
    for by in report["announced_by"]:
        dated = _say_lastmod(by["lastmod"], now)
        told = f"by {by['name']}, {dated}; {say_count(by['n_announced'], 'announcement')} so far"
        lines.append(told if by["n_announced"] else f"listed in {by['name']}, {dated}, {_NOTHING_YET}")
        recall = say_trust(by["recall"], by["recall_interval"])
        if by["precision"] is None:
            lines.append(f"  how far its announcements can be trusted is not known yet ({by['unknown']})")
        else:
            lines.append(f"  precision {say_trust(by['precision'], by['precision_interval'])}, recall {recall}")
    if report["signal_weight"] > 0:
        if report["precision"] is not None:
            where = {"source": "", "site": " on this site"}
            believed = f"{say_share(report['precision'])}, by what was learned{where[report['precision_of']]}"
            lines.append(f"the crawl takes an announcement of it to be true with a probability of {believed}")
        lines.append(f"{say_count(report['n_signals'], 'announcement')} since the last crawl")
    return lines or ["by nobody"]


def _say_lastmod(lastmod: float | None, now: float) -> str:
    if lastmod is None:
        return "without a date"
    # Below zero is the mark of a text, whose changes count all the same.
    return "with a date that cannot be read" if lastmod < 0.0 else f"dated {say_past(lastmod, now)}"


def _say_copy(report: dict[str, Any], now: float) -> str:
    if report["n_crawls"] == 0:
        return f"none yet; known since {say_past(report['first_seen'], now)}"
    fresh = say_share(report["expected_freshness"])
    return f"of {say_past(report['crawled_at'], now)}; it is still fresh with a probability of {fresh}"


def _say_worth(report: dict[str, Any]) -> list[str]:
    importance = "" if report["importance"] == 1 else f", its importance being {report['importance']:g}"
    worth = f"{report['crawl_value']:.3g}{importance}"
    compared = (
        f"pages worth {report['threshold']:.3g} or more go"
        if report["threshold"]
        else "there is no plan yet to compare it with"
    )
    return [f"{worth}; {compared}"]


def _say_next(report: dict[str, Any], now: float) -> str:
    when = report["next_crawl_at"]
    if when is None or math.isinf(when):
        return "never, unless a change is announced or the bandwidth grows: others are worth more"
    text = "as soon as a slot is free" if when <= now else f"about {say_moment(when, now)}"
    limits = (report["wake_time"], report["deadline"], report["round_ends"])
    without = min(at for at in limits if at is not None)
    if report["n_before"]:
        text += f", after {say_count(report['n_before'], 'page')} that are worth more"
    elif when < without and report["signal_rate"] * (when - now) > _LIKELY:
        text += (
            f", when an announcement is likely; {'never' if math.isinf(without) else say_moment(without, now)} without"
        )
    return text if report["running"] else f"{text} (no crawl is running now)"


def _say_binds(report: dict[str, Any]) -> str:
    """Say what decides; of a wait also what it is for."""
    said = BINDS[report["binds"]]
    if report["binds"] != "not_before" or not report["visits"]:
        return said
    last = report["visits"][0]
    ended = f"answered {last['status']}" if last["status"] is not None else f"ended as {last['outcome']!r}"
    return f"{said} (it {ended})"


def _say_rules(report: dict[str, Any]) -> list[str]:
    """Say what CRAWLSCHED_PAGES and CRAWLSCHED_HOST_SHARES have for it; nothing if they have nothing."""
    lines = []
    if (rule := report["rule"]) is not None:
        said = []
        if rule["importance"] is not None:
            said.append(f"importance {rule['importance']:g} where nobody states another")
        if rule["min_interval"] is not None:
            said.append(f"no crawl within {say_duration(rule['min_interval'])} of the last")
        if rule["max_interval"] is not None:
            said.append(f"a crawl at least every {say_duration(rule['max_interval'])}")
        lines.append(f"CRAWLSCHED_PAGES, {rule['where']!r}: {', '.join(said)}")
    if report["host_share"] is not None:
        lines.append(f"CRAWLSCHED_HOST_SHARES: at most {say_share(report['host_share'])} of the bandwidth for its host")
    return lines


def _say_visits(visits: list[dict[str, Any]], now: float) -> list[str]:
    rows = [["when", "what it found", "status", "after", "announcements", "of its text"]]
    for visit in visits:
        after = "" if visit["elapsed"] is None else say_duration(visit["elapsed"])
        status = "" if visit["status"] is None else str(visit["status"])
        other = "" if visit["similarity"] is None else f"{say_share(1.0 - visit['similarity'])} changed"
        rows.append([say_past(visit["time"], now), visit["outcome"], status, after, str(visit["n_signals"]), other])
    if not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    return say_table(rows, right="lllrrr"[: len(rows[0])])
