"""Overview: whether a crawl works, how fresh its pages are, and how its slots are used. Also a list of collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from crawlsched.feed import Feed
from crawlsched.slot_clock import DAY
from crawlsched.store import Store
from crawlsched.store.records import joined, samples_since
from crawlsched.web import words
from crawlsched.web.chart import Line, chart
from crawlsched.web.html import Html, Node, tag
from crawlsched.web.views import Context, card, choice, columns, listed, section, table
from crawlsched.web.views.changes import change_line
from crawlsched.web.vitals import Vitals, checks, of_pages, slots_of, vitals

__all__ = ["collections", "overview"]

_SPANS = {"1h": 3600.0, "24h": DAY, "7d": 7 * DAY, "90d": 90 * DAY}
_MOST_POINTS = 360
# A line breaks off between samples that are more than `_LONGEST_GAP` seconds apart. Counts over less than `_SHORTEST`
# seconds are not drawn.
_LONGEST_GAP, _SHORTEST = 300.0, 30.0


def overview(context: Context) -> Html:
    """Return the main part of the page."""
    seen = vitals(context.store)
    span = asked if (asked := context.query.get("span")) in _SPANS else "24h"
    samples = samples_since(context.store, context.now - _SPANS[span])
    at_once = max(1, -(-len(samples) // _MOST_POINTS))
    rows = with_gaps([joined(samples[start : start + at_once]) for start in range(0, len(samples), at_once)])
    hour = [row for row in rows if row["time"] >= context.now - 3600.0]
    growth = seen.status.get("growth")
    return tag(
        "main",
        _health(seen),
        tag("p", growth, class_="ill") if growth else None,
        tag("div", *_cards(seen, rows, hour), class_="cards"),
        columns(_charts(rows, span), [_changes(context), _withheld(seen)]),
    )


def with_gaps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Insert an empty row where no crawl ran, so that no line is drawn across the gap."""
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


def _cards(seen: Vitals, rows: list[dict[str, Any]], hour: list[dict[str, Any]]) -> list[Html]:
    sample, status = seen.sample or (rows[-1] if rows else {}), seen.status
    error, bandwidth = sample.get("freshness_error"), status.get("bandwidth")
    used, changes, visits = (sum(row[name] or 0 for row in hour) for name in ("used", "changes", "visits"))
    slots = sum(slots_of(row) for row in hour)
    waiting = status.get("first_copies") or {}
    pace = waiting.get("per_second")
    until = None
    if n := waiting.get("waiting"):
        until = f"{words.short(n)} wait for a first copy" + (f", for {words.duration(n / pace)}" if pace else "")
    sure = f"± {words.share(error, 2)}" if error else ""
    return [
        card(
            "fresh now, estimated",
            words.share(sample.get("expected_freshness")),
            f"{sure}{of_pages(sample)}",
            style="main",
        ),
        card(
            "requests, last hour",
            words.share(used / slots if slots else None),
            f"of {words.short(bandwidth)}/s" if bandwidth else None,
        ),
        card("changes, last hour", words.number(changes), f"in {words.number(visits)} visits", href="changes"),
        card("pages", words.short(status.get("pages")), until or "search, sort, ask why", href="pages"),
        card("not delivered yet", words.number(seen.undelivered), None, style="ill" if seen.undelivered else ""),
        card("hosts failing", words.number(len(seen.failing)), None, href="hosts", style="ill" if seen.failing else ""),
    ]


