"""Turns: keys go one after the other, and one that had much goes later."""

from __future__ import annotations

from collections.abc import Container, Hashable
from heapq import heappop, heappush, nsmallest
from itertools import count
from typing import Generic, TypeVar

__all__ = ["FairQueue"]

Key = TypeVar("Key", bound=Hashable)


class FairQueue(Generic[Key]):
    """A fair queue of keys (stride scheduling): a turn costs 1 or more; the key that spent least goes next.

    Examples
    --------
    >>> turns = FairQueue()
    >>> for key in "ab":
    ...     turns.come(key)
    >>> turns.first(), turns.took("a"), turns.first()
    ('a', None, 'b')
    """

    def __init__(self) -> None:
        self._at: dict[Key, float] = {}
        self._spent: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._aside: set[Key] = set()
        self._now, self._numbers = 0.0, count()

    def __len__(self) -> int:
        return len(self._at)

    def come(self, key: Key) -> None:
        """Let a key take part: behind those that take part already, so that none of these waits forever. O(log n)."""
        if key not in self._at:
            self._put(key, max(self._spent.pop(key, 0.0), self._now + 1.0))

    def leave(self, key: Key) -> None:
        """Let a key take part no more. What it has spent counts if it comes again. O(1)."""
        at = self._at.pop(key)
        self._aside.discard(key)
        if at > self._now:
            self._spent[key] = at
        if not self._at:
            self._heap.clear()

    def first(self, resting: Container[Key] = ()) -> Key | None:
        """Return whose turn it is, of those that do not rest; None: nobody's. Amortised O(log n)."""
        while self._heap:
            at, _, key = self._heap[0]
            if self._at.get(key) == at and key not in self._aside:
                if key not in resting:
                    return key
                self._aside.add(key)
            heappop(self._heap)
        return None

    def returns(self, key: Key) -> None:
        """Let a key that rested take part again: it goes before those that went meanwhile. O(log n)."""
        if key in self._aside:
            self._aside.discard(key)
            heappush(self._heap, (self._at[key], next(self._numbers), key))

    def took(self, key: Key, cost: float = 1.0) -> None:
        """The first key has had its turn. O(log n)."""
        at = heappop(self._heap)[0]
        self._now = max(self._now, at)
        self._put(key, at + cost)

    def likely(self, n: int) -> list[Key]:
        """Return some keys whose turns come next, about in their order; O(keys log n)."""
        return nsmallest(n, self._at, key=self._at.__getitem__)

    def _put(self, key: Key, at: float) -> None:
        self._at[key] = at
        heappush(self._heap, (at, next(self._numbers), key))
