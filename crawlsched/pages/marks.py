"""Marks: the flags of a page and the number of its failed deliveries, as bits of one number."""

from __future__ import annotations

__all__ = [
    "AWAITED",
    "BY_START",
    "CUT",
    "NEWS",
    "OWED",
    "RECRAWL",
    "RUN_ONLY",
    "SHOWN",
    "START",
    "STATED",
    "TRIED",
    "UNTRACKED",
    "n_failures",
    "with_failures",
]

# These marks are stored. NEWS: a request for the page had other data than the stored request, so the next item will
# differ. RECRAWL: `crawlsched recrawl` requested the page. UNTRACKED: the page's callback yielded requests that do
# not become pages, and are made again in each run. CUT: a body of the page was cut short.
NEWS, RECRAWL, UNTRACKED, CUT = (1 << bit for bit in range(4))
# These marks are about the present run. START: `start()` requested the page. BY_START: the page's template is that of a
# request from `start()`. AWAITED: the URL became a page by a request that has not ended yet. TRIED: the page was tried.
START, BY_START, AWAITED, TRIED = (1 << bit for bit in range(12, 16))
#: A request, a file or a sitemap has stated the page's importance in this run.
STATED = CUT << 1
#: No page has this mark. It is the reason of a delivery that a rule would withhold if CRAWLSCHED_WITHHOLD allowed it.
SHOWN = TRIED << 1

#: Each of these marks requires a delivery at the next visit, even of unchanged content.
OWED = NEWS | RECRAWL | START
#: These marks are only valid in the run that set them.
RUN_ONLY = STATED | START | BY_START | AWAITED | TRIED

# The lowest of the four bits that count the failed deliveries in a row.
_FAILURE = START >> 4
_FAILURES = START - _FAILURE


def n_failures(marks: int) -> int:
    """Return how many deliveries in a row have failed.

    >>> marks = with_failures(NEWS, 3)
    >>> n_failures(marks), marks & NEWS, n_failures(with_failures(marks, 99))
    (3, 1, 15)
    """
    return (marks & _FAILURES) // _FAILURE


def with_failures(marks: int, n: int) -> int:
    """Return the marks with another number of failed deliveries, at most 15."""
    return marks & ~_FAILURES | min(n * _FAILURE, _FAILURES)