def _charts(rows: list[dict[str, Any]], span: str) -> list[Html]:
    times = [float(row["time"]) for row in rows]
    clock = slice(11, 16) if span in ("1h", "24h") else slice(5, 16)
    fresh = [row["expected_freshness"] for row in rows]
    low = round(max(0.0, min((value for value in fresh if value is not None), default=0.0) - 0.05), 2)

    def part(name: str) -> list[float | None]:
        return [100 * (row[name] or 0) / slots_of(row) if slots_of(row) else None for row in rows]

    def hourly(name: str) -> list[float | None]:
        seconds = [row["seconds"] or 0.0 for row in rows]
        return [3600 * (row[name] or 0) / s if s >= _SHORTEST else None for row, s in zip(rows, seconds, strict=True)]

    slots = {"used": "c1", "idle": "c5", "no_free_host": "c3", "missed": "c4"}
    found = {"changes": "c2", "delivered": "c1", "errors": "c4"}
    spans = choice({name: f"?span={name}" for name in _SPANS}, span)

    def drawn(
        title: str, label: str, lines: Sequence[Line], say: Callable[[float], str], low: float, high: float | None
    ) -> Html:
        say_place, is_first = (lambda time: words.clock(time)[clock]), title == "Freshness"
        shown = chart(
            times, lines, say_place=say_place, say_value=say, low=low, high=high, label=label, has_area=is_first
        )
        return section(title, shown, more=spans if is_first else None)

    of_slots = [(name.replace("_", " "), style, part(name)) for name, style in slots.items()]
    of_changes = [(name, style, hourly(name)) for name, style in found.items()]
    expected = [("expected freshness, by importance", "c1", fresh)]
    label = "Expected freshness by importance, over time"
    a_hour = "Changes, deliveries and errors an hour, over time"
    return [
        drawn("Freshness", label, expected, words.share, low, 1.0),
        drawn("Requests", "Use of the slots, over time", of_slots, "{:.3g} %".format, 0.0, 100.0),
        drawn("Changes an hour", a_hour, of_changes, lambda value: f"{words.short(value)}/h", 0.0, None),
    ]


def _changes(context: Context) -> Html:
    links = choice({"all": "changes", "Atom": "changes.atom", "JSONL": "changes.jsonl"})
    lines = [change_line(change, context.now) for change in Feed(context.store).newest(12)]
    return section("Newest changes", listed(lines, "None yet."), more=links)


def _withheld(seen: Vitals) -> Html | None:
    from crawlsched.crawl.withheld import REASONS

    lines = [
        [tag("b", words.number(n)), f" {reason}: pages that {REASONS.get(reason, '')}"]
        for reason, n in sorted(seen.withheld.items(), key=lambda item: -item[1])
        if reason != "known"
    ]
    return tag("div", section("Held back", listed(lines, "")), id="withheld") if lines else None


def collections(watched: Sequence[tuple[str, str, Store]]) -> Html:
    """Return the main part of the page; `watched` has each collection's name, the path of its views, and its store."""
    rows = [_row(name, path, store) for name, path, store in watched]
    note = tag("p", "Budget and changes are those of the last hour.", class_="faint")
    headings = [("collection", ""), ("expected to be fresh", ""), ("pages", "r"), ("bandwidth", "r w")]
    headings += [("budget used", "r"), ("changes found", "r"), ("not delivered", "r w"), ("hosts resting", "r w")]
    return tag("main", section("Collections", note, table(headings, rows)))


def _row(name: str, path: str, store: Store) -> list[Node]:
    seen = vitals(store)
    ill = [check.sentence for check in checks(seen) if not check.is_well]
    hour = samples_since(store, seen.time - 3600.0)
    used, slots = sum(row["used"] or 0 for row in hour), sum(map(slots_of, hour))
    share = seen.sample.get("expected_freshness")
    bandwidth = seen.status.get("bandwidth")
    return [
        [
            tag("a", tag("b", name), href=f"{path}/"),
            tag("div", "; ".join(ill) or "crawling", class_=f"standing {'ill' if ill else 'well'}"),
        ],
        f"{words.share(share)}{of_pages(seen.sample)}",
        words.short(seen.status.get("pages")),
        f"{words.short(bandwidth)}/s" if bandwidth else "–",
        words.share(used / slots if slots else None),
        words.number(sum(row["changes"] or 0 for row in hour)),
        words.number(seen.undelivered),
        words.number(len(seen.resting)),
    ]
