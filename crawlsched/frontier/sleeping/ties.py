"""Followers: pages that are worth the same as another one at all times, and stand behind it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, IndexArray, LevelArray
from crawlsched.frontier.places import BEHIND, RUNNING

__all__ = ["Followers"]


class _Queue(NamedTuple):
    """Who stands behind a page: an entry counts only while its page's place is that of the queue."""

    place: int
    pages: npt.NDArray[np.uint32]
    alike: bytes  # what all of them were like when they came here; whoever has changed since leaves


class Followers:
    """Who stands behind whom: at the beginning of a crawl thousands of pages may be equal in all that is known of them.

    One of them, the lowest, leads: it is awake or asleep for all, and when it goes the next one takes over. All
    followers have higher numbers than the page that they stand behind, so a tie is decided as among all of them.

    Attributes
    ----------
    queues : dict
        By place; empty where nobody stands behind another.
    """

    def __init__(self) -> None:
        self.queues: dict[int, _Queue] = {}
        self._next_place = BEHIND

    def __bool__(self) -> bool:
        return bool(self.queues)

    def gather(self, pages: IndexArray, alike: npt.NDArray[np.void], place: LevelArray) -> BoolArray:
        """Let pages stand behind the first of those that they are alike; O(n log n).

        Parameters
        ----------
        pages : ndarray of int, shape (n,)
            Distinct; those behind them move with them.
        alike : ndarray of void, shape (n,)
            Equal for pages that are worth the same at all times. A page that is another now than those behind it, and
            has not been filed since, stays where it is, and so do they.
        place : ndarray of int32
            Where each page stands; set for those that follow.

        Returns
        -------
        ndarray of bool, shape (n,)
            Which pages follow now.
        """
        follows = np.zeros(pages.size, bool)
        true = self._lead_their_like(pages, alike)
        rows = np.flatnonzero(true)
        order = rows[np.lexsort((pages[rows], np.unique(alike[rows], return_inverse=True)[1]))]
        ranked = alike[order]
        firsts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]])[: ranked.size])
        for first, stop in zip(firsts.tolist(), [*firsts[1:].tolist(), order.size], strict=True):
            if stop - first > 1:
                follows[order[first + 1 : stop]] = True
                self._stand(pages[order[first:stop]], ranked[first].tobytes(), place)
        return follows

    def _lead_their_like(self, pages: IndexArray, alike: npt.NDArray[np.void]) -> BoolArray:
        """Return which pages have nobody behind them, or only those that they are alike."""
        true = np.ones(pages.size, bool)
        for row in np.flatnonzero(np.isin(pages, self.leaders())).tolist() if self.queues else ():
            true[row] = self.queues[pages.item(row)].alike == alike[row].tobytes()
        return true

    def _stand(self, pages: IndexArray, alike: bytes, place: LevelArray) -> None:
        behind = [pages[1:]]
        for page in pages.tolist() if self.queues else ():
            queue = self.queues.pop(page, None)
            if queue is not None:
                behind.append(queue.pages[place[queue.pages] == queue.place].astype(np.intp))
        self._lead(pages.item(0), np.sort(np.concatenate(behind)).astype(np.uint32), alike, place)

    def _lead(self, page: int, behind: npt.NDArray[np.uint32], alike: bytes, place: LevelArray) -> None:
        if self._next_place == RUNNING:
            raise OverflowError("The frontier has no number left for one more queue of equal pages; start it again.")
        place[behind] = self._next_place
        self.queues[page] = _Queue(self._next_place, behind, alike)
        self._next_place += 1

    def succeed(self, page: int, place: LevelArray) -> int | None:
        """Return who takes over from a page that leaves, and let the others stand behind; amortised O(1)."""
        queue = self.queues.pop(page, None)
        if queue is None:
            return None
        pages = queue.pages
        for at in range(pages.size):
            successor = pages.item(at)
            if place[successor] == queue.place:
                if at + 1 < pages.size:
                    self.queues[successor] = queue._replace(pages=pages[at + 1 :])
                return successor
        return None

    def behind(self, page: int, place: LevelArray) -> IndexArray:
        """Return who stands behind a page, ascending; O(n)."""
        queue = self.queues.get(page)
        if queue is None:
            return np.empty(0, np.intp)
        pages: IndexArray = queue.pages[place[queue.pages] == queue.place].astype(np.intp)
        return pages

    def leaders(self) -> list[int]:
        """Return the pages that others stand behind; O(their number)."""
        return list(self.queues)
