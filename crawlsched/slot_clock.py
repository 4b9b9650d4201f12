"""The slot clock: times for crawls at a fixed rate, on an absolute grid, without bursts and without drift."""

from datetime import timedelta
from math import ceil, floor, inf, isfinite

__all__ = ["DAY", "GAP", "TIMER_SLACK", "SlotClock"]

#: A day, in seconds.
DAY = timedelta(days=1).total_seconds()

#: Least distance between two requests, as a share of the mean one: no second has more than 1.25 rate + 1 requests.
GAP = 0.8

# A timer may wake its caller this many seconds late, and the rate is still kept. Event loops round a wait up to a whole
# millisecond, which at 500 slots a second is half the distance between two slots.
TIMER_SLACK = 0.002


class SlotClock:
    """Hand out slots at a fixed rate: slot j is due at ``start + j / rate``, j = 0, 1, 2, ...

    A late slot is paid back: the next ones follow at ``GAP / rate`` instead of ``1 / rate`` until the grid is
    reached again. So the count in the long run is exact, and no burst ever goes out. A slot that is more than `debt`
    seconds late is `missed`, and not paid back. The newest slot is never missed: at low rates a slot takes longer than
    `debt`.

    Every method takes O(1) time.

    Parameters
    ----------
    rate : float
        Slots per second, positive.
    start : float
        Time of the first slot, in seconds on the caller's clock, which never goes back.
    debt : float
        The most seconds that a slot may be late to be paid back.

    Notes
    -----
    Least distances are kept between *effective* times, and not between the times at which slots were really taken. The
    effective time is when a perfect timer would have woken the caller: at most `TIMER_SLACK` before the real one.
    Without this each rounding of a timer would delay all later slots (446 instead of 500 slots a second were measured).
    With s for the slack, N slots within a second span at most 1 + s seconds of effective time. So the least distance is
    ``GAP * (1 + s) / rate``: then N <= rate / GAP + 1, for any second.

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

    __slots__ = ("_debt", "_earliest", "_index", "_origin", "missed", "rate", "taken")

    def __init__(self, rate: float, start: float, *, debt: float = 1.0) -> None:
        if not isfinite(start):
            raise ValueError(f"start must be a finite time in seconds, got {start!r}.")
        if not 0.0 <= debt < inf:
            raise ValueError(f"debt must be a number of seconds that is not negative, got {debt!r}.")
        self.rate = _checked_rate(rate)
        self.missed = self.taken = 0
        self._debt = debt
        self._origin = start  # time of slot 0 of the present grid
        self._index = 0  # the slot that comes next
        self._earliest = -inf  # effective time of the next slot at the least distance from the last one

    def next_time(self, now: float) -> float:
        """Return the earliest time, from `now` on, at which the next slot may be taken."""
        return max(now, self._slot_time(), self._earliest)

    def is_due(self, now: float) -> bool:
        """Whether a slot may be taken now."""
        return self.next_time(now) <= now

    def take(self, now: float) -> None:
        """Use one slot now; the caller has checked `is_due` (a slot taken too early counts as one of the next)."""
        self._give_up_old_slots(now)
        effective = max(self._slot_time(), self._earliest, now - TIMER_SLACK)
        self._earliest = effective + GAP * (1.0 + TIMER_SLACK) / self.rate
        self._index += 1
        self.taken += 1

    def pay(self, now: float) -> None:
        """Remove one slot for a request that went out without one: a late slot, or else the next."""
        self.take(now)

    def skip(self, now: float) -> int:
        """Let all slots up to now pass unused, and return their number: they are not paid back."""
        passed = max(0, floor((now - self._slot_time()) * self.rate) + 1)
        self._index += passed
        # Rounding may put the product above to either side of a slot that falls on `now`.
        if self._slot_time() <= now:
            self._index += 1
            passed += 1
        return passed

    def set_rate(self, rate: float, now: float) -> None:
        """Go on at another rate, without a burst: the number of slots owed or paid ahead stays the same."""
        _checked_rate(rate)
        self._give_up_old_slots(now)
        stretch = self.rate / rate
        self._origin = now + (self._slot_time() - now) * stretch
        self._index = 0
        if self._earliest > now:
            self._earliest = now + (self._earliest - now) * stretch
        self.rate = rate

    def _slot_time(self) -> float:
        # Computed from the origin each time: adding 1/rate again and again would add up rounding errors.
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
