"""Marks: flags of a page, and its failed deliveries, as bits of one number."""

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

# The first bits outlive the run. NEWS: a link to the page has brought other data than those kept, so its next item will
# differ. RECRAWL: `crawlsched recrawl` asked for it. UNTRACKED: its callback yielded requests that are no pages, which
# each run makes again. CUT: a body of it was cut short.
NEWS, RECRAWL, UNTRACKED, CUT = (1 << bit for bit in range(4))
# START: `start()` asked for it in this run. BY_START: its template is the one that `start()` gave in this run. AWAITED:
# a request of this run made it a page, and has not ended yet. TRIED: it was tried in this run.
START, BY_START, AWAITED, TRIED = (1 << bit for bit in range(12, 16))
#: A request, a file or a sitemap has stated the page's importance in this run.
STATED = CUT << 1
#: Never set: a delivery without a request, of content that would have been held back.
SHOWN = TRIED << 1

#: Each of these requires a delivery at the next visit, whatever its content is.
OWED = NEWS | RECRAWL | START
#: These hold only for the run that set them.
RUN_ONLY = STATED | START | BY_START | AWAITED | TRIED

# The number of deliveries in a row in which its callback or a pipeline raised, in the four bits below those of a run.
_FAILURE = START >> 4
_FAILURES = START - _FAILURE


def n_failures(marks: int) -> int:
    """Return the number of failed deliveries in a row that the marks hold.

    >>> marks = with_failures(NEWS, 3)
    >>> n_failures(marks), marks & NEWS, n_failures(with_failures(marks, 99))
    (3, 1, 15)
    """
    return (marks & _FAILURES) // _FAILURE


def with_failures(marks: int, n: int) -> int:
    """Return the marks with another number of failed deliveries in them, 15 at most."""
    return marks & ~_FAILURES | min(n * _FAILURE, _FAILURES)
