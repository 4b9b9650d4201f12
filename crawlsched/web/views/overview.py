"""Overview: does it do its work, how fresh are the pages, and what became of the requests, now and over time."""

from __future__ import annotations

from typing import Any

from crawlsched.feed import Feed
from crawlsched.web import words
from crawlsched.web.chart import ChartLine, chart, spark
from crawlsched.web.html import Html, tag
from crawlsched.web.views.changes import change_line
from crawlsched.web.views.context import Context, card, empty, section
from crawlsched.web.views.sources import source_link, trust_bar
from crawlsched.web.vitals import Vitals, checks, of_pages, vitals

__all__ = ["overview"]

_SPANS = {"1h": 3600.0, "24h": 86_400.0, "7d": 7 * 86_400.0, "90d": 90 * 86_400.0}
_MOST_POINTS = 360
_NEWEST = 12
_SHOWN_SOURCES = 6
# Between two samples of one crawl; and the least time in which counts say what they come to in an hour.
_LONGEST_GAP, _SHORTEST = 300.0, 30.0


def overview(context: Context) -> Html:
    """Return the middle of the page."""
    seen = vitals(context.store)
    span = context.query.get("span", "24h")
    span = span if span in _SPANS else "24h"
    rows = with_gaps(joined(context.store.samples.since(context.now - _SPANS[span]), _MOST_POINTS))
    hour = [row for row in rows if row["time"] >= context.now - 3600.0] if span != "1h" else rows
    return tag(
        "main",
        _health(seen),
        *([tag("p", growth["says"], class_="ill")] if (growth := seen.status.get("growth")) else []),
        tag("div", *_cards(context, seen, rows, hour), class_="cards"),
        tag(
            "div",
            tag("div", _freshness(rows, span), _budget(rows), _work(rows), class_="wide-column"),
            tag(
                "div",
                _changes(context),
                _sources(context),
                _resting(context, seen),
                _withheld(seen),
                class_="side-column",
            ),
            class_="columns",
        ),
    )


