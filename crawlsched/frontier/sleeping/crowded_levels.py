"""Crowded beds: the cutoff, when it falls, comes down to thousands of pages that would all be looked at in one pick."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.frontier.hosts.resting import RestingHosts
from crawlsched.frontier.places import LOWEST
from crawlsched.frontier.sleeping.level_queue import Ladder
from crawlsched.frontier.sleeping.level_queues import Ladders
from crawlsched.frontier.sleeping.levels import FALLING_SHARE

__all__ = ["Crowds"]


# Beds with more sleepers than this are thinned out when the cutoff will be there in so many ticks.
_CROWD = 128
_FORESEEN = 64
# Levels a tick; among ten million pages thousands sleep under one level to which the cutoff comes down in some ticks.
_LEAST_FALL = 1 / 16
_MOST_THINNED = 128
# Closer to the cutoff than this there is no lower bed for a page that is worth what its bed says.
_CLOSE = FALLING_SHARE
# Beds are thinned out in this share of the time until the cutoff is there.
_EARLY = 0.5
# They are looked for again after so many picks: to go through all beds takes a tenth of a millisecond and more.
_LOOKED_FOR_EVERY = 128


class Crowds:
    """The crowded beds that the cutoff is coming down to, and how many of their pages to look at with each pick.

    Parameters
    ----------
    ladders : Ladders
    resting : RestingHosts

    Attributes
    ----------
    fall : float
        How fast the cutoff falls, levels a tick.
    beds : list of (Ladder, int, int)
        The crowded beds, highest last: ladder, level and how many pages there are still to be looked at.
    owed : int
        How many of these pages are to be looked at by now.
    """

    def __init__(self, ladders: Ladders, resting: RestingHosts) -> None:
        self._ladders = ladders
        self._resting = resting
        self.fall = 0.0
        self._cutoff_before = LOWEST
        self.beds: list[tuple[Ladder, int, int]] = []
        self._thinned = 0  # so many of their pages with each pick
        self.owed = 0
        self._picks = 1  # in a turn
        self._since = _LOOKED_FOR_EVERY  # so many picks ago crowded beds were looked for

    def fell(self, cutoff: int, picks: int) -> None:
        """Learn where the cutoff is when a turn of so many picks begins; O(1)."""
        fallen, self._cutoff_before = self._cutoff_before - cutoff, cutoff
        self.fall = max(0.0, self.fall + (fallen - self.fall) / 8)
        self._picks = picks
        self._since += picks
        if self.fall < _LEAST_FALL or cutoff == LOWEST:
            self.beds, self._thinned, self._since = [], 0, _LOOKED_FOR_EVERY

    def are_unforeseen(self, most: float) -> bool:
        """Whether the cutoff is falling, and it is time to look for crowded beds again; O(1).

        `most` as for `foresee`; with numpy alone that is twice as often.
        """
        every = _LOOKED_FOR_EVERY if most == np.inf else _LOOKED_FOR_EVERY // 2
        return self._since >= every and self.fall >= _LEAST_FALL and self._cutoff_before != LOWEST

    def foresee(self, cutoff: int, most: float) -> None:
        """Find the beds that the cutoff will have come down to in the next ticks; O(beds).

        `most` is how many pages may be looked at with one pick, inf with compiled code: a bed with more is crowded.
        """
        self.beds, self._thinned, self._since = [], 0, 0
        crowd = int(min(_CROWD, most))
        deep = cutoff - int(_FORESEEN * self.fall)
        for ladder in self._ladders:
            host = ladder.host
            if ladder.sleepers <= crowd or host in self._resting or self._resting.has_own_cutoff(host, cutoff):
                continue  # not soon
            crowded = ladder.crowded(deep, crowd)
            self.beds += [(ladder, level, n) for level, n in crowded if level < cutoff - _CLOSE]
        self.beds.sort(key=lambda crowd: crowd[1])
        before = 0
        for _, level, n in reversed(self.beds):
            before += n
            # So many with each pick that each bed is thinned out when the cutoff is there, or half way there: it comes
            # down by whole beds, and not as evenly as that.
            ticks = max(_EARLY * (cutoff - level) / self.fall, 1.0)
            self._thinned = max(self._thinned, min(_MOST_THINNED, int(before / ticks / self._picks) + 1))

    def owe(self) -> None:
        """Count one more pick; O(1)."""
        self.owed += self._thinned

    def take(self) -> IndexArray:
        """Take as many pages as are owed out of the highest crowded bed; a call for what is left of it costs little.

        Amortised O(n).
        """
        ladder, level, there = self.beds.pop()
        # Not more than there were: some may come back, and would be taken again and again.
        pages = ladder.take(level, min(self.owed, there))
        self.owed = 0
        if 0 < pages.size < there:
            self.beds.append((ladder, level, there - pages.size))
        return pages

    def some(self, most: int) -> IndexArray:
        """Return as many pages of the highest crowded beds as are owed, or `most`, which stay there for now.

        Amortised O(n).
        """
        n = min(self.owed, most)
        self.owed -= n
        found = []
        while n > 0 and self.beds:
            ladder, level, there = self.beds.pop()
            pages = ladder.some(level, min(n, there))
            if pages.size == n < there:
                self.beds.append((ladder, level, there - n))
            # Otherwise that was all of it: to ask once more would give the same pages, which are still there.
            found.append(pages)
            n -= pages.size
        return np.concatenate(found) if found else np.empty(0, np.intp)
