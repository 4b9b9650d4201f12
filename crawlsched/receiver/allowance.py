"""An allowance: how much of something is taken at most, at a steady rate with some in reserve."""

from __future__ import annotations

__all__ = ["Allowance"]


class Allowance:
    """A token bucket: `rate` units a second, `reserve` of them at once.

    Examples
    --------
    >>> allowance = Allowance(rate=1.0, reserve=2.0, now=0.0)
    >>> [allowance.take(1, now) for now in (0.0, 0.0, 0.0, 1.0)]
    [True, True, False, True]
    >>> allowance.wait(2, 1.0)
    2.0
    """

    def __init__(self, rate: float, reserve: float, now: float) -> None:
        self._rate = rate
        self._reserve = reserve
        self._left = reserve
        self._at = now

    def _refill(self, now: float) -> None:
        self._left = min(self._reserve, self._left + self._rate * max(now - self._at, 0.0))
        self._at = max(now, self._at)

    def take(self, n: float, now: float) -> bool:
        """Take units; False if there are too few, and then none is taken."""
        self._refill(now)
        if n > self._left:
            return False
        self._left -= n
        return True

    def wait(self, n: float, now: float) -> float:
        """Return after how many seconds these units can be taken."""
        self._refill(now)
        return max(0.0, (min(n, self._reserve) - self._left) / self._rate)
