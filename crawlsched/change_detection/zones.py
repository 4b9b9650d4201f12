"""Zones: which part of a page is its own, and which is its site's: navigation, header, footer."""

import re
from collections.abc import Collection, Sequence

from crawlsched.change_detection.evidence import PROTECTED

__all__ = ["is_frame"]

_OWN = frozenset({"main", "article"})
_FRAME = frozenset({"nav", "aside"})
_FRAME_OUTSIDE = frozenset({"header", "footer"})
_FRAME_NAMES = re.compile(
    r"nav|menu|sidebar|side-bar|breadcrumb|crumbs|\btoc|toctree|topbar|masthead|skip|pager|copyright|legal",
    re.IGNORECASE,
)
_FRAME_NAMES_OUTSIDE = re.compile(
    r"header|footer|banner|head\b|foot\b|version|publish|colophon|cookie|announce|bottom|leftcol|rightcol",
    re.IGNORECASE,
)
_OWN_NAMES = re.compile(r"content|main|article|post|body|product|document|entry|story", re.IGNORECASE)
# By fewer texts in which pages differ it cannot be told where their own part is.
_ENOUGH_OWN = 3


def is_frame(way: Sequence[str], own_ways: Collection[Sequence[str]]) -> bool:
    """Whether a block belongs to the site, by the steps that lead to it.

    Parameters
    ----------
    way : sequence of str
        As `PageBlocks.way_to` gives them.
    own_ways : collection of sequence of str
        The ways to the texts in which pages of the template differ.

    Returns
    -------
    bool
        True in navigation, and in headers and footers of the whole page. Where neither elements nor their names tell:
        if no text in which pages differ stands in the same part of the page.

    Examples
    --------
    >>> own = [["html", "body", "div.text", name] for name in ("h1", "p", "p")]
    >>> is_frame(["html", "body", "div.text", "p.stock"], own), is_frame(["html", "body", "ul", "li"], own)
    (False, True)
    >>> is_frame(["body", "main", "p"], []), is_frame(["body", "main", "nav", "p"], [])
    (False, True)
    >>> is_frame(["body", "div.grid-for-nav", "div.rst-content", "p"], [])
    False
    """
    if way and way[0] == "script":  # data for the site's programs; what people wait for is the page's
        return not any(PROTECTED.search(step) for step in way)
    if "head" in way or (way and way[0] == "json-ld"):  # what it tells search engines is the page's
        return False
    holds_own = False
    for step in reversed(way):
        name, _, names = step.replace("#", ".").partition(".")
        is_own = bool(names and _OWN_NAMES.search(names))
        if name in _FRAME or (not holds_own and names and not is_own and _FRAME_NAMES.search(names)):
            return True
        if name in _OWN:
            return False
        holds_own = holds_own or is_own  # "grid-for-nav" around "content" is the whole page
    within_own = False
    for step in way:
        name, _, names = step.replace("#", ".").partition(".")
        within_own = within_own or bool(names and _OWN_NAMES.search(names))
        if not within_own and (name in _FRAME_OUTSIDE or (names and _FRAME_NAMES_OUTSIDE.search(names))):
            return True
    if 2 * sum(_is_in_own(own) for own in own_ways) > len(own_ways):
        return True  # this one is outside of what the page itself calls its own
    if len(own_ways) < _ENOUGH_OWN:
        return False
    if "footer" in way:  # around what the page says, by the name of a class, and yet no part of what pages differ in
        part = list(way[: min(way.index("footer") + 2, len(way) - 1)])
        return not any(list(own[: len(part)]) == part for own in own_ways if list(own) != list(way))
    shared = _common(own_ways)
    if list(way[: len(shared)]) != list(shared[: len(way)]):
        return True
    if len(way) <= len(shared) + 1:  # beside the texts in which pages differ
        return False
    part = list(way[: len(shared) + 1])
    return not any(list(own[: len(part)]) == part for own in own_ways)


def _is_in_own(way: Sequence[str]) -> bool:
    return any(step.replace("#", ".").partition(".")[0] in _OWN for step in way)


def _common(ways: Collection[Sequence[str]]) -> Sequence[str]:
    """Return the steps with which all ways begin, without the last step of any."""
    ways = [way[:-1] for way in ways]
    shortest = min(ways, key=len)
    for at, step in enumerate(shortest):
        if any(way[at] != step for way in ways):
            return shortest[:at]
    return shortest
