"""The views: each makes the main part of a web page from a context. This module has the elements that views share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crawlsched.store import Store
from crawlsched.web.html import Html, Node, tag

__all__ = ["Context", "Reports", "card", "choice", "columns", "empty", "listed", "section", "table"]


#: The slow reports of the command line, in the form that ``--json`` prints: ``why(url, n_visits)``, ``sources()`` and
#: ``whatif()``.
Reports = Mapping[str, Callable[..., dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class Context:
    """The data from which a view is made."""

    store: Store
    reports: Reports
    query: Mapping[str, str]  # the parameters of the address
    now: float  # POSIX seconds, by the clock of the database


def card(name: str, value: Node, note: Node = None, *, style: str = "", href: str | None = None) -> Html:
    """Return a number with its name."""
    inside = [tag("dt", name), tag("dd", value), tag("dd", note, class_="note") if note else None]
    box = tag("dl", *inside, class_=f"card {style}".strip())
    return tag("a", box, href=href, class_="plain") if href else box


def section(title: str, *children: Node, more: Node = None) -> Html:
    """Return a part of a web page."""
    return tag("section", tag("header", tag("h2", title), more), *children, class_="panel")


def table(headings: list[tuple[str, str]], rows: list[list[Node]]) -> Html:
    """Return a table. A heading is a word and its column's style: "r" (flush right) or "w" (only on wide screens)."""
    head = tag("thead", tag("tr", *[tag("th", word, class_=style or None, scope="col") for word, style in headings]))
    body = [
        tag("tr", *[tag("td", cell, class_=style or None) for cell, (_, style) in zip(row, headings, strict=True)])
        for row in rows
    ]
    return tag("div", tag("table", head, tag("tbody", *body)), class_="scroll", tabindex="0")


def empty(sentence: str) -> Html:
    """Return a sentence in place of an empty view."""
    return tag("p", sentence, class_="empty")


def listed(items: Sequence[Node], nothing: str) -> Html:
    """Return items as lines, or a sentence if there are none."""
    return tag("ul", *[tag("li", item) for item in items], class_="lines") if items else empty(nothing)


def columns(wide: Sequence[Node], side: Sequence[Node]) -> Html:
    """Return a wide column with a narrow column at its side."""
    parts = (tag("div", *wide, class_="wide-column"), tag("div", *side, class_="side-column"))
    return tag("div", *parts, class_="columns")


def choice(addresses: Mapping[str, str], chosen: str | None = None, style: str = "choice") -> Html:
    """Return links by their names; the chosen link is marked."""
    links = [tag("a", name, href=to, class_="chosen" if name == chosen else None) for name, to in addresses.items()]
    return tag("nav", *links, class_=style)
