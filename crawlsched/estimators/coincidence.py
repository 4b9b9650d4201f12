"""Coincidence: whether two sources announce the same changes, so that what both say counts once."""

from __future__ import annotations

__all__ = ["Coincidence"]

# Announcements that come together this many times as often as they would by chance are of the same changes.
_LIFT = 2.0
# Before a pair of sources has been compared it is taken for one that announces the same; a few chances undo that.
_FIRST = (1.0, 0.25)
# Comparisons that are remembered: about so many coincidences expected by chance, or seen.
_REMEMBERED = 200.0


class Coincidence:
    """How often two sources announced a page together, and how often they would have by chance.

    Examples
    --------
    >>> coincidence = Coincidence()
    >>> for together in [True] * 8 + [False] * 2:
    ...     coincidence.compared(1, 2, together, chance=0.05)
    >>> coincidence.is_of_the_same(2, 1)
    True
    >>> for together in [False] * 30:
    ...     coincidence.compared(3, 4, together, chance=0.1)
    >>> coincidence.is_of_the_same(3, 4)
    False
    """

    def __init__(self) -> None:
        self._pairs: dict[tuple[int, int], tuple[float, float]] = {}

    def compared(self, source: int, other: int, together: bool, chance: float) -> None:
        """Count an announcement by one source of a page, and whether the other's came `together` with it.

        `chance` is the probability of that if the two sources had nothing to do with each other.
        """
        pair = (min(source, other), max(source, other))
        seen, expected = self._pairs.get(pair, (0.0, 0.0))
        seen, expected = seen + together, expected + chance
        fading = min(1.0, _REMEMBERED / max(seen, expected, 1.0))
        self._pairs[pair] = seen * fading, expected * fading

    def is_of_the_same(self, source: int, other: int) -> bool:
        """Whether announcements of two sources that come together are of the same change."""
        seen, expected = self._pairs.get((min(source, other), max(source, other)), (0.0, 0.0))
        return seen + _FIRST[0] > _LIFT * (expected + _FIRST[1])
