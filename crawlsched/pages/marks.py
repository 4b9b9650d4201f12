"""Marks: flags and small counters of a page, as bits of one number."""

from __future__ import annotations

__all__ = [
    "AWAITED",
    "BY_START",
    "FAILURES",
    "NEWS",
    "OWED",
    "RECRAWL",
    "RUN_ONLY",
    "SHOWN",
    "START",
    "TRIED",
    "UNTRACKED",
    "Counter",
]

#: A link to the page has brought other data than those kept: the next item is another one.
NEWS = 1
#: Somebody asked for it (`crawlsched recrawl`).
RECRAWL = 2
#: Its callback yielded requests that are no pages: they are to be made again from time to time.
UNTRACKED = 4
#: Never set: a delivery that nobody asked for, of what would have been held back.
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


class Counter:
    """A small number in some bits of the marks; it stops at its largest value.

    >>> marks = FAILURES.put(NEWS, 3)
    >>> FAILURES.of(marks), marks & NEWS, FAILURES.of(FAILURES.put(marks, 99))
    (3, 1, 15)
    """

    def __init__(self, shift: int, bits: int) -> None:
        self._shift = shift
        self._most = (1 << bits) - 1

    def of(self, marks: int) -> int:
        """Return the number that the marks hold."""
        return marks >> self._shift & self._most

    def put(self, marks: int, n: int) -> int:
        """Return the marks with another number in them."""
        return marks & ~(self._most << self._shift) | min(n, self._most) << self._shift


#: Deliveries running in which its callback or a pipeline raised.
FAILURES = Counter(8, 4)
