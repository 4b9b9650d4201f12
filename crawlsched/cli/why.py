"""``crawlsched why URL``: what was learned about a page, when it is crawled next, and why."""

import argparse
import math
import time
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import option, whole_number
from crawlsched.cli.stores import Stores, open_stores, owner_now
from crawlsched.exceptions import CrawlschedError, UnknownPage
from crawlsched.jobs.stored_planners import before, planner_of_page, waiting_since
from crawlsched.settings import Settings
from crawlsched.web.words import BINDS, noted
from crawlsched.wording import (
    say_count,
    say_duration,
    say_interval,
    say_moment,
    say_past,
    say_share,
    say_table,
    say_trust,
)

if TYPE_CHECKING:
    from crawlsched.store import ObservationRow, PageFacts, Store

__all__ = ["EXAMPLES", "HELP", "OPTIONS", "report_of"]

# An announcement counts as likely if the expected number of announcements is above this number. The probability of at
# least one announcement is then 0.4.
_LIKELY = 0.5

_HISTORY = ("first_seen", "crawled_at", "changed_at", "n_crawls", "n_changes", "n_errors", "n_signals_total")
_OF_VISITS = ("time", "outcome", "status", "changed", "elapsed", "changed_share", "similarity")


HELP = "everything about one page, and why it is not crawled now"
EXAMPLES = ("crawlsched why https://example.com/news/1",)
OPTIONS = (
    option("URL", "of the page"),
    option("--visits N", "how many of its last visits (%(default)s)", whole_number(0), default=8),
    option("--diff", "what changed in it last, if its texts are kept"),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    with open_stores(arguments) as stores:
        return report_of(stores, arguments.url, arguments.visits, diff=arguments.diff)


def report_of(stores: Stores, url: str, n_visits: int, *, diff: bool = False) -> dict[str, Any]:
    """Return a report of each page with this URL."""
    now = time.time()
    store, page = stores.find_page(url)
    settings = stores.settings_of(store)
    pages = sorted({page, *store.reader.pages_of(_facts(store, page, url).url)})
    first, *others = [
        {
            **_of_page(store, settings, number, _facts(store, number, url), now),
            "visits": [_visit(row) for row in store.reader.observations_of(number, n_visits)],
            **({"diff": _difference(store, number, url)} if diff else {}),
        }
        for number in pages
    ]
    return {**first, "variants": others}


def _facts(store: "Store", page: int, url: str) -> "PageFacts":
    (facts,) = store.reader.facts([page])
    if facts is None:  # the page was forgotten between two queries
        raise UnknownPage(url, store.name)
    return facts


def _of_page(store: "Store", settings: Settings, page: int, facts: "PageFacts", now: float) -> dict[str, Any]:
    from crawlsched.change_detection.trace import Trace
    from crawlsched.crawl.validators import standings
    from crawlsched.planner import explain
    from crawlsched.store import host_of

    planner = planner_of_page(store, settings, page, now)
    threshold = planner.threshold
    if planner.plan is not None:
        # Soon after the first crawls the crawl's threshold is too low, so the plan's threshold is used if it is higher.
        planner.threshold = max(threshold, planner.plan.threshold)
    explanation = {**explain(planner, 0, now), "threshold": threshold}
    columns = {name: column[0] for block in store.load(pages=[page]) for name, column in block.items()}
    host, owner = next(iter(store.reader.hosts(host_of(facts.url))), None), owner_now(store)
    given = Trace.unpacked(facts.block_sketch) if facts.recipe is not None else None
    is_shared = owner is not None and owner.is_shared
    return {
        "url": facts.url,
        "collection": store.name,
        # A running crawl may have visited the page after `now` was read.
        "time": max(now, float(columns["crawled_at"])),
        "running": owner is not None,
        **(
            {"shard": store.key[0], "crawled_by": {"host": owner.host, "pid": owner.pid}} if owner and is_shared else {}
        ),
        **explanation,
        **_timing(store, settings, explanation, planner.threshold, 0.0 if host is None else host.rest_until, now),
        "page": page,
        **{name: columns[name].item() for name in _HISTORY},
        "undelivered": facts.pending_fingerprint is not None,
        "moved_to": facts.moved_to,
        "recipe": facts.recipe,
        **_places(store, facts),
        "told": [] if given is None else given.changes,
        "validators": standings({} if host is None else host.counts.get("validators", {})),
        **_rules(settings, facts.url),
        **_announced_by(store, page, int(columns["source"])),
    }


def _timing(
    store: "Store", settings: Settings, explanation: dict[str, Any], threshold: float, rest_until: float, now: float
) -> dict[str, Any]:
    """Say when the page is crawled next, and why."""
    from crawlsched.planner.starvation import MAX_CRAWL_ROUNDS, wait_after_rounds

    owner, binds, deadline = store.owner(), explanation["binds"], explanation["deadline"]
    status = {} if owner is None else owner.status
    n_pages, bandwidth = status.get("pages"), status.get("bandwidth")
    # After this time a page is overdue, however little it is worth.
    patience = MAX_CRAWL_ROUNDS * n_pages / bandwidth if n_pages and bandwidth else math.inf
    round_ends = goes_at = now - explanation["elapsed"] + patience
    if bandwidth and round_ends < min(explanation["likely_time"], deadline):
        # Overdue pages get only a part of the slots, so this page waits until other overdue pages were crawled.
        goes_at = max(round_ends, now) + wait_after_rounds(waiting_since(store, now - patience), bandwidth)
    if rest_until > now and binds in ("value", "overdue"):
        binds = "host"
    wanted = min(explanation["likely_time"], deadline, goes_at)
    next_at = float(max(wanted, explanation["next_allowed"], rest_until, now))
    if binds in ("forced", "in_flight"):
        next_at = now
    n_before = 0
    if binds == "value":
        # Pages that are worth more than this page, and more than the threshold, are crawled first.
        n_worth_more = before(store, settings, max(explanation["crawl_value"], threshold), now)
        they_have_gone = now + (n_worth_more / bandwidth if bandwidth else 0.0)
        if they_have_gone >= next_at:
            n_before, next_at = n_worth_more, max(they_have_gone, next_at)
    return {
        "binds": binds,
        "host_rests_until": rest_until if rest_until > now else None,
        "round_ends": round_ends if math.isfinite(round_ends) else None,
        "next_crawl_at": next_at,
        "n_before": n_before,
    }


def _difference(store: "Store", page: int, url: str) -> dict[str, Any]:
    """Compare the last two stored texts of a page."""
    from crawlsched.store.kept_texts import differences

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


def _places(store: "Store", facts: "PageFacts") -> dict[str, Any]:
    """Return the ignored places of the page's template, and the places suggested for ignoring."""
    from crawlsched.crawl.learned import places_of, template_and_site

    if facts.recipe is None:
        return {"ignored": [], "suggested": []}
    places = list(places_of(store.reader.noise_mask, [template_and_site(facts.url, facts.recipe)[0]]))
    return {
        "ignored": [place for place in places if "suggestion" not in place],
        "suggested": [place["suggestion"] for place in places if "suggestion" in place],
    }


def _rules(settings: Settings, url: str) -> dict[str, Any]:
    from crawlsched.crawl.page_rules import PageRules
    from crawlsched.store import host_of

    rule, shares = PageRules(settings.pages).of(url), dict(settings.host_shares)
    return {
        "rule": None if rule is None else rule._asdict(),
        "host_share": shares.get(host_of(url), shares.get("*")),
    }


def _visit(row: "ObservationRow") -> dict[str, Any]:
    return {
        **{name: getattr(row, name) for name in _OF_VISITS},
        "n_signals": row.n_signals + sum(n for _, n in row.further),
    }


def _announced_by(store: "Store", page: int, first: int) -> dict[str, Any]:
    """Return the sources that list the page, each with the quality that `crawlsched sources` shows."""
    from crawlsched.crawl.source_quality import VISITS, named, quality_of

    listed = {number: (lastmod, n) for number, lastmod, n in store.reader.announcements_of(page)}
    sources = [source for source in store.reader.sources() if source.source in listed or source.source == first]
    visits = store.reader.signal_observations(0.0, VISITS) if sources else {}
    rows = []
    for source in sources:
        lastmod, n_announced = listed.get(source.source, (None, 0))
        said = {"kind": source.kind, "url": source.url, "name": named(source), "lastmod": lastmod}
        rows.append({**said, "n_announced": n_announced, **quality_of(source, visits)})
    # Before the first announcement nothing was learned, so no trust is shown.
    is_heard = any(row["heard"] for row in rows)
    return {"announced_by": rows, **({} if is_heard else {"precision": None, "recall": None})}


def say(report: dict[str, Any]) -> str:
    """Say the report of each page with this URL."""
    return "\n\n".join(map(_say_page, [report, *report["variants"]]))


def _say_page(report: dict[str, Any]) -> str:
    now = report["time"]
    paragraphs = {
        "changes": [_say_changes(report), *_say_found(report, now)],
        "announced": _say_announced(report, now),
        "copy": [_say_copy(report, now)],
        "worth now": [_say_worth(report)],
        "next crawl": [_say_next(report, now)],
        "decided by": [_say_binds(report)],
        "rules": _say_rules(report),
    }
    lines = [f"{report['url']}  (page {report['page']} of {report['collection']!r}, {report['state']})", ""]
    lines += say_table([["" if n else name, line] for name, said in paragraphs.items() for n, line in enumerate(said)])
    if difference := report.get("diff"):
        lines += ["", f"--- {say_past(difference['before_seen_at'], now)}"]
        lines += [f"+++ {say_past(difference['seen_at'], now)}", *(difference["lines"] or ["(no kept text differs)"])]
    if report["visits"]:
        lines += ["", "last visits", *_say_visits(report["visits"], now)]
    return "\n".join(lines)


def _say_changes(report: dict[str, Any]) -> str:
    if report["n_crawls"] < 2:
        return "not known yet; it was seen once" if report["n_crawls"] else "not known yet; it was not seen yet"
    low, high = report["change_rate_interval"]
    between = f"between {say_duration(1 / high)} and {say_duration(1 / low)} (90 %)"
    return f"{say_interval(report['change_rate'])} as far as is known; if it changes at random, {between}"


def _say_found(report: dict[str, Any], now: float) -> list[str]:
    found = f"{say_count(report['n_changes'], 'change')} found in {say_count(report['n_crawls'], 'visit')}"
    lines = [f"{found}, the last {say_past(report['changed_at'], now)}" if report["n_changes"] else found]
    for known in report["ignored"]:
        place = f"{known['place']}, which {known['evidence']}; its last text: {known['said']}"
        lines.append(f"ignored since {say_past(known['since'], now)}: {place}")
    return [*lines, *report["suggested"], *noted(report)]


def _say_announced(report: dict[str, Any], now: float) -> list[str]:
    lines = []
    for by in report["announced_by"]:
        dated = _say_lastmod(by["lastmod"], now)
        counted = f"by {by['name']}, {dated}; {say_count(by['n_announced'], 'announcement')} so far"
        nothing = f"listed in {by['name']}, {dated}, which has announced nothing yet"
        lines.append(counted if by["n_announced"] else nothing)
        if by["precision"] is None:
            lines.append(f"  how far its announcements can be trusted is not known yet ({by['unknown']})")
        else:
            precision, recall = (say_trust(by[name], by[f"{name}_interval"]) for name in ("precision", "recall"))
            lines.append(f"  precision {precision}, recall {recall}")
    if report["signal_weight"] > 0:
        if report["precision"] is not None:
            where = {"source": "", "site": " on this site"}[report["precision_of"]]
            believed = f"{say_share(report['precision'])}, by what was learned{where}"
            lines.append(f"the crawl takes an announcement of it to be true with a probability of {believed}")
        lines.append(f"{say_count(report['n_signals'], 'announcement')} since the last crawl")
    return lines or ["by nobody"]


def _say_lastmod(lastmod: float | None, now: float) -> str:
    if lastmod is None:
        return "without a date"
    # A value below zero stands for a text that is no date. A new text is an announcement, too.
    return "with a date that cannot be read" if lastmod < 0.0 else f"dated {say_past(lastmod, now)}"


def _say_copy(report: dict[str, Any], now: float) -> str:
    if report["n_crawls"] == 0:
        return f"none yet; known since {say_past(report['first_seen'], now)}"
    fresh = say_share(report["expected_freshness"])
    return f"of {say_past(report['crawled_at'], now)}; it is still fresh with a probability of {fresh}"


def _say_worth(report: dict[str, Any]) -> str:
    importance = "" if report["importance"] == 1 else f", its importance being {report['importance']:g}"
    threshold = report["threshold"]
    compared = f"pages worth {threshold:.3g} or more go" if threshold else "there is no plan yet to compare it with"
    return f"{report['crawl_value']:.3g}{importance}; {compared}"


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
        later = "never" if math.isinf(without) else say_moment(without, now)
        text += f", when an announcement is likely; {later} without"
    return text if report["running"] else f"{text} (no crawl is running now)"


def _say_binds(report: dict[str, Any]) -> str:
    """Say what decides the time of the next crawl, and why the page has to wait."""
    said = BINDS[report["binds"]]
    if report["binds"] != "not_before" or not report["visits"]:
        return said
    last = report["visits"][0]
    ended = f"answered {last['status']}" if last["status"] is not None else f"ended as {last['outcome']!r}"
    return f"{said} (it {ended})"


def _say_rules(report: dict[str, Any]) -> list[str]:
    lines = []
    if (rule := report["rule"]) is not None:
        intervals = [name for name in ("min_interval", "max_interval") if rule[name] is not None]
        words = [] if rule["importance"] is None else [f"importance {rule['importance']:g}"]
        words += [f"{name} {say_duration(rule[name])}" for name in intervals]
        lines.append(f"CRAWLSCHED_PAGES, {rule['where']!r}: {', '.join(words)}")
    if report["host_share"] is not None:
        lines.append(f"CRAWLSCHED_HOST_SHARES: at most {say_share(report['host_share'])} of the bandwidth for its host")
    return lines


def _say_visits(visits: list[dict[str, Any]], now: float) -> list[str]:
    rows = [["when", "what it found", "status", "after", "announcements", "of its text"]]
    for visit in visits:
        after = "" if visit["elapsed"] is None else say_duration(visit["elapsed"])
        changed = "" if visit["similarity"] is None else f"{say_share(1.0 - visit['similarity'])} changed"
        found = [visit["outcome"], str(visit["status"] or ""), after, str(visit["n_signals"]), changed]
        rows.append([say_past(visit["time"], now), *found])
    if not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    return say_table(rows, right="lllrrr")
