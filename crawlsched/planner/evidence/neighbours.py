"""Neighbours: what visits to the pages next in number say of a page, and how far that can be trusted."""

from __future__ import annotations

from functools import lru_cache
from math import exp

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.pages import LIVE, Pages
from crawlsched.planner.evidence.contest import Contest
from crawlsched.planner.evidence.hint import NOBODY, Hint, Visit

__all__ = ["Neighbours"]


#: What has been heard of a page's neighbours, one byte each: visits that found a change and, after the first of these,
#: visits that found none; the strength of it; and the evidence that it is worth.
CHANGED, UNCHANGED, STRENGTH, EVIDENCE = range(4)
# Bytes of a page's row, and the largest one.
_HEARD, _MOST = 4, 255
# So many pages before it and after it are a page's neighbours.
_NEIGHBOURS = 8
# Heights: shares of neighbours found changed between these, one unchanged neighbour added for what was not visited.
_EDGES: FloatArray = np.array([0.2, 0.35, 0.5, 0.65, 0.8, 0.9])
_HEIGHTS = _EDGES.size + 1
# By numbers of visits that found a change and none: looking a height up takes a tenth of finding it.
_COUNTS = np.arange(_MOST + 1.0)
_HEIGHT_OF = _EDGES.searchsorted(_COUNTS[:, np.newaxis] / (_COUNTS[:, np.newaxis] + _COUNTS + 1.0)).tolist()
# Row of the visits to pages of whose neighbours nothing was heard, after those of pages that change and of quiet ones.
_NOTHING_HEARD = 2 * _HEIGHTS
# How a strength from 0 to 1, and evidence in nats, stand in eight bits.
_STRENGTHS, _STEPS_PER_NAT = 255.0, 64.0
# A change that is less likely than this to be news of a page is none; and a page is filed again when its evidence
# changes by so many steps.
_LEAST_STRENGTH, _WORTH_FILING = 6, 3
# Probabilities that are compared; any but the first has to be better by so many nats: chance gives as much
# to one row in e^10, or to some where what is believed is what brings it about.
_WORTH: FloatArray = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.9, 0.98])
_LEAD = 10.0
# By how much more often pages may be found changed than was expected of them, whatever their neighbours do.
_MORE_OFTEN: FloatArray = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4])


