"""A page and its why: its change rate, the value of a visit, the time of the next visit, and its history."""

from __future__ import annotations

from typing import Any

from crawlsched.store.kept_texts import differences
from crawlsched.web import words
from crawlsched.web.html import Html, Node, link_to, tag
from crawlsched.web.views import Context, card, columns, empty, listed, section, table
from crawlsched.web.views.changes import difference
from crawlsched.web.views.sources import source_link, trust_bar
from crawlsched.web.words import SHOWN

__all__ = ["page"]


def page(context: Context) -> Html:
    """Return the main part of the page."""
    report = context.reports["why"](context.query.get("url", ""), SHOWN)
    return tag("main", *[_of(context, one) for one in (report, *report["variants"])])


def _of(context: Context, report: dict[str, Any]) -> Html:
    now, notes = report["time"], words.noted(report)
    title = tag(
        "div",
        tag("h1", report["url"]),
        tag("div", tag("span", report["state"], class_=f"badge {report['state']}"), link_to(report["url"], "open ↗")),
        class_="title",
    )
    return tag(
        "div",
        title,
        tag("div", *_cards(report, now), class_="cards"),
        columns(
            [_difference(context, report), _visits(report["visits"], now)],
            [_announced(report, now), _ignored(report, now), section("To note", listed(notes, "")) if notes else None],
        ),
    )


def _cards(report: dict[str, Any], now: float) -> list[Html]:
    low, high = report["change_rate_interval"]
    between = f"between {words.duration(1 / high)} and {words.duration(1 / low)} (90 %), if at random"
    is_known = report["n_crawls"] > 1
    when = report["next_crawl_at"]
    is_never = when is None or when == float("inf")
    soon = "never, unless announced" if is_never else ("at the next slot" if when <= now else words.ago(when, now))
    threshold = report["threshold"]
    return [
        card(
            "changes",
            words.per_time(report["change_rate"]) if is_known else "not known yet",
            between if is_known else "it takes two visits",
            style="main",
        ),
        card(
            "copy is fresh",
            words.share(report["expected_freshness"]) if report["n_crawls"] else "no copy yet",
            ["of ", words.moment(report["crawled_at"], now)] if report["n_crawls"] else None,
        ),
        card("next crawl", soon, words.BINDS[report["binds"]]),
        card(
            "worth",
            words.short(report["crawl_value"]),
            f"pages worth {words.short(threshold)} or more go" if threshold else "no plan yet",
        ),
        card("changes found", words.number(report["n_changes"]), f"in {words.number(report['n_crawls'])} visits"),
        card("importance", words.short(report["importance"])),
    ]


def _visits(visits: list[dict[str, Any]], now: float) -> Html:
    if not visits:
        return section("Visits", empty("The page was not visited yet."))
    rows: list[list[Node]] = [
        [
            words.moment(visit["time"], now),
            tag("span", visit["outcome"], class_=f"badge {visit['outcome']}"),
            "" if visit["status"] is None else str(visit["status"]),
            words.duration(visit["elapsed"]),
            words.number(visit["n_signals"]),
            "" if visit["similarity"] is None else words.share(1.0 - visit["similarity"], 2),
        ]
        for visit in visits
    ]
    headings = [("when", ""), ("found", ""), ("status", "r w"), ("after", "r"), ("announced", "r")]
    headings.append(("text changed", "r w"))
    return section("Last visit" if len(rows) == 1 else f"Last {len(rows)} visits", table(headings, rows))


def _difference(context: Context, report: dict[str, Any]) -> Html | None:
    kept = context.store.reader.text_of(report["page"])
    if kept is None or kept.before is None:
        return None
    lines = differences(kept.before, kept.text)[:SHOWN] or ["(the stored texts do not differ)"]
    return section("What changed last", difference(lines), more=words.moment(kept.seen_at, report["time"]))


def _announced(report: dict[str, Any], now: float) -> Html:
    lines = [
        [
            source_link(by),
            f" · {words.number(by['n_announced'])} so far" if by["n_announced"] else " · has announced nothing yet",
            None if by["lastmod"] is None or by["lastmod"] < 0 else [" · dated ", words.moment(by["lastmod"], now)],
            tag("div", "true: ", trust_bar(by["precision"], by["precision_interval"], by["unknown"])),
            tag("div", "of all changes: ", trust_bar(by["recall"], by["recall_interval"])),
        ]
        for by in report["announced_by"]
    ]
    return section("Announced by", listed(lines, "No source announces its changes."))


def _ignored(report: dict[str, Any], now: float) -> Html:
    lines = [
        [
            tag("code", known["place"]),
            f", which {known['evidence']}, since ",
            words.moment(known["since"], now),
            f"; its last text: {known['said']}",
        ]
        for known in report["ignored"]
    ]
    return section("Ignored as noise", listed([*lines, *report["suggested"]], "No part of the page counts as noise."))
