"""Pacing: requests that wait to be written leave one after the other, at no more than the rate allows."""

from __future__ import annotations

from collections import deque
from math import inf
from typing import Generic, TypeVar

from crawlsched.slot_clock import TIMER_SLACK

__all__ = ["Line", "Pace"]

_T = TypeVar("_T")

# Least distance between two requests, as a share of the mean one. Wider than the slot clock's, so that a second of a
# server's clock has no more than 1.25 rate + 1 either, though some of its requests took a few milliseconds longer.
_GAP = 0.88
# The time of a host's request is remembered for these seconds, once this number of hosts has been asked.
_LONGEST_DISTANCE = 600.0
# As many requests as these seconds have, and one more, may wait for the pace.
_MOST_WAITING = 0.1
_ROOM = 1_000


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
        # As in the slot clock: from when a perfect timer would have called, so that roundings do not add up.
        self._earliest = max(min(self._earliest, now), now - TIMER_SLACK) + self._distance

    def set_rate(self, rate: float, now: float) -> None:
        """Go on at another rate from now on, without a burst."""
        if self._earliest > now:
            self._earliest = now + (self._earliest - now) * self.rate / rate
        self.rate = rate


class Line(Generic[_T]):
    """Requests that wait to be sent, in their order; one that waits for its own host lets others pass.

    Examples
    --------
    >>> line = Line(Pace(rate=10.0))
    >>> line.join("a", host="x", distance=5.0), line.join("b", host="x", distance=5.0), line.join("c", host="y")
    (None, None, None)
    >>> line.leave(0.0), line.leave(0.01), line.leave(0.1), line.leave(0.2)
    ('a', None, 'c', None)
    >>> line.next_time(0.2), line.leave(5.0)
    (5.0, 'b')
    """

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.is_held = False
        self._waiting: deque[tuple[_T, str, float]] = deque()
        self._sent_at: dict[str, float] = {}
        self._room = _ROOM

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, what: _T, host: str, distance: float = 0.0) -> None:
        """Wait for a turn, and for the least distance (seconds) to what was sent to the host before it."""
        self._waiting.append((what, host, distance))

    def passes(self, now: float, host: str, distance: float = 0.0) -> bool:
        """Count a request as sent if nothing waits and it may go now; return whether it may."""
        if self.is_held or self._waiting or self.pace.next_time(now) > now or self._free_at(host, distance) > now:
            return False
        self._note(host, now)
        self.pace.sent(now)
        return True

    def remove(self, what: _T) -> None:
        """Wait no longer."""
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not what)

    def leave_all(self) -> list[_T]:
        """Return all that waits, which is then gone; nothing of it counts as sent."""
        gone = [what for what, _, _ in self._waiting]
        self._waiting.clear()
        return gone

    def leave(self, now: float) -> _T | None:
        """Return what may be sent now, and count it as sent; None: nothing may."""
        if self.is_held or not self._waiting or self.pace.next_time(now) > now:
            return None
        for place, (what, host, distance) in enumerate(self._waiting):
            if self._free_at(host, distance) <= now:
                del self._waiting[place]
                self._note(host, now)
                self.pace.sent(now)
                return what
        return None

    def is_behind(self, now: float) -> bool:
        """Whether requests wait for the pace, and not for a host, so that a new one would be sent later; O(n)."""
        most = 1.0 + _MOST_WAITING * self.pace.rate
        if len(self._waiting) <= most:
            return False
        return sum(self._free_at(host, distance) <= now for _, host, distance in self._waiting) > most

    def next_time(self, now: float) -> float:
        """Return the earliest time at which `leave` may give something; inf: nothing waits, or may be sent."""
        if self.is_held or not self._waiting:
            return inf
        host_free = min(self._free_at(host, distance) for _, host, distance in self._waiting)
        return max(self.pace.next_time(now), host_free)

    def _free_at(self, host: str, distance: float) -> float:
        return self._sent_at.get(host, -inf) + distance if distance > 0.0 else -inf

    def _note(self, host: str, now: float) -> None:
        self._sent_at[host] = now
        if len(self._sent_at) > self._room:
            self._sent_at = {name: at for name, at in self._sent_at.items() if at > now - _LONGEST_DISTANCE}
            self._room = 2 * len(self._sent_at) + _ROOM
