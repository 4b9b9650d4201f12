"""Neighbours: what visits to the pages next in number say of a page, and how far that can be trusted."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.compiling import Compilable
from crawlsched.pages import LIVE, Pages
from crawlsched.planner.evidence import neighbour_loops
from crawlsched.planner.evidence.neighbour_loops import (
    CHANGED,
    EDGES,
    EVIDENCE,
    HEIGHTS,
    LEAST_STRENGTH,
    MOST,
    NEIGHBOURS,
    STEPS_PER_NAT,
    STRENGTH,
    STRENGTHS,
    UNCHANGED,
    WORTH_FILING,
    is_quiet,
)

__all__ = ["Neighbours"]


#: `crawlsched.planner.evidence.neighbour_loops`.
LOOPS = Compilable(neighbour_loops)

# Probabilities that are compared; any but the first has to be better by so many nats, and chance gives as much once
# in e^3 times.
_WORTH: FloatArray = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.9, 0.98])
_LEAD = 3.0
# By how much more often pages may be found changed than was expected of them, whatever their neighbours do.
_MORE_OFTEN: FloatArray = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4])
# Rows of heights: of pages that change, and of quiet ones.
_HEIGHTS = 2 * HEIGHTS
# Row of the visits to pages of whose neighbours nothing was heard.
_NOTHING_HEARD = _HEIGHTS
_ROWS = np.arange(_HEIGHTS + 1)
# Where losses go in between the visits that they are compared with.
_LOSSES_SO_FAR = [(row, 0.5, 0.5, False) for row in range(_HEIGHTS + 1)]
# So many visits are looked at together, which costs a tenth of looking at each when it comes.
_TOGETHER = 64
_LEAST_PROBABILITY = 1e-9
_EDGES: FloatArray = np.array(EDGES)
# By numbers of visits that found a change and none: looking a height up takes a tenth of finding it.
_COUNTS = np.arange(MOST + 1.0)
_HEIGHT_OF = _EDGES.searchsorted(_COUNTS[:, np.newaxis] / (_COUNTS[:, np.newaxis] + _COUNTS + 1.0)).tolist()
_NOBODY = np.empty(0, np.int64)
# Bytes of a page's row.
_HEARD = 4


class Neighbours:
    """What was found on the pages next in number since each page's crawl: 4 bytes a page.

    Parameters
    ----------
    pages : Pages

    Attributes
    ----------
    heard : ndarray of uint8, shape (n, 4)
        By page what `neighbour_loops.CHANGED` and those after it say; shorter than the pages are many, or empty, as
        long as there was no visit.
    n_visits : int
        How many visits it has seen itself.
    losses : ndarray, shape (15, 8, 12)
        For seven heights of pages that change, seven of quiet pages, and for pages of whose neighbours nothing was
        heard, for eight biases, and for twelve
        probabilities: how much worse that has foretold what visits found than the best, nats.
    worth : ndarray, shape (14,)
        Probability that a page has changed, too, at each height, and then that of quiet pages; 0 until visits have
        shown otherwise.

    Notes
    -----
    Pages get their numbers when they are found, and those found together are of one part of a site, which changes
    together. So a change found on one of the 16 pages next in number is a noisy ChangeSignal of a page, by nobody sent.
    What is heard since a page's crawl is summed up in two numbers. The *height* is the share of visits to its
    neighbours that found a change; those that found none count where the page visited had itself heard of a change. The
    *strength* is the probability that one of these changes is news: it came after the page's own crawl, if it came at
    any time between the two visits that show it, and was not what that neighbour does anyway. At height h and strength
    f a page is unchanged with the probability (1 - w_h f) times that by its own rate.

    The w_h are learned from the visits themselves by maximum likelihood, as the precision of a source is, beside a bias
    b common to all: pages are found unchanged with (1 - b)(1 - w_h f) times the probability expected, so that what is
    wrong with expectations in general is not blamed on neighbours. Each w_h is 0 until another one is better by 3 nats.
    Where pages change on their own, or are numbered in no order, it stays 0 and all is as if there were no neighbours.
    A page is *quiet* that hardly any visit found changed. Beside pages that change by the clock it never does what they
    do, and on a site that is rebuilt it does: of such pages the w_h are learned apart.

    Examples
    --------
    Visits to pages that had heard that all their neighbours changed mostly find a change which nobody would expect:

    >>> neighbours = Neighbours(Pages())
    >>> for visit in range(64):
    ...     neighbours.foretold(height=6, strength=1.0, fresh=0.9, changed=visit % 8 > 0)
    >>> neighbours.worth.tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    heard: npt.NDArray[np.uint8]

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.n_visits = 0
        self.heard = np.zeros((0, 4), np.uint8)
        self.losses: FloatArray = np.zeros((_HEIGHTS + 1, _MORE_OFTEN.size, _WORTH.size))
        self.losses[:_HEIGHTS, :, 1:] = _LEAD
        self.worth = _best(self.losses)
        # Whether a page has ever had evidence: where pages change on their own, asking takes no time.
        self._has_told = False
        self._told = np.zeros(2 * NEIGHBOURS, np.int64)
        self._waiting: list[tuple[int, float, float, bool]] = []

    def make_room(self, n_pages: int) -> None:
        """Make room for so many pages, so that all can be asked for."""
        if self.heard.shape[0] < n_pages:
            self.heard = grown(self.heard, max(n_pages, self._pages.capacity))

    # -- what a visit says

    def visited(
        self, page: int, now: float, fresh: float, changed: bool, *, expected: bool = True
    ) -> npt.NDArray[np.int64]:
        """Take in a visit to a page, before its columns of `Pages` know of it; O(1).

        Parameters
        ----------
        page : int
        now : float
            POSIX seconds; later than its last crawl.
        fresh : float
            Probability that the page had not changed by all that was known of it but for its neighbours.
        changed : bool
        expected : bool
            Whether there was a plan to expect anything by: otherwise nothing is learned of what neighbours are worth.

        Returns
        -------
        ndarray of int
            The neighbours whose evidence has changed by it; good until the next call.
        """
        pages = self._pages
        if self.heard.shape[0] < pages.n:
            self.make_room(pages.n)
        heard = self.heard
        strength, row = heard.item(page, STRENGTH), _NOTHING_HEARD
        if strength:
            row = _HEIGHT_OF[heard.item(page, CHANGED)][heard.item(page, UNCHANGED)]
            if is_quiet(pages.n_crawls.low.item(page), pages.n_changes.low.item(page)):
                row += HEIGHTS
            heard[page] = 0
        if expected:
            self.foretold(row, strength / STRENGTHS, fresh, changed)
        # A page found unchanged takes back what it had heard itself: of nothing else its visit covers the time.
        if fresh * STRENGTHS + 0.5 < LEAST_STRENGTH if changed else not strength:
            return _NOBODY
        before = pages.crawled_at.item(page)
        if LOOPS.compiled:
            columns = pages.state, pages.host.low, pages.host.high, pages.crawled_at
            counts = pages.n_crawls.low, pages.n_changes.low
            visit = float(before), float(now), bool(changed), float(fresh)
            count = LOOPS.heard_of(page, pages.n, *visit, self.worth, *columns, *counts, self.heard, self._told)
            told = self._told[:count]
        else:
            told = self._tell(page, before, now, changed, fresh)
        if told.size:
            self._has_told = True
        return told

    def _tell(self, page: int, before: float, now: float, changed: bool, surprise: float) -> npt.NDArray[np.int64]:
        """Do what `neighbour_loops.heard_of` does: over plain numbers, as sixteen pages are too few for numpy."""
        pages, low = self._pages, max(page - NEIGHBOURS, 0)
        part = slice(low, min(page + NEIGHBOURS + 1, pages.n))
        # Written to where they stand.
        heard = self.heard[part].data.cast("B")
        worthless = not (self._has_told or self.worth.any())
        host, steps_of = pages.host.item(page), _steps_of(self.worth.tobytes())
        columns = pages.state[part].tolist(), pages.host[part].tolist(), pages.crawled_at[part].tolist()
        counts = pages.n_crawls.low, pages.n_changes.low
        told, at = [], -_HEARD
        for other, (state, its_host, last) in enumerate(zip(*columns, strict=True), low):
            at += _HEARD
            n_changed = heard[at]  # + CHANGED
            if state != LIVE or its_host != host or not last < now or other == page or not (changed or n_changed):
                continue
            n_unchanged, strength = heard[at + UNCHANGED], heard[at + STRENGTH]
            if changed:
                # A change some time between the two visits came after the other page's crawl with this probability.
                share = (now - max(last, before)) / (now - before)
                found = int(surprise * share * STRENGTHS + 0.5)
                if found < LEAST_STRENGTH:
                    continue
                n_changed += 1
                if found > strength:
                    heard[at + STRENGTH] = strength = found
            else:
                n_unchanged += 1
            if n_changed == MOST or n_unchanged == MOST:
                # Older ones count ever less.
                n_changed, n_unchanged = (n_changed + 1) // 2, n_unchanged // 2
            heard[at], heard[at + UNCHANGED] = n_changed, n_unchanged
            if not worthless:
                row = _HEIGHT_OF[n_changed][n_unchanged]
                if is_quiet(counts[0].item(other), counts[1].item(other)):
                    row += HEIGHTS
                steps = steps_of[row][strength]
                if abs(steps - heard[at + EVIDENCE]) >= WORTH_FILING:
                    heard[at + EVIDENCE] = steps
                    told.append(other)
        return np.array(told, np.int64) if told else _NOBODY

    def foretold(self, height: int, strength: float, fresh: float, changed: bool) -> None:
        """Compare a visit with what was heard before it.

        Parameters
        ----------
        height : int
            From 0 to 6, of a quiet page 7 to 13; 14 where nothing was heard.
        strength : float
            Probability that it was news of the page.
        fresh : float
            Probability that the page had not changed, but for its neighbours.
        changed : bool
        """
        self.n_visits += 1
        self._waiting.append((height, strength, fresh, changed))
        if len(self._waiting) == _TOGETHER:
            self._look()

    def _look(self) -> None:
        visits = sorted((*_LOSSES_SO_FAR, *self._waiting), key=itemgetter(0))
        rows, strengths, fresh, changed = (np.array(column) for column in zip(*visits, strict=True))
        self._waiting.clear()
        expected = np.minimum(np.maximum(fresh, _LEAST_PROBABILITY), 1.0 - _LEAST_PROBABILITY)
        # By bias, probability and visit: numpy is fast where the longest stretch stands last.
        by_bias = np.multiply.outer(1.0 - _MORE_OFTEN, expected)
        found = by_bias[:, np.newaxis] * (1.0 - np.multiply.outer(_WORTH, strengths))
        # 1 less that, where a change was found.
        np.abs(np.subtract(changed, found, out=found), out=found)
        np.log(found, out=found)
        # What each row's visits say is taken off its losses so far, which stand before them.
        first = rows.searchsorted(_ROWS)
        found[:, :, first] = self.losses.transpose(1, 2, 0)
        losses = np.subtract.reduceat(found, first, axis=2)
        losses -= losses.min(axis=(0, 1))
        self.losses = np.ascontiguousarray(losses.transpose(2, 0, 1))
        self.worth = _best(self.losses)

    def recall(self, losses: FloatArray) -> None:
        """Go on from the `losses` of an earlier one; those of a version that knew no quiet pages say nothing."""
        if np.shape(losses) != self.losses.shape:
            return
        self.losses = np.array(losses)
        self.worth = _best(self.losses)

    # -- what is known of pages

    def evidence_one(self, page: int) -> float:
        """Return what a page's neighbours take off the log-probability that it is fresh, nats."""
        return self.heard.item(page, EVIDENCE) / STEPS_PER_NAT if self._has_told else 0.0

    def evidence_of(self, pages: IndexArray) -> FloatArray:
        """Return what `evidence_one` returns, of several pages."""
        evidence = np.zeros(pages.size)
        if self._has_told:
            np.divide(self.heard[pages, EVIDENCE], STEPS_PER_NAT, out=evidence)
        return evidence

    def forget(self, page: int) -> None:
        """A page was crawled, or is gone: what was heard before says nothing of it any more."""
        if page < self.heard.shape[0] and self.heard.item(page, STRENGTH):
            self.heard[page] = 0

    def free(self, pages: IndexArray) -> None:
        """Forget pages."""
        self.heard[pages[pages < self.heard.shape[0]]] = 0

    def with_evidence(self) -> IndexArray:
        """Return the pages that have evidence, ascending."""
        return np.flatnonzero(self.heard[:, EVIDENCE])

    def restore(self, heard: npt.NDArray[np.uint8]) -> None:
        """Go on with the `heard` of an earlier one; the array is kept."""
        self.heard = heard
        self._has_told = bool(heard[:, EVIDENCE].any())


@lru_cache(maxsize=16)
def _steps_of(worth: bytes) -> list[list[int]]:
    """Return by height and strength the evidence, in its steps, at some `Neighbours.worth`."""
    strengths = np.arange(STRENGTHS + 1.0) / STRENGTHS
    steps = -np.log1p(-np.multiply.outer(np.frombuffer(worth), strengths)) * STEPS_PER_NAT
    by_height: list[list[int]] = steps.astype(np.intp).tolist()
    return by_height


def _best(losses: FloatArray) -> FloatArray:
    """Return for each height the probability with the least loss, at the bias that is best for all."""
    bias = int(losses.min(axis=2).sum(axis=0).argmin())
    worth: FloatArray = _WORTH[losses[:_HEIGHTS, bias].argmin(axis=1)]
    return worth
