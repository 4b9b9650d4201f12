"""Pacing: requests that wait to be written leave one after the other, at no more than the rate allows."""

from __future__ import annotations

from math import inf

from crawlsched.slot_clock import TIMER_SLACK

__all__ = ["Pace"]

# Least distance between two requests, as a share of the mean one. Wider than the slot clock's, so that a second of a
# server's clock has no more than 1.25 rate + 1 either, though some of its requests took a few milliseconds longer.
_GAP = 0.88


class Pace:
    """The least distance between two requests: in any second at most ``1.25 * rate + 1`` are sent.

    The slot clock keeps the long run exact. This keeps requests that a name server, a robots.txt or a middleware has
    held up from leaving in a burst.

    Examples
    --------
    >>> pace = Pace(rate=10.0)
    >>> pace.sent(100.0)
    >>> round(pace.next_time(100.0), 2)
    100.09
    """

    __slots__ = ("_earliest", "rate")

    def __init__(self, rate: float, last_sent: float = -inf) -> None:
        self.rate = rate
        self._earliest = last_sent + self._distance

    @property
    def _distance(self) -> float:
        return _GAP * (1.0 + TIMER_SLACK) / self.rate

    def next_time(self, now: float) -> float:
        """Return the earliest time at which a request may be sent: `now` if it may be sent now."""
        # Times far ahead are those of a clock that was set back.
        return max(now, min(self._earliest, now + self._distance))

    def sent(self, now: float) -> None:
        """A request is sent now."""
        # As in the slot clock, counted from the moment a perfect timer would have called: so delays do not add up.
        self._earliest = max(min(self._earliest, now), now - TIMER_SLACK) + self._distance

    def set_rate(self, rate: float, now: float) -> None:
        """Go on at another rate from now on, without a burst."""
        if self._earliest > now:
            self._earliest = now + (self._earliest - now) * self.rate / rate
        self.rate = rate