class Neighbours(Hint):
    """What was found on the pages next in number since each page's crawl: 4 bytes a page.

    Parameters
    ----------
    pages : Pages

    Attributes
    ----------
    heard : ndarray of uint8, shape (n, 4)
        By page what `CHANGED` and those after it say; shorter than the pages are many, or empty, as
        long as there was no visit.
    contest : Contest
        With rows for seven heights of pages that change, and seven of quiet pages. Its `best` is the probability w that
        a page has changed, too, at each; 0 until visits have shown otherwise.

    Notes
    -----
    Pages get their numbers when they are found, and those found together are of one part of a site, which changes
    together. So a change found on one of the 16 pages next in number is a noisy ChangeSignal of a page, by nobody sent.
    What is heard since a page's crawl is summed up in two numbers. The *height* is the share of visits to its
    neighbours that found a change; those that found none count where the page visited had itself heard of a change. The
    *strength* is the probability that one of these changes is news: it came after the page's own crawl, if it came at
    any time between the two visits that show it, and was not what that neighbour does anyway. At height h and strength
    f a page is unchanged with the probability (1 - w_h f) times that by its own rate.

    The w_h are learned from the visits themselves (`Contest`). Each w_h is 0 until another one is better by 10 nats.
    Where pages change on their own, or are numbered in no order, it stays 0 and all is as if there were no neighbours.
    A page is *quiet* that hardly any visit found changed. Beside pages that change by the clock it never does what they
    do, and on a site that is rebuilt it does: of such pages the w_h are learned apart.
    """

    heard: npt.NDArray[np.uint8]

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.heard = np.zeros((0, 4), np.uint8)
        self.contest = Contest(_NOTHING_HEARD, _WORTH, _LEAD, _MORE_OFTEN)
        # Whether a page has ever had evidence: where pages change on their own, asking takes no time.
        self._has_told = False

    def make_room(self, n_pages: int) -> None:
        """Make room for so many pages, so that all can be asked for."""
        if self.heard.shape[0] < n_pages:
            self.heard = grown(self.heard, max(n_pages, self._pages.capacity))

    # -- what a visit says

    def visited(self, visit: Visit, evidence: float) -> npt.NDArray[np.int64]:
        """Take in a visit: by all that was known but for neighbours the page had changed, or it had not; O(1)."""
        unchanged = visit.unchanged * exp(-(visit.announced + max(visit.around - evidence, 0.0)))
        return self.hear(visit.page, visit.now, unchanged, visit.changed, expected=visit.is_planned)

    def hear(
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
            if _is_quiet(pages.n_crawls.low.item(page), pages.n_changes.low.item(page)):
                row += _HEIGHTS
            heard[page] = 0
        if expected:
            self.contest.foretold(row, strength / _STRENGTHS, fresh, changed)
        # A page found unchanged takes back what it had heard itself: of nothing else its visit covers the time.
        if fresh * _STRENGTHS + 0.5 < _LEAST_STRENGTH if changed else not strength:
            return NOBODY
        before = pages.crawled_at.item(page)
        told = self._tell(page, before, now, changed, fresh)
        if told.size:
            self._has_told = True
        return told

    def _tell(self, page: int, before: float, now: float, changed: bool, surprise: float) -> npt.NDArray[np.int64]:
        """Let the neighbours hear of a visit; return those whose evidence it changed.

        Over plain numbers: sixteen pages are too few for numpy.
        """
        pages, low = self._pages, max(page - _NEIGHBOURS, 0)
        part = slice(low, min(page + _NEIGHBOURS + 1, pages.n))
        # Written to where they stand.
        heard = self.heard[part].data.cast("B")
        worthless = not (self._has_told or self.contest.best.any())
        host, steps_of = pages.host.item(page), _steps_of(self.contest.best.tobytes())
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
                found = int(surprise * share * _STRENGTHS + 0.5)
                if found < _LEAST_STRENGTH:
                    continue
                n_changed += 1
                if found > strength:
                    heard[at + STRENGTH] = strength = found
            else:
                n_unchanged += 1
            if n_changed == _MOST or n_unchanged == _MOST:
                # Older ones count ever less.
                n_changed, n_unchanged = (n_changed + 1) // 2, n_unchanged // 2
            heard[at], heard[at + UNCHANGED] = n_changed, n_unchanged
            if not worthless:
                row = _HEIGHT_OF[n_changed][n_unchanged]
                if _is_quiet(counts[0].item(other), counts[1].item(other)):
                    row += _HEIGHTS
                steps = steps_of[row][strength]
                if abs(steps - heard[at + EVIDENCE]) >= _WORTH_FILING:
                    heard[at + EVIDENCE] = steps
                    told.append(other)
        return np.array(told, np.int64) if told else NOBODY

    # -- what is known of pages

    def evidence_one(self, page: int) -> float:
        """Return what a page's neighbours take off the log-probability that it is fresh, nats."""
        return self.heard.item(page, EVIDENCE) / _STEPS_PER_NAT if self._has_told else 0.0

    def evidence(self, pages: IndexArray) -> FloatArray:
        """Return the same for several pages."""
        evidence = np.zeros(pages.size)
        if self._has_told:
            np.divide(self.heard[pages, EVIDENCE], _STEPS_PER_NAT, out=evidence)
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


def _is_quiet(n_crawls: int, n_changes: int) -> bool:
    """Return whether hardly any visit has found a page changed, which then seldom does what its neighbours do."""
    return 8 * n_changes + 3 < n_crawls


@lru_cache(maxsize=16)
def _steps_of(worth: bytes) -> list[list[int]]:
    """Return by height and strength the evidence, in its steps, at some probabilities of a contest."""
    strengths = np.arange(_STRENGTHS + 1.0) / _STRENGTHS
    steps = -np.log1p(-np.multiply.outer(np.frombuffer(worth), strengths)) * _STEPS_PER_NAT
    by_height: list[list[int]] = steps.astype(np.intp).tolist()
    return by_height
