"""Turns: which shard's turn it is at a slot, so that each gets its share of the rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Turns"]


class Turns:
    """Stride scheduling (Waldspurger and Weihl, 1995): who has a share of a third gets every third slot.

    A shard that had nothing to give at its turns does not get them back: it goes on where the others are.

    Examples
    --------
    >>> turns, given = Turns(), []
    >>> for _ in range(6):
    ...     shard = next(turns.order([1, 2], {1: 2.0, 2: 1.0}))
    ...     turns.took(shard, 2.0 if shard == 1 else 1.0)
    ...     given.append(shard)
    >>> sorted(given)
    [1, 1, 1, 1, 2, 2]
    """

    def __init__(self) -> None:
        self._passed: dict[int, float] = {}
        self._now = 0.0

    def order(self, shards: Iterable[int], shares: Mapping[int, float]) -> Iterator[int]:
        """Give the shards in the order in which they are asked at this slot."""
        at = {shard: self._place(shard, shares.get(shard, 0.0)) for shard in shards}
        return iter(sorted(at, key=lambda shard: (at[shard], shard)))

    def _place(self, shard: int, share: float) -> float:
        step = 1.0 / max(share, 1e-9)
        # Not further behind than one of its own steps: what it did not use is gone.
        place = max(self._passed.get(shard, self._now), self._now - step)
        self._passed[shard] = place
        return place + step

    def took(self, shard: int, share: float) -> None:
        """A shard has used the slot."""
        place = self._place(shard, share)
        self._passed[shard] = place
        self._now = max(self._now, min(self._passed.values()))

    def leave(self, shard: int) -> None:
        """A shard is gone."""
        self._passed.pop(shard, None)
