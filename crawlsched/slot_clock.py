"""The slot clock: times for crawls at a fixed rate, on a fixed grid, without bursts and without drift."""

from datetime import timedelta
from math import ceil, floor, inf, isfinite

__all__ = ["DAY", "GAP", "TIMER_SLACK", "SlotClock"]

#: A day, in seconds.
DAY = timedelta(days=1).total_seconds()

#: The least distance between two requests, as a share of the mean distance. So in any second there are
#: at most ``1.25 * rate + 1`` requests.
GAP = 0.8

# A timer may wake its caller this many seconds late without an effect on the rate. Event loops round a wait up to a
# whole millisecond, which at 500 slots a second is half the distance between two slots.
TIMER_SLACK = 0.002


class SlotClock:
    """Hands out slots at a fixed rate: slot j is due at ``start + j / rate``, j = 0, 1, 2, ...

    A late slot is made up for. The next slots follow at a distance of ``GAP / rate`` instead of ``1 / rate`` until they
    are on the grid again. So the number of slots is exact in the long run, and there is never a burst. A slot that is
    more than `debt` seconds late is `missed`, and not made up for. The newest slot is never missed, since at low rates
    the distance between slots is longer than `debt`.

    Every method takes O(1) time.

    Parameters
    ----------
    rate : float
        Slots per second, positive.
    start : float
        Time of the first slot, in seconds on the caller's clock, which must be monotonic.
    debt : float
        A slot may be at most this many seconds late; later slots are missed.

    Notes
    -----
    Least distances are between *effective* times, and not between the times at which slots were really taken. The
    effective time is when a perfect timer would have woken the caller, at most `TIMER_SLACK` before the real time.
    Otherwise each rounding of a timer would delay all later slots (446 instead of 500 slots a second were measured).
    With s for the slack, N slots within one second take at most 1 + s seconds of effective time. So the least distance
    is ``GAP * (1 + s) / rate``: then N <= rate / GAP + 1, for any second.

    Examples
    --------
    A caller that comes 0.3 s late to the second slot gets the next ones early until it is on the grid again:

    >>> clock = SlotClock(rate=2.0, start=100.0)
    >>> clock.next_time(100.0)
    100.0
    >>> clock.take(100.0)
    >>> clock.next_time(100.0)
    100.5
    >>> clock.take(100.8)
    >>> round(clock.next_time(100.8), 2)
    101.2
    >>> clock.take(101.2)
    >>> round(clock.next_time(101.2), 2)
    101.6
    """

    __slots__ = ("_debt", "_earliest", "_index", "_origin", "missed", "rate")

    def __init__(self, rate: float, start: float, *, debt: float = 1.0) -> None:
        if not isfinite(start):
            raise ValueError(f"start must be a finite time in seconds, got {start!r}.")
        if not 0.0 <= debt < inf:
            raise ValueError(f"debt must be a number of seconds that is not negative, got {debt!r}.")
        self.rate = _checked_rate(rate)
        self.missed = 0
        self._debt = debt
        self._origin = start  # time of slot 0 of the present grid
        self._index = 0  # number of the next slot
        self._earliest = -inf  # effective time of the next slot at the least distance from the last slot

    def next_time(self, now: float) -> float:
        """Return the earliest time, from `now` on, at which the next slot may be taken."""
        return max(now, self._slot_time(), self._earliest)

    def is_due(self, now: float) -> bool:
        """Whether a slot may be taken now."""
        return self.next_time(now) <= now

    def lateness(self, now: float) -> float:
        """Return for how many seconds the next slot has waited to be taken, skipped or paid; 0 if it is not due yet."""
        return max(0.0, now - self._slot_time())

    def take(self, now: float) -> None:
        """Use one slot now. Check `is_due` before; a slot that is taken too early delays the next slots."""
        self._give_up_old_slots(now)
        effective = max(self._slot_time(), self._earliest, now - TIMER_SLACK)
        self._earliest = effective + GAP * (1.0 + TIMER_SLACK) / self.rate
        self._index += 1

    def pay(self, now: float) -> None:
        """For a request that was sent without a slot, use up a late slot or, if there is none, the next slot."""
        self.take(now)

    def skip(self, now: float) -> int:
        """Give up all slots up to now, and return their number. They are not made up for."""
        passed = max(0, floor((now - self._slot_time()) * self.rate) + 1)
        self._index += passed
        # Above, rounding may have left out a slot that is due exactly now.
        if self._slot_time() <= now:
            self._index += 1
            passed += 1
        return passed

    def set_rate(self, rate: float, now: float) -> None:
        """Change the rate without a burst: the number of late slots, or of slots taken early, stays the same."""
        _checked_rate(rate)
        self._give_up_old_slots(now)
        stretch = self.rate / rate
        self._origin = now + (self._slot_time() - now) * stretch
        self._index = 0
        if self._earliest > now:
            self._earliest = now + (self._earliest - now) * stretch
        self.rate = rate

    def _slot_time(self) -> float:
        # The time is computed from the origin, since repeated additions of 1/rate would add up rounding errors.
        return self._origin + self._index / self.rate

    def _give_up_old_slots(self, now: float) -> None:
        late = now - self._slot_time()
        if late <= self._debt:
            return
        too_old = ceil((late - self._debt) * self.rate)
        newest = floor(late * self.rate)
        given_up = min(too_old, newest)
        self._index += given_up
        self.missed += given_up


def _checked_rate(rate: float) -> float:
    if not (rate > 0.0 and isfinite(rate)):
        raise ValueError(f"rate must be a positive number of slots per second, got {rate!r}.")
    return rate
