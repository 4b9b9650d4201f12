"""Sources: the quality of each source of announcements, with its interval."""

from __future__ import annotations

from typing import Any

from crawlsched.web import words
from crawlsched.web.html import Html, Node, link_to, tag
from crawlsched.web.views import Context, empty, section, table
from crawlsched.web.words import SHOWN
from crawlsched.wording import say_trust

__all__ = ["source_link", "sources", "trust_bar"]


def sources(context: Context) -> Html:
    """Return the main part of the page."""
    report = context.reports["sources"]()
    now = context.now
    rows: list[list[Node]] = [
        [
            source_link(source),
            trust_bar(source["precision"], source["precision_interval"], source["unknown"]),
            trust_bar(source["recall"], source["recall_interval"]),
            f"{source['true']:,} of {source['heard']:,}",
            words.moment(source["polled_at"], now),
            ", ".join(f"{kind} {n}" for kind, n in source["problems"].items()) or "–",
        ]
        for source in report["sources"][:SHOWN]
    ]
    if not rows:
        return tag("main", section("Sources", empty("No source of announcements is known yet.")))
    headings = [("source", ""), ("true announcements", ""), ("changes announced", ""), ("true", "r w")]
    headings += [("read", "r"), ("problems", "w")]
    legend = (
        "The best sources come first. The line in a bar is the 95 % interval. True: how many visits "
        "after an announcement found a change."
    )
    return tag("main", section("Sources of announcements", tag("p", legend, class_="faint"), table(headings, rows)))


def source_link(source: dict[str, Any]) -> Node:
    """Return the kind of a source, and its address."""
    kind, _, url = source["name"].rpartition(" ")
    return [tag("span", kind, class_="badge"), " ", link_to(url)] if "://" in url else tag("span", source["name"])


def trust_bar(share: float | None, interval: Any, unknown: str | None = None) -> Html:
    """Return a share as a bar with its interval, or a text that says why the share is not known."""
    said = say_trust(share, interval, unknown)
    if share is None or interval is None:
        return tag("span", said, class_="faint")
    low, high = interval
    picture = tag(
        "svg",
        tag("rect", x="0", y="6", width="100%", height="6", class_="rail"),
        tag("rect", x="0", y="6", width=f"{100 * share:.1f}%", height="6", class_="bar"),
        tag("line", x1=f"{100 * low:.1f}%", x2=f"{100 * high:.1f}%", y1="9", y2="9", class_="interval"),
        class_="trust",
        aria_hidden="true",
    )
    return tag("span", picture, tag("span", said), class_="trusted")
