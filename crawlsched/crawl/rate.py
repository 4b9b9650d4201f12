"""The rate of a crawl: its slots, its second gate, its pauses and its hours."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from math import inf, isfinite
from typing import Any

from crawlsched.crawl.hosts import Hosts
from crawlsched.crawl.page_requests import Share
from crawlsched.planner import Planner
from crawlsched.settings import Settings
from crawlsched.slot_clock import TIMER_SLACK, SlotClock

__all__ = ["CrawlRate", "Pace"]

logger = logging.getLogger(__name__)

# In a shared crawl, a process makes up for the lost slots of at most this time (seconds). After a restart of the
# database server, all processes do so at the same time, which adds 2 % to the requests of ten seconds.
_LONGEST_SHARED_DEBT = 0.2
# At most one request, and the requests of this time (seconds), wait for their turn together.
_MOST_WAITING = 0.1
# The least distance between two requests is this share of the mean distance. It is larger than the slot clock's share,
# since some requests take a few milliseconds longer. So a server, too, gets at most 1.25 rate + 1 requests in any
# second.
_GAP = 0.88


class Pace:
    """The least distance between two requests: in any second at most ``1.25 * rate + 1`` are sent.

    The slot clock keeps the rate exact in the long run. `Pace` prevents a burst of requests that a name server, a
    robots.txt or a middleware has delayed.

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
        # A time far ahead means that the clock was set back.
        return max(now, min(self._earliest, now + self._distance))

    def sent(self, now: float) -> None:
        """A request is sent now."""
        # As in the slot clock, the distance counts from the moment at which a perfect timer would have called, so
        # delays do not add up.
        self._earliest = max(min(self._earliest, now), now - TIMER_SLACK) + self._distance

    def set_rate(self, rate: float, now: float) -> None:
        """Go on at another rate from now on, without a burst."""
        if self._earliest > now:
            self._earliest = now + (self._earliest - now) * self.rate / rate
        self.rate = rate


class CrawlRate:
    """When requests go out.

    Attributes
    ----------
    rested_at : float
        When the crawl last rested (nothing was sent). Requests that waited at the second gate at that time are not
        lost.
    """

    def __init__(
        self,
        settings: Settings,
        planner: Planner,
        hosts: Hosts,
        count: Callable[..., None],
        note: Callable[[float], object],
        now: float,
        sharing: Share | None = None,
    ) -> None:
        self._sharing = sharing
        self.slots = self._clock_of(settings.bandwidth, now)  # the grid of slots
        self.pace = Pace(settings.bandwidth)  # of the second gate
        self.n_waiting = 0  # requests that wait at the second gate
        #: Called when the rate changes, and when a rest begins or ends.
        self.on_rate: Callable[[], None] = lambda: None
        self.last_sent_at: float | None = None  # when the last request was written
        self.paused_since: float | None = None  # the beginning of the present pause; None: no pause
        self.rested_at = -inf
        self.slot_counts = dict.fromkeys(("used", "idle", "no_free_host", "paid", "paused"), 0)
        self._planner = planner
        self._hosts = hosts
        self._hosts.bandwidth = settings.bandwidth
        self._count = count
        self._note = note
        self._hours = settings.hours
        self._rate_by_hours: float | None = None

    def take_over(self, notes: Mapping[str, Any], now: float) -> None:
        """Read what the last run stored with the lease: when it sent its last request, and whether it was paused."""
        last, paused_since = notes.get("last_sent_at"), notes.get("paused_since")
        self.last_sent_at = min(float(last), now) if isinstance(last, int | float) and isfinite(last) else None
        self.paused_since = float(paused_since) if isinstance(paused_since, int | float) else None

    def begin(self, now: float) -> None:
        """Begin the slots after the last run's last request, so that restarts add no requests."""
        if self.paused_since is not None:
            logger.warning("The crawl is paused and sends nothing; `crawlsched bandwidth resume` lets it go on.")
        if self._sharing is None:
            self.follow_hours(now)
        self.on_rate()
        rate = self.slots.rate if self._sharing is None else self._sharing.rate
        last = -inf if self.last_sent_at is None else self.last_sent_at
        self.slots = self._clock_of(rate, max(now, last + 1.0 / rate))
        self.pace = Pace(rate, last)

    def _clock_of(self, rate: float, begin: float) -> SlotClock:
        return SlotClock(rate, begin) if self._sharing is None else SlotClock(rate, begin, debt=_LONGEST_SHARED_DEBT)

    def sent(self, now: float) -> None:
        """A request is written now."""
        self.last_sent_at = now
        if self.slots.rate < 1.0 and self._sharing is None:
            # Where slots are rare, the time of each request is written down. So the rate is kept even if a supervisor
            # restarts a crashing crawl again and again.
            self._note(now)

    def pay(self, now: float) -> None:
        """Give up a slot for a request that was sent without one."""
        self.slots.pay(now)
        self.count_slots("paid")

    def count_slots(self, kind: str, n: int = 1) -> None:
        """Count slots by what became of them: used, idle, no_free_host, paused, or given up for another request."""
        self.slot_counts[kind] += n
        self._count(f"crawlsched/slots/{kind}", n)

    @property
    def rests(self) -> bool:
        """Whether nothing may go out: in a pause, or by the hours of CRAWLSCHED_BANDWIDTH."""
        if self._sharing is not None:
            return self._sharing.rests
        return self.paused_since is not None or self._rate_by_hours == 0.0

    @property
    def is_behind(self) -> bool:
        """Whether so many requests wait for their turn that another request would have to wait, too."""
        return self.n_waiting > 1.0 + _MOST_WAITING * self.pace.rate

    def set_bandwidth(self, bandwidth: float, now: float) -> None:
        """Crawl at another rate from now on; processes that share the collection follow within some seconds."""
        if self._sharing is not None:
            self._sharing.set_bandwidth(bandwidth)
            return
        self._set(bandwidth, now)
        self._planner.set_bandwidth(bandwidth, now)
        logger.info("The bandwidth is %g crawls a second from now on.", bandwidth)
        # A rate that was set by hand is in force until the next start.
        self._hours = self._rate_by_hours = None
        self.on_rate()

    def follow_hours(self, now: float) -> None:
        """Crawl at the present rate of CRAWLSCHED_BANDWIDTH; the planner uses the mean of the day."""
        if self._hours is None:
            return
        rate = self._hours.rate_at(now)
        if rate == self._rate_by_hours:
            return
        self._rate_by_hours = rate
        self._planner.set_bandwidth(self._hours.mean(now), now)  # the mean differs on days when the clocks change
        if rate:
            self._set(rate, now)
        said = f"{rate:g} crawls a second go out" if rate else "nothing goes out"
        logger.info("By the hours of CRAWLSCHED_BANDWIDTH %s from now on.", said)
        self.on_rate()

    def pause(self, now: float, *, paused: bool = True) -> None:
        """Send nothing from now on, also after a restart; with `paused` False, go on."""
        if paused != (self.paused_since is not None):
            self.paused_since = now if paused else None
            logger.info("The crawl pauses: nothing goes out until it is resumed." if paused else "The crawl goes on.")
        self.on_rate()
        self._note(now)

    def _set(self, rate: float, now: float) -> None:
        self.slots.set_rate(rate, now)
        self._hosts.bandwidth = rate
        self.pace.set_rate(rate, now)
