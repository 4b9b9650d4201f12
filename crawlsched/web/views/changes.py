"""Changes: the feed, newest first, with removed and new lines if the texts are stored."""

from __future__ import annotations

from urllib.parse import quote

from crawlsched.feed import Change, Feed
from crawlsched.web import words
from crawlsched.web.html import Html, Node, link_to, tag
from crawlsched.web.views import Context, choice, empty, section
from crawlsched.web.words import SHOWN

__all__ = ["change_line", "changes", "difference"]


def changes(context: Context) -> Html:
    """Return the main part of the page."""
    found = Feed(context.store).newest(SHOWN, diff=True)
    links = choice({"Atom": "changes.atom", "JSONL": "changes.jsonl"})
    lines = [
        tag("li", change_line(change, context.now, is_short=False), difference(change.diff) if change.diff else None)
        for change in found
    ]
    if not lines:
        return tag("main", section("Changes", empty("Nothing was delivered yet."), more=links))
    how_to = tag(
        "p",
        "To follow them: ",
        tag("code", f"crawlsched changes --since {found[0].cursor} --follow"),
        "; with CRAWLSCHED_KEPT_TEXT_BYTES above 0 this list shows the lines that changed.",
        class_="faint",
    )
    return tag("main", section("Changes", how_to, tag("ol", *lines, class_="lines feed"), more=links))


def change_line(change: Change, now: float, *, is_short: bool = True) -> list[Node]:
    """Return a change as a line of a list."""
    _, _, rest = change.url.partition("://")
    host, slash, path = rest.partition("/")
    other = None
    if change.similarity is not None and not is_short:
        other = tag("span", f"{100 * (1 - change.similarity):.0f} % changed", class_="faint")
    elif change.kind not in ("new", "changed") and not is_short:
        other = tag("span", change.sentence, class_="faint")
    return [
        tag("span", change.kind, class_=f"badge {change.kind}"),
        tag(
            "a",
            [tag("b", host), slash + path] if host else change.url,
            href=f"page?url={quote(change.url, safe='')}",
        ),
        other,
        words.moment(change.time, now),
        link_to(change.url, "↗"),
    ]


def difference(lines: list[str]) -> Html:
    """Return removed and new lines."""
    styles = {"+": "came", "-": "went", "@": "place"}
    return tag("pre", *[tag("span", f"{line}\n", class_=styles.get(line[:1], "same")) for line in lines], class_="diff")
