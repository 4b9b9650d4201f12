"""The pages that are awake: few enough to be compared at each pick, by bounds that cost next to nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.columns.growing import inserted
from crawlsched.compiling import Compilable
from crawlsched.frontier.candidates import candidate_loops
from crawlsched.frontier.values import PageValue, PageValues

__all__ = ["PRECISE", "Awake"]


_OUT = -np.inf
# Value, slope and half the curvature of a page that has left.
_LEFT = np.array([[_OUT], [0.0], [0.0]])
_N_ROWS = 8
# How far the crawl values may be below their parabolas, where that is not known.
_UNKNOWN = np.array([[np.inf], [0.0]])
# If none of so many pages is surely the best, as where many are alike, it is found otherwise.
_MOST_LOOKS = 6
# Of more looks at pages than so many those are forgotten of which no page is left.
_MOST_BATCHES = 32
#: A crawl value is told as well as that.
PRECISE = 1e-7

#: `crawlsched.frontier.candidates.candidate_loops`.
LOOPS = Compilable(candidate_loops, keeps_lock=True)


class _Single(NamedTuple):
    """One page value in the place of several."""

    value: PageValue

    def one(self, row: int) -> PageValue:
        return self.value

    def one_at(self, row: int, now: float) -> tuple[float, float]:
        return self.value.at(now), self.value.doubt

    def best(self, bounds: FloatArray, rows: npt.NDArray[np.int32], now: float) -> None:
        return None


class Awake:
    """Some pages in the order of their numbers, each with a parabola in time that its crawl value does not exceed.

    Attributes
    ----------
    pages : ndarray of int, shape (n,)
        Ascending; some have left since they were put in.
    hosts : ndarray of int32, shape (n,)
    has_evaluated : bool
        Whether `best` had to find a crawl value in numpy, which takes as long as a part of a look at many pages.

    Notes
    -----
    A few numpy operations over some hundred numbers take some microseconds, less than a heap of Python objects for as
    many candidates would, and they give each bound for the very moment of the pick. A page that leaves is left out by a
    bound of -inf until the next `clear`, and so are the pages of a host that rests.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Take all pages out; O(1)."""
        self.pages: IndexArray = np.empty(0, np.intp)
        self.hosts: npt.NDArray[np.int32] = np.empty(0, np.int32)
        # Rows: when the parabola begins, value there, slope, half the curvature, 0 or -inf for a host that rests, two
        # that say how far the crawl value may be below, and until when that holds.
        self._bounds: FloatArray = np.empty((_N_ROWS, 0))
        self._values: list[PageValues | _Single] = []
        # Which of the values are those of each page, and where among them.
        self._batches: npt.NDArray[np.int32] = np.empty(0, np.int32)
        self._rows: npt.NDArray[np.int32] = np.empty(0, np.int32)
        self.has_evaluated = False

    def living(self) -> IndexArray:
        """Return the pages, ascending; O(n)."""
        pages: IndexArray = self.pages[self._bounds[1] > _OUT]
        return pages

    def ending(self, until: float) -> IndexArray:
        """Return the pages whose parabolas do not hold until a time, ascending; O(n)."""
        pages: IndexArray = self.pages[(self._bounds[7] < until) & (self._bounds[1] > _OUT)]
        return pages

    def discard_rows(self, rows: BoolArray | IndexArray) -> None:
        """Take out the pages in some rows, which stay until others are put in; O(n)."""
        self._bounds[1:4, rows] = _LEFT

    def add(
        self,
        pages: IndexArray,
        hosts: npt.NDArray[np.int32],
        parabolas: FloatArray,
        after: float,
        values: PageValues,
        rows: IndexArray,
        until: FloatArray,
        shortfalls: FloatArray | None = None,
    ) -> None:
        """Put pages in; O(n log n).

        Parameters
        ----------
        pages : ndarray of int, shape (m,)
            Distinct pages that are not in.
        hosts : ndarray of int32, shape (m,)
            Their hosts, none of which rests.
        parabolas : ndarray, shape (3, m)
            Value, slope and half the curvature at `after`.
        after : float
            POSIX seconds.
        values : PageValues
            Has the exact values.
        rows : ndarray of int, shape (m,)
            Which of them belong to the pages.
        until : ndarray, shape (m,)
            POSIX seconds: how long the parabolas hold.
        shortfalls : ndarray, shape (2, m), optional
            How far the crawl values may be below their parabolas; see `PageValues.shortfalls`.
        """
        fresh, among = np.empty((_N_ROWS, pages.size)), rows.astype(np.int32)
        batches = np.full(pages.size, len(self._values), np.int32)
        fresh[0], fresh[1:4], fresh[4] = after, parabolas, 0.0
        fresh[5:7] = _UNKNOWN if shortfalls is None else shortfalls
        fresh[7] = until
        self._values.append(values)
        if self.pages.size:
            pages = np.concatenate([self.pages, pages])
            hosts = np.concatenate([self.hosts, hosts])
            fresh = np.concatenate([self._bounds, fresh], axis=1)
            batches, among = np.concatenate([self._batches, batches]), np.concatenate([self._rows, among])
        order = pages.argsort(kind="stable")
        order = order[fresh[1, order] > _OUT]
        self.pages, self.hosts = pages[order], hosts[order]
        self._bounds, self._batches, self._rows = fresh.take(order, axis=1), batches[order], among[order]
        if len(self._values) > _MOST_BATCHES:
            used, numbers = np.unique(self._batches, return_inverse=True)
            self._batches, self._values = numbers.astype(np.int32), [self._values[batch] for batch in used.tolist()]

    def add_one(
        self,
        page: int,
        host: int,
        parabola: tuple[float, float, float],
        after: float,
        value: PageValue,
        until: float,
    ) -> None:
        """Do what `add` does for a single page; O(n)."""
        row = int(self.pages.searchsorted(page, side="right"))
        bounds = np.empty((_N_ROWS, self.pages.size + 1))
        bounds[:, :row], bounds[:, row + 1 :] = self._bounds[:, :row], self._bounds[:, row:]
        shortfall = 0.0 if value.steady else np.inf
        bounds[:, row], self._bounds = (after, *parabola, 0.0, shortfall, 0.0, until), bounds
        self._batches, self._rows = inserted(self._batches, row, len(self._values)), inserted(self._rows, row, 0)
        self.pages, self.hosts = inserted(self.pages, row, page), inserted(self.hosts, row, host)
        self._values.append(_Single(value))

    def bounds(self, now: float) -> FloatArray:
        """Return what the crawl values do not exceed now, one per row; -inf for pages that are out. O(n)."""
        start, value, slope, curve, resting = self._bounds[:5]
        since = now - start
        bounds: FloatArray = curve * since
        bounds += slope
        bounds *= since
        bounds += value
        bounds += resting
        return bounds

    def bound(self, now: float) -> float:
        """Return the highest of `bounds`; -inf: no page is in. O(n)."""
        if LOOPS.compiled:
            return float(LOOPS.highest(self._bounds, now)[1])
        return float(self.bounds(now).max(initial=_OUT))

    def likeliest(self, now: float) -> tuple[int, float, float]:
        """Return the row with the highest of `bounds`, that bound, and the page's crawl value; O(n).

        -1, -inf and -inf: no page is in.
        """
        row, bound, _, value, _ = self._highest(now) if LOOPS.compiled else self._best_by_bounds(now, 0.0)
        return (row, bound, value) if bound >= 0.0 else (-1, _OUT, _OUT)

    def host(self, row: int) -> int:
        """Return the host of the page in a row; O(1)."""
        return self.hosts.item(row)

    def page(self, row: int) -> int:
        """Return the page in a row; O(1)."""
        return self.pages.item(row)

    def value(self, row: int) -> PageValue:
        """Return the crawl value of the page in a row; O(1)."""
        return self._values[self._batches.item(row)].one(self._rows.item(row))

    def best(self, now: float, enough: float = -np.inf) -> tuple[int, float, float, float, float]:
        """Return the row with the highest value now, and what is known of it; O(n) for each value that is looked at.

        Parameters
        ----------
        now : float
            POSIX seconds.
        enough : float
            Of a page whose bound is below that no more need be known.

        Returns
        -------
        row : int
        bound : float
            Negative if there is no page.
        following : float
            What no other page is worth more than. Only if it is below the value is this surely the best page.
        value, doubt : float
            The crawl value of the page in the row, as `PageValue.at` gives it, and the doubt that it leaves. Without
            compiled code it may be less, by no more than a ten-millionth.
        """
        if not LOOPS.compiled:
            return self._best_by_bounds(now, enough)
        found = self._values[0].best(self._bounds, self._rows, now) if len(self._values) == 1 else None
        if found is None:
            found = self._highest(now)
        row, bound, following, value, doubt = found
        if value * (1.0 - doubt) > following or bound < 0.0:
            return found
        # Others might be better: they are looked at one after the other, without those before.
        out, others, looked = self._bounds[4], 0.0, [row]
        while following >= value * (1.0 - doubt) and len(looked) < _MOST_LOOKS:
            out[row] = _OUT
            row, _, following = LOOPS.highest(self._bounds, now)
            looked.append(row)
            another = row, bound, following, *self._values[self._batches.item(row)].one_at(self._rows.item(row), now)
            if another[3] > value:
                found, another = another, found
            others = max(others, another[3] * (1.0 + another[4]))
            value, doubt = found[3:]
        out[looked] = 0.0
        return found[0], bound, max(following, others), value, doubt

    def _highest(self, now: float) -> tuple[int, float, float, float, float]:
        """Return the row with the highest bound now, that and the next highest bound, its value, and its doubt."""
        row, bound, following = LOOPS.highest(self._bounds, now)
        if bound < 0.0:
            return row, bound, following, 0.0, 0.0
        return row, bound, following, *self._values[self._batches.item(row)].one_at(self._rows.item(row), now)

    def _best_by_bounds(self, now: float, enough: float) -> tuple[int, float, float, float, float]:
        """Return the same as `best`, in numpy, where a single value takes as long as some dozens.

        What is known since pages were looked at says what one is worth now to a ten-millionth, where turns are short.
        """
        bounds = self.bounds(now)
        if not bounds.size:
            return -1, _OUT, _OUT, 0.0, 0.0
        row = int(bounds.argmax())
        bound, since = bounds.item(row), now - self._bounds.item(0, row)
        bounds[row] = _OUT
        following = bounds.item(bounds.argmax())  # of some dozens, in a quarter of the time that `max` takes
        if bound < enough:
            return row, bound, following, 0.0, 0.0
        least = bound - (self._bounds.item(5, row) + self._bounds.item(6, row) * since * since)
        if bound - least <= PRECISE * bound:
            return row, bound, following, least, 0.0
        self.has_evaluated = True
        return row, bound, following, *self._values[self._batches.item(row)].one_at(self._rows.item(row), now)

    def discard_row(self, row: int) -> None:
        """Take out the page in a row; O(1)."""
        self._bounds[1, row] = _OUT

    def discard(self, page: int) -> None:
        """Take a page out, if it is in; O(log n)."""
        # A page that left and came back stands here twice, side by side.
        row = int(self.pages.searchsorted(page))
        while row < self.pages.size and self.pages.item(row) == page:
            self._bounds[1:4, row] = _OUT, 0.0, 0.0
            row += 1

    def rest(self, host: int, resting: bool) -> None:
        """Leave the pages of a host out, or no longer; O(n)."""
        self._bounds[4, self.hosts == host] = _OUT if resting else 0.0

    def rows_of(self, host: int) -> BoolArray:
        """Return which rows belong to a host; O(n)."""
        rows: BoolArray = self.hosts == host
        return rows

    def take_resting(self) -> tuple[IndexArray, npt.NDArray[np.int32]]:
        """Take out the pages of hosts that rest; return them and their hosts. O(n)."""
        rows = np.flatnonzero((self._bounds[4] == _OUT) & (self._bounds[1] > _OUT))
        self.discard_rows(rows)
        return self.pages[rows], self.hosts[rows]

    def has_resting(self) -> bool:
        """Whether a host that rests has a page; O(n)."""
        return bool(((self._bounds[4] == _OUT) & (self._bounds[1] > _OUT)).any())