def joined(rows: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Join neighbouring samples until there are few enough to draw."""
    at_once = -(-len(rows) // most)
    if at_once <= 1:
        return rows
    from crawlsched.store.samples import joined as join

    return [join(rows[start : start + at_once]) for start in range(0, len(rows), at_once)]


def with_gaps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put a row of which nothing is known where no crawl ran: no line is drawn over it."""
    found: list[dict[str, Any]] = []
    for row in rows:
        began = row["time"] - (row["seconds"] or 0.0)
        if found and began - found[-1]["time"] > _LONGEST_GAP:
            found.append({**dict.fromkeys(row), "time": began})
        found.append(row)
    return found


def _health(seen: Vitals) -> Html:
    found = checks(seen)
    is_well = all(check.is_well for check in found)
    said = [tag("span", check.sentence, class_="well" if check.is_well else "ill") for check in found]
    return tag("div", *said, class_=f"health {'well' if is_well else 'ill'}")


def _cards(context: Context, seen: Vitals, rows: list[dict[str, Any]], hour: list[dict[str, Any]]) -> list[Html]:
    sample, status = seen.sample or (rows[-1] if rows else {}), seen.status
    error = sample.get("freshness_error")
    slots, used = (sum(_slots(row) for row in hour), sum(row["used"] or 0 for row in hour))
    changes, visits = (sum(row[name] or 0 for row in hour) for name in ("changes", "visits"))
    bandwidth = status.get("bandwidth")
    waiting = status.get("first_copies") or {}
    return [
        card(
            "fresh now, estimated",
            words.share(sample.get("expected_freshness")),
            [
                spark([row["expected_freshness"] for row in rows], "c1"),
                f"{f'± {words.share(error, 2)}' if error else ''}{of_pages(sample)}",
            ],
            style="main",
        ),
        card(
            "requests, last hour",
            words.share(used / slots if slots else None),
            f"of {words.short(bandwidth)}/s" if bandwidth else None,
        ),
        card("changes, last hour", words.number(changes), f"in {words.number(visits)} visits", href="changes"),
        card("pages", words.short(status.get("pages")), "search, sort, ask why", href="pages"),
        card("wait for a first copy", words.short(waiting.get("waiting")), _pace(waiting)),
        card("not delivered yet", words.number(seen.undelivered), None, style="ill" if seen.undelivered else ""),
        card("hosts failing", words.number(len(seen.failing)), None, href="hosts", style="ill" if seen.failing else ""),
    ]


def _pace(waiting: dict[str, Any]) -> str | None:
    """Say when all have their first copy."""
    pace = waiting.get("per_second")
    return f"all have one in {words.duration(waiting['waiting'] / pace)}" if pace and waiting["waiting"] else None


def _slots(row: dict[str, Any]) -> float:
    return float(sum(row[name] or 0 for name in ("used", "idle", "no_free_host", "missed")))


def _freshness(rows: list[dict[str, Any]], span: str) -> Html:
    fresh = [row["expected_freshness"] for row in rows]
    known = [value for value in fresh if value is not None]
    low = max(0.0, min(known, default=0.0) - 0.05)
    choice = tag(
        "nav",
        *[tag("a", name, href=f"?span={name}", class_="chosen" if name == span else None) for name in _SPANS],
        class_="choice",
    )
    drawn = chart(
        [float(row["time"]) for row in rows],
        [ChartLine("expected freshness, by importance", "c1", fresh, is_area=True)],
        say_place=_say_time(span),
        say_value=lambda value: words.share(value),
        low=round(low, 2),
        high=1.0,
        label="The share of the importance that was expected to be fresh, over time",
    )
    return section("Freshness", drawn, more=choice)


def _budget(rows: list[dict[str, Any]]) -> Html:
    def line(label: str, name: str, style: str) -> ChartLine:
        values = [100 * (row[name] or 0) / _slots(row) if _slots(row) else None for row in rows]
        return ChartLine(label, style, values)

    lines = [line("used", "used", "c1"), line("idle", "idle", "c5"), line("no free host", "no_free_host", "c3")]
    lines.append(line("missed", "missed", "c4"))
    drawn = chart(
        [float(row["time"]) for row in rows],
        lines,
        say_place=_say_time("24h"),
        say_value=lambda value: f"{value:.3g} %",
        low=0.0,
        high=100.0,
        label="What became of the slots, over time",
    )
    return section("Requests", drawn)


def _work(rows: list[dict[str, Any]]) -> Html:
    def line(label: str, name: str, style: str) -> ChartLine:
        values = [
            3600 * (row[name] or 0) / row["seconds"] if (row["seconds"] or 0.0) >= _SHORTEST else None for row in rows
        ]
        return ChartLine(label, style, values)

    lines = [
        line("changes found", "changes", "c2"),
        line("delivered", "delivered", "c1"),
        line("errors", "errors", "c4"),
    ]
    drawn = chart(
        [float(row["time"]) for row in rows],
        lines,
        say_place=_say_time("24h"),
        say_value=lambda value: f"{words.short(value)}/h",
        low=0.0,
        label="Changes, deliveries and errors an hour, over time",
    )
    return section("Changes an hour", drawn)


def _say_time(span: str) -> Any:
    if span in ("1h", "24h"):
        return lambda time: words.clock(time)[11:16]
    return lambda time: words.clock(time)[5:16]


def _changes(context: Context) -> Html:
    changes = Feed(context.store).newest(_NEWEST)
    links = tag(
        "nav",
        tag("a", "all", href="changes"),
        tag("a", "Atom", href="changes.atom"),
        tag("a", "JSONL", href="changes.jsonl"),
        class_="choice",
    )
    lines = [change_line(change, context.now) for change in changes]
    return section("Newest changes", tag("ul", *lines, class_="lines") if lines else empty("None yet."), more=links)


def _sources(context: Context) -> Html | None:
    """Show the best sources, as the view of sources has them."""
    found = context.reports.sources()["sources"]
    lines = [
        tag(
            "li",
            source_link(source),
            " ",
            trust_bar(source["precision"], source["precision_interval"], source["unknown"]),
        )
        for source in found[:_SHOWN_SOURCES]
    ]
    more = tag("nav", tag("a", f"all {words.number(len(found))}", href="sources"), class_="choice")
    return section("Sources, best first", tag("ul", *lines, class_="lines"), more=more) if lines else None


def _resting(context: Context, seen: Vitals) -> Html | None:
    if not seen.resting:
        return None
    hosts = sorted(seen.resting, key=lambda host: -host.rest_until)[:8]
    lines = [tag("li", tag("b", host.host), f" {words.ago(host.rest_until, context.now)}") for host in hosts]
    return section("Hosts resting", tag("ul", *lines, class_="lines"))


def _withheld(seen: Vitals) -> Html | None:
    from crawlsched.content.withheld import REASONS

    lines = [
        tag("li", tag("b", words.number(n)), f" {reason}: pages that {REASONS.get(reason, '')}")
        for reason, n in sorted(seen.withheld.items(), key=lambda item: -item[1])
        if reason != "known"
    ]
    if not lines:
        return None
    return tag("div", section("Held back", tag("ul", *lines, class_="lines")), id="withheld")
