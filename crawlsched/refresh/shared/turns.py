"""Turns: which shard of a process is asked first at a slot."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from math import inf

__all__ = ["RoundRobin", "Turns"]

# At each slot so many shards are asked what their best page is worth, some microseconds each.
_LOOKED_AT = 16
# A shard that has left so many of its turns to others goes first, whatever its pages are worth.
_MOST_OWED = 64.0


class Turns:
    """The shard whose best page is worth most goes first, as one process for all of them would let that page go.

    What a shard leaves to others comes back to it later: shards do not learn quite the same, and none should wait for
    minutes because its new pages are worth a little less. One that has just come goes first once, for its hosts have
    waited while it was taken over.

    Examples
    --------
    >>> turns, worth, shares = Turns(), {1: 5.0, 2: 7.0, 3: 5.0}, {1: 1.0, 2: 2.0, 3: 1.0}
    >>> next(turns.order(worth, worth.__getitem__, worth.__getitem__))
    2

    Of shards whose pages are worth the same, as in a first crawl, the one goes that went longest ago:

    >>> turns.took(1, shares)
    >>> list(turns.order(worth, worth.__getitem__, worth.__getitem__))
    [2, 3, 1]
    """

    def __init__(self) -> None:
        self._owed: dict[int, float] = {}
        self._bounds: dict[int, float] = {}
        # By shard, which turn of all was its last.
        self._went: dict[int, int] = {}
        self._n_turns = 0
        # Those asked at the last slot, and who is looked at next.
        self._asked: list[int] = []
        self._next = 0

    def order(
        self,
        shards: Iterable[int],
        bound: Callable[[int], float],
        value: Callable[[int], float],
        has_risen: Callable[[int], bool] = lambda shard: False,
    ) -> Iterator[int]:
        """Give the shards in the order in which they are asked at this slot.

        Parameters
        ----------
        shards : iterable of int
            Those that may go.
        bound : callable
            ``bound(shard)`` gives what none of its pages that may go now is worth more than; -inf: none may go.
        value : callable
            ``value(shard)`` gives what the best of them is worth, which takes longer.
        has_risen : callable, optional
            ``has_risen(shard)`` says whether the bound may be much higher than at the last slot, as it is when a host
            may be asked again. All shards are asked that, and only some others are looked at.
        """
        shards = sorted(shards)
        turn = self._next % max(len(shards), 1)
        self._next = turn + _LOOKED_AT
        risen = filter(has_risen, shards)
        for shard in {*self._asked, *risen, *(shards[turn:] + shards[:turn])[:_LOOKED_AT]}.intersection(shards):
            self._bounds[shard] = bound(shard)
        self._asked = []
        # The highest bound is replaced by the value until that is the highest: no other page can be worth more then.
        known = [shard for shard in shards if shard in self._bounds]
        waiting = [
            (self._owed.get(s, _MOST_OWED) < _MOST_OWED, -self._bounds[s], False, self._went.get(s, 0), s)
            for s in known
        ]
        heapify(waiting)
        while waiting:
            is_owed_less, negative, is_value, went, shard = waiting[0]
            if is_value:
                heappop(waiting)
                if negative < inf:
                    yield shard
                continue
            self._asked.append(shard)
            self._bounds[shard] = value(shard)
            heapreplace(waiting, (is_owed_less, -self._bounds[shard], True, went, shard))

    def took(self, shard: int, shares: Mapping[int, float]) -> None:
        """A shard has used the slot, of all those that may go and have these shares of the rate."""
        total = max(sum(shares.values()), 1e-9)
        for each in shares.keys() & self._owed.keys():
            owed = self._owed[each] + shares[each] / total - (each == shard)
            self._owed[each] = min(max(owed, -_MOST_OWED), _MOST_OWED + 1.0)
        self._owed.setdefault(shard, 0.0)
        self._n_turns += 1
        self._went[shard] = self._n_turns

    def leave(self, shard: int) -> None:
        """A shard is gone."""
        self._owed.pop(shard, None)
        self._went.pop(shard, None)
        self._bounds.pop(shard, None)


class RoundRobin:
    """The shards one after the other, where one is as good as another: who has had something is asked last.

    Examples
    --------
    >>> rounds = RoundRobin()
    >>> rounds.took(3)
    >>> rounds.order([5, 3, 1])
    [5, 1, 3]
    """

    def __init__(self) -> None:
        self._last = -1

    def order(self, shards: Iterable[int]) -> list[int]:
        """Give the shards in the order in which they are asked."""
        in_order = sorted(shards)
        behind = bisect_right(in_order, self._last)
        return in_order[behind:] + in_order[:behind]

    def took(self, shard: int) -> None:
        """A shard has had something."""
        self._last = shard
