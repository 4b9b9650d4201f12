"""Collects the entries, children and hubs of one sitemap, each URL once, up to the limits."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from crawlsched.change_signals.hubs import Hubs
from crawlsched.change_signals.lastmod import MAX_DATE, parse_lastmod
from crawlsched.change_signals.locations import Locations, canonical
from crawlsched.change_signals.problems import ProblemCounter

__all__ = [
    "Collected",
    "Limits",
    "SitemapEntries",
]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what is read of a sitemap. If a sitemap has more, this is reported as a problem.

    Parameters
    ----------
    max_elements : int, default 2_500_000
        Elements and repairs of one document: fifty for each of 50,000 entries. This limits the time. `max_bytes` does
        not limit it enough, since 50 MB can be 12 million elements.

    Examples
    --------
    >>> Limits(max_entries=1000).max_children
    50000
    """

    max_bytes: int = 52_428_800  # bytes after decompression; the default is the sitemap protocol's limit of 50 MB
    max_entries: int = 50_000  # pages of one sitemap or feed; the default is the sitemap protocol's limit
    max_children: int = 50_000  # sitemaps of one index; the default is the sitemap protocol's limit
    max_depth: int = 64  # elements that are nested in each other
    max_elements: int = 2_500_000
    max_text: int = 8_192  # characters of one text (a URL, a date); the sitemap protocol allows URLs of 2,048
    max_json: int = 2_000_000  # characters of JSON, which is read in one step that holds the interpreter lock
    max_members: int = 1_000  # members of a gzip file, one after another
    max_index_depth: int = 5  # levels of index files; the sitemap protocol allows one level

    def __post_init__(self) -> None:
        for fact in fields(self):
            value = getattr(self, fact.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{fact.name} is {value!r}; a limit is a whole number of at least 1.")


@dataclass(slots=True)
class SitemapEntries:
    """The pages that a sitemap lists, or the sitemaps of an index, as one list for each fact, all of the same length.

    Parameters
    ----------
    lastmod : list of float or None
        POSIX seconds; None if it is missing or no date.

    Examples
    --------
    >>> len(SitemapEntries(["http://a/"], [0.0], ["1970-01-01"], ["day"]))
    1
    """

    url: list[str] = field(default_factory=list)  # absolute http or https URLs, each once
    lastmod: list[float | None] = field(default_factory=list)
    lastmod_text: list[str | None] = field(default_factory=list)  # the date as it was written; None if missing
    precision: list[str | None] = field(default_factory=list)  # "second" if `lastmod` names a time of day, or "day"

    def __len__(self) -> int:
        return len(self.url)


class Collected:
    """Collects the entries and children of one document.

    Examples
    --------
    >>> problems = ProblemCounter()
    >>> locations = Locations("http://a/map.xml", (), problems)
    >>> collected = Collected("http://a/map.xml", Limits(max_entries=1), locations, (), problems)
    >>> collected.page(["http://a/1"], ["soon", "2026-11-20"]), collected.page(["http://a/2"])
    (True, False)
    >>> collected.entries.url, collected.entries.lastmod_text, problems.problems()[0].kind
    (['http://a/1'], ['2026-11-20'], 'too-many-entries')
    """

    def __init__(
        self, url: str, limits: Limits, locations: Locations, ancestors: Sequence[str], problems: ProblemCounter
    ) -> None:
        self.entries = SitemapEntries()
        self.children = SitemapEntries()
        self.hubs = Hubs()
        self.url = url
        self._limits = limits
        self._locations = locations
        self._problems = problems
        self._above = {canonical(above) for above in (url, *ancestors)}
        self._n_above = len(ancestors)
        # Repeated and refused entries count, since they also take time.
        self._n_left = limits.max_entries + limits.max_children
        # The position of each URL in its list.
        self._position_of: dict[tuple[bool, str], int] = {}

    def look(self) -> bool:
        """Count an entry, accepted or refused; return False when the limit is reached."""
        self._n_left -= 1
        if self._n_left < 0:
            self._problems.add("too-many-entries", "more than max_entries and max_children, most refused")
        return self._n_left >= 0

    def page(self, locations: Sequence[str], dates: Sequence[str] = (), *, is_child: bool = False) -> bool:
        """Add a page, or a sitemap of an index, with its first usable location and date, or report why this fails.

        It returns False when no further entry can be added.
        """
        if not self.look():
            return False
        url = self._locations.accept_first(locations)
        if url is None:
            return True
        name = canonical(url) if is_child else url  # for sitemaps, all spellings of a URL count as the same
        if is_child and (name in self._above or self._n_above >= self._limits.max_index_depth):
            self._problems.add("loop" if name in self._above else "index-depth", url)
            return True
        limits = self._limits
        rows, most = (self.children, limits.max_children) if is_child else (self.entries, limits.max_entries)
        seconds, text, precision = self._lastmod(dates)
        position = self._position_of.setdefault((is_child, name), len(rows))
        if position < len(rows):
            self._problems.add("duplicate-url", url)
            kept = rows.lastmod[position]
            if seconds is not None and (kept is None or seconds > kept):
                rows.lastmod[position], rows.lastmod_text[position], rows.precision[position] = seconds, text, precision
        elif position == most:
            self._problems.add("too-many-children" if is_child else "too-many-entries", f"more than {most}")
            return False
        else:
            rows.url.append(url)
            rows.lastmod.append(seconds)
            rows.lastmod_text.append(text)
            rows.precision.append(precision)
        return True

    def _lastmod(self, dates: Sequence[str]) -> tuple[float | None, str | None, str | None]:
        """Return the first text that is a date. If none is a date, return the first text."""
        texts = [text.strip() for text in dates if text.strip()]
        for text in texts:
            parsed = parse_lastmod(text)
            if parsed is not None:
                return parsed[0], text, parsed[1]
        if not texts:
            return None, None, None
        self._problems.add("bad-lastmod", texts[0])
        return None, texts[0][:MAX_DATE], None
