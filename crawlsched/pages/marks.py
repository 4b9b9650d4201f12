"""Marks: flags of a page, and its failed deliveries, as bits of one number."""

from __future__ import annotations

__all__ = [
    "AWAITED",
    "BY_START",
    "NEWS",
    "OWED",
    "RECRAWL",
    "RUN_ONLY",
    "SHOWN",
    "START",
    "TRIED",
    "UNTRACKED",
    "n_failures",
    "with_failures",
]

#: A link to the page has brought other data than those kept: the next item is another one.
NEWS = 1
#: Somebody asked for it (`crawlsched recrawl`).
RECRAWL = 2
#: Its callback yielded requests that are no pages: they are to be made again from time to time.
UNTRACKED = 4
#: Never set: a delivery without a request, of content that would have been held back.
SHOWN = 1 << 16
#: `start()` asked for it in this run.
START = 1 << 12
#: Its template is the one that `start()` gave in this run.
BY_START = 1 << 13
#: A request of this run made it a page, and has not ended yet.
AWAITED = 1 << 14
#: It was tried in this run.
TRIED = 1 << 15

#: Each of these asks for a delivery at the next visit, whatever its content is.
OWED = NEWS | RECRAWL | START
#: These say something about the run that set them, and nothing later.
RUN_ONLY = START | BY_START | AWAITED | TRIED


# Deliveries running in which its callback or a pipeline raised: a small number in four bits.
_FAILURES, _MOST_FAILURES = 8, 15


def n_failures(marks: int) -> int:
    """Return the number of failed deliveries running that the marks hold.

    >>> marks = with_failures(NEWS, 3)
    >>> n_failures(marks), marks & NEWS, n_failures(with_failures(marks, 99))
    (3, 1, 15)
    """
    return marks >> _FAILURES & _MOST_FAILURES


def with_failures(marks: int, n: int) -> int:
    """Return the marks with another number of failed deliveries in them, 15 at most."""
    return marks & ~(_MOST_FAILURES << _FAILURES) | min(n, _MOST_FAILURES) << _FAILURES
