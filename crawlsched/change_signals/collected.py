"""What has been collected from one sitemap so far: entries and children, each URL once, up to the limits."""

from collections.abc import Sequence

from crawlsched.change_signals.entries import SitemapChildren, SitemapEntries
from crawlsched.change_signals.lastmod import parse_lastmod
from crawlsched.change_signals.limits import Limits
from crawlsched.change_signals.locations import Locations, canonical
from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["Collected"]

_MAX_WORD = 40
# Entries that are looked at, for each one that can be taken: doubles and refused ones take time, too.
_TRIES = 2


class Collected:
    """Entries and children of one document, as they are found.

    Parameters
    ----------
    url : str
        The URL of the document.
    limits : Limits
    locations : Locations
        Accepts or refuses URLs.
    ancestors : sequence of str
        URLs of the index files above the document.
    problems : ProblemCounter

    Examples
    --------
    >>> problems = ProblemCounter()
    >>> locations = Locations("http://a/map.xml", (), problems)
    >>> collected = Collected("http://a/map.xml", Limits(max_entries=1), locations, (), problems)
    >>> collected.page("http://a/1", "2026-11-20", "0.8", None), collected.page("http://a/2")
    (True, False)
    >>> collected.entries.url, collected.entries.priority, problems.problems()[0].kind
    (['http://a/1'], [0.8], 'too-many-entries')
    """

    def __init__(
        self, url: str, limits: Limits, locations: Locations, ancestors: Sequence[str], problems: ProblemCounter
    ) -> None:
        self.entries = SitemapEntries()
        self.children = SitemapChildren()
        self._limits = limits
        self._locations = locations
        self._problems = problems
        self._above = {canonical(above) for above in (url, *ancestors)}
        self._n_above = len(ancestors)
        self._n_left = _TRIES * max(limits.max_entries, limits.max_children)
        self._entry_of: dict[str, int] = {}
        self._child_of: dict[str, int] = {}

    def look(self) -> bool:
        """Count an entry that is looked at, whatever comes of it; False when no more are to be."""
        self._n_left -= 1
        if self._n_left < 0:
            self._problems.add("too-many-entries", f"more than {_TRIES} times the limit, most of them refused")
        return self._n_left >= 0

    def page(
        self, location: str, lastmod: str | None = None, priority: str | None = None, changefreq: str | None = None
    ) -> bool:
        """Add a page, or report why not; False when no more can be taken."""
        if not self.look():
            return False
        url = self._locations.accept(location)
        if url is None:
            return True
        seconds, text, precision = self._lastmod(lastmod)
        position = self._entry_of.setdefault(url, len(self.entries.url))
        entries = self.entries
        if position < len(entries.url):
            self._problems.add("duplicate-url", url)
            _keep_later(entries, position, seconds, text, precision)
            return True
        if position == self._limits.max_entries:
            self._problems.add("too-many-entries", f"more than {self._limits.max_entries}")
            return False
        entries.url.append(url)
        entries.lastmod.append(seconds)
        entries.lastmod_text.append(text)
        entries.precision.append(precision)
        entries.priority.append(None if priority is None else self._priority(priority))
        entries.changefreq.append(None if changefreq is None else changefreq.strip().lower()[:_MAX_WORD] or None)
        return True

    def child(self, location: str, lastmod: str | None = None) -> bool:
        """Add a sitemap of an index, or report why not; False when no more can be taken."""
        if not self.look():
            return False
        url = self._locations.accept(location)
        if url is None:
            return True
        name = canonical(url)  # two spellings of one URL are one sitemap
        if name in self._above:
            self._problems.add("loop", url)
            return True
        if self._n_above >= self._limits.max_index_depth:
            self._problems.add("index-depth", url)
            return True
        seconds, text, precision = self._lastmod(lastmod)
        position = self._child_of.setdefault(name, len(self.children.url))
        children = self.children
        if position < len(children.url):
            self._problems.add("duplicate-url", url)
            _keep_later(children, position, seconds, text, precision)
            return True
        if position == self._limits.max_children:
            self._problems.add("too-many-children", f"more than {self._limits.max_children}")
            return False
        children.url.append(url)
        children.lastmod.append(seconds)
        children.lastmod_text.append(text)
        children.precision.append(precision)
        return True

    def _lastmod(self, text: str | None) -> tuple[float | None, str | None, str | None]:
        text = text.strip() if text else None
        if not text:
            return None, None, None
        parsed = parse_lastmod(text)
        if parsed is None:
            self._problems.add("bad-lastmod", text)
            return None, text[:_MAX_WORD], None
        return parsed[0], text, parsed[1]

    def _priority(self, text: str) -> float | None:
        text = text.strip()
        if not text:
            return None
        try:
            priority = float(text)
        except ValueError:
            priority = -1.0
        if not 0.0 <= priority <= 1.0:
            self._problems.add("bad-priority", text)
            return None
        return priority


def _keep_later(
    rows: SitemapEntries | SitemapChildren,
    position: int,
    seconds: float | None,
    text: str | None,
    precision: str | None,
) -> None:
    kept = rows.lastmod[position]
    if seconds is not None and (kept is None or seconds > kept):
        rows.lastmod[position] = seconds
        rows.lastmod_text[position] = text
        rows.precision[position] = precision
