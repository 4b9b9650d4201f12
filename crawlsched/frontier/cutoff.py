"""Where the cutoff has been for some time, and how fast that falls: what pages sleep in view of."""

from __future__ import annotations

from crawlsched.frontier.places import LOWEST

__all__ = ["Calm"]

# Where the cutoff has been for some time is the lowest of the last so many turns, or of up to twice as many.
_CALM_TURNS = 64


class Calm:
    """The lowest cutoff of some turns; after a passing rise the cutoff comes back to it.

    Attributes
    ----------
    level : int
        Where the cutoff has been for some time, or lower.
    drift : float
        Levels a tick by which that falls; 0 where it rises, or is not known.
    """

    def __init__(self) -> None:
        self.suppose(LOWEST)

    def suppose(self, level: int) -> None:
        """Suppose that the cutoff has been at this level for some time; O(1)."""
        self.level, self.drift = level, 0.0
        # The lowest cutoff of some turns, of those since, and how many these are.
        self._before, self._since, self._n_since = level, level, 0

    def turn(self, cutoff: int, ticks: int) -> None:
        """Follow the cutoff, at the beginning of a turn of some ticks: down at once, up after some turns; O(1)."""
        self._since = min(self._since, cutoff)
        self._n_since += ticks
        if self._n_since >= _CALM_TURNS:
            self.drift = max(self._before - self._since, 0) / self._n_since
            self._before, self._since, self._n_since = self._since, cutoff, 0
        self.level = min(self._before, self._since)

    def at_most(self, level: int) -> None:
        """Follow the cutoff down to a level; O(1)."""
        self.level = min(self.level, level)

    @property
    def comes_back(self) -> float:
        """Which part of what it has above `level` the cutoff falls by in a tick, after a passing rise; O(1)."""
        return 1.0 / _CALM_TURNS
