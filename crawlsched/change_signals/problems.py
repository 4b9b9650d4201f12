"""Problems: the faults of a sitemap, counted by kind, with the first example of each."""

from dataclasses import dataclass

__all__ = ["MAX_EXAMPLE", "PROBLEM_KINDS", "Problem", "ProblemCounter"]

#: Every kind of problem, and what it means.
PROBLEM_KINDS = {
    "empty": "the body is empty",
    "not-a-sitemap": "neither XML of a known kind nor a list of URLs",
    "html": "an HTML page was served instead",
    "truncated": "the document ends before its last element does; the complete entries were read",
    "too-large": "more bytes after decompression than max_bytes; what came before was read",
    "bad-gzip": "the compressed data are damaged; what came before was read",
    "too-many-entries": "more entries than max_entries, or twice as many with those refused; the first ones were read",
    "too-many-children": "more children than max_children, or than sitemaps of a host; the first ones were read",
    "too-deep": "more elements open at once than max_depth; the rest was not read",
    "too-many-elements": "more elements or repairs than max_elements; the rest was not read",
    "text-too-long": "a text longer than max_text; its entry was dropped",
    "no-root": "entries without an element around them; they were read",
    "unclosed": "an element, a comment or a CDATA section that is never closed",
    "encoding": "bytes that are not of the encoding; URLs with such bytes were dropped",
    "unknown-encoding": "the XML declaration names an encoding that does not exist or does not fit; UTF-8 was assumed",
    "doctype": "a document type declaration; what it declares was not read",
    "entity": "a reference to an entity which the document declares; its entry was dropped",
    "html-entity": "an entity of HTML, which XML does not know; it was replaced by its character",
    "raw-ampersand": "an ampersand which is not written &amp;; it was taken as it stands",
    "no-url": "an entry without a URL; it was dropped",
    "second-url": "an entry with several URLs; the first that can be used was taken",
    "around-url": "other characters around a URL, such as quotes, columns or invisible signs; they were removed",
    "second-lastmod": "an entry with several dates of one kind; one of them was taken",
    "not-a-url": "a line, in a list of URLs, that is no URL; it was left out",
    "junk-before": "text before the document; it was passed over",
    "bad-url": "no http or https URL, or one with an impossible port; its entry was dropped",
    "space-in-url": "a space within a URL; it was written %20",
    "relative-url": "a URL without a host; it was joined to the sitemap's URL",
    "other-host": "a URL of another host than the sitemap's; its entry was dropped",
    "duplicate-url": "a URL that was listed before; the later lastmod was kept",
    "bad-lastmod": "a lastmod that cannot be read without guessing; it counts only where its text changes",
    "damaged-feed": "a feed that is not well-formed; what lxml recovered was read",
    "loop": "an index that lists itself or an index above it; the child was dropped",
    "index-depth": "an index file deeper than max_index_depth; its children were not read",
}

#: The most characters of a quoted text in a message.
MAX_EXAMPLE = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a sitemap.

    Examples
    --------
    >>> print(Problem("raw-ampersand", 2, "http://example.com/a?b=1&c=2"))
    raw-ampersand (2 times, first at 'http://example.com/a?b=1&c=2'): an ampersand which is not written &amp;; ...
    """

    kind: str  # one of `PROBLEM_KINDS`
    count: int  # how often it occurred
    example: str  # the text where it occurred first, at most 200 characters; may be empty

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        place = f", {'' if self.count == 1 else 'first '}at {self.example!r}" if self.example else ""
        return f"{self.kind} ({times}{place}): {PROBLEM_KINDS[self.kind]}"


class ProblemCounter:
    """Count problems by kind and keep the first example of each.

    Examples
    --------
    >>> counter = ProblemCounter()
    >>> counter.add("bad-url", "mailto:a@example.com")
    >>> counter.add("bad-url", "ftp://example.com/")
    >>> counter.problems()
    [Problem(kind='bad-url', count=2, example='mailto:a@example.com')]
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, str] = {}

    def add(self, kind: str, example: str = "", count: int = 1) -> None:
        """Count a problem of a kind; the first example is stored."""
        self._counts[kind] = self._counts.get(kind, 0) + count
        self._examples.setdefault(kind, example[:MAX_EXAMPLE])

    def problems(self) -> list[Problem]:
        """Return all problems, in the order of their first occurrences."""
        return [Problem(kind, count, self._examples[kind]) for kind, count in self._counts.items()]
