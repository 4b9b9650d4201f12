"""Hosts: their row numbers, until when each host wants no requests, and which hosts fail as a whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.slot_clock import DAY

__all__ = ["Hosts", "header_time", "retry_after"]

# A host fails as a whole after `_FAILS_FROM` errors in a row. These errors must be of at least `_ROUNDS` rounds, since
# requests that are under way at one moment fail together. The host rests for a share of the time for which it has
# failed, but for at most `_LONGEST_REST` seconds. So after an outage of an hour it is asked again within four minutes.
_FAILS_FROM, _ROUNDS = 8, 3
_REST, _LONGEST_REST = 1 / 16, 3600.0


class _Errors(NamedTuple):
    """A host's errors in a row (number, rounds, first time, last counted time), and the length and end of its rest."""

    n: int
    n_rounds: int
    since: float
    heard_at: float
    rest: float
    until: float


_NONE = _Errors(0, 0, float("inf"), float("-inf"), 0.0, float("-inf"))


class Hosts:
    """Host names as dense numbers, with what each host has asked of us.

    A host is what Scrapy's downloader counts as one host: the host name without the port, or ``meta["download_slot"]``.
    `shares` has the largest share of `bandwidth` by host name; ``*`` is any host that is not named.

    Examples
    --------
    >>> hosts = Hosts()
    >>> hosts.number("example.com"), hosts.number("example.org"), hosts.number("example.com")
    (0, 1, 0)
    >>> hosts.rest(0, until=110.0)
    True
    >>> hosts.free_at(0, now=100.0), hosts.free_at(1, now=100.0)
    (110.0, 100.0)

    A host whose only answers are errors rests as a whole:

    >>> for time in range(200, 208):
    ...     hosts.failed(1, asked_at=float(time), now=time + 0.5, wait=30.0)
    >>> hosts.free_at(1, now=208.0)
    237.5
    """

    def __init__(self, shares: Mapping[str, float] | None = None) -> None:
        self.names: list[str] = []
        self.crawl_delay: dict[int, float] = {}
        self._numbers: dict[str, int] = {}
        # Another thread, which loads a shard, may add hosts at the same time.
        self._adding = threading.Lock()
        self._rest_until: dict[int, float] = {}
        # The errors in a row of each host whose last answers were errors.
        self._errors: dict[int, _Errors] = {}
        # The largest shares of the bandwidth, by host name; below, by the host's number.
        self._shares = dict(shares or {})
        self._share: dict[int, float] = {}
        # When each host with a share or a Crawl-delay may be asked again.
        self._due: dict[int, float] = {}
        #: Says whether another process is about to ask a host, so that this process begins no more visits there. None:
        #: there is no such host.
        self.is_leaving: Callable[[int], bool] | None = None
        #: DOWNLOAD_DELAY, which Scrapy observes: seconds between two requests to a host.
        self.least_delay = 0.0
        #: Crawls per second; `shares` are shares of this rate.
        self.bandwidth = 0.0

    def __len__(self) -> int:
        return len(self.names)

    def number(self, name: str) -> int:
        """Return the number of a host; a new host gets a new number."""
        number = self._numbers.get(name)
        if number is None:
            with self._adding:
                number = self._numbers.setdefault(name, len(self.names))
                if number == len(self.names):
                    self.names.append(name)
            share = self._shares.get(name, self._shares.get("*")) if self._shares else None
            if share is not None:
                self._share[number] = share
        return number

    def rest(self, host: int, until: float) -> bool:
        """Leave a host alone until this time (Retry-After); return whether that is later than before."""
        if until <= self._rest_until.get(host, 0.0):
            return False
        self._rest_until[host] = until
        return True

    def failed(self, host: int, asked_at: float, now: float, wait: float) -> None:
        """Count an error or a missing answer of a host; after eight in a row the host rests for `wait` seconds or more.

        A request that was sent before the first error of the last round belongs to that round. The rest grows to an
        hour at most.
        """
        before = self._errors.get(host, _NONE)
        is_next = asked_at >= before.heard_at
        if before.rest and not is_next:
            return
        n, n_rounds, since = before.n + 1, before.n_rounds + is_next, min(before.since, now)
        rests = n >= _FAILS_FROM and n_rounds >= _ROUNDS
        rest = min(max(wait, _REST * (now - since)), _LONGEST_REST) if rests else 0.0
        self._errors[host] = _Errors(n, n_rounds, since, now if is_next or rest else before.heard_at, rest, now + rest)

    def failed_before(self, host: int, since: float, wait: float) -> None:
        """Note that a host failed from this time to the end of the last crawl; at first one of its pages is tried."""
        self._errors[host] = _Errors(_FAILS_FROM, _ROUNDS, since, float("-inf"), wait, float("-inf"))

    def fails(self, host: int) -> bool:
        """Whether a host fails as a whole, so that it is asked for one page now and then."""
        return self._errors.get(host, _NONE).rest > 0.0

    def failing_since(self, time: float) -> list[int]:
        """Return the hosts that have failed as a whole since this time or longer; O(hosts that fail)."""
        return [host for host, errors in self._errors.items() if errors.rest and errors.since <= time]

    def answered(self, host: int) -> None:
        """A host answered without an error; if it had failed, it may be asked again at once."""
        if self._errors:
            self._errors.pop(host, None)

    def rest_until(self, host: int) -> float:
        """Return until when the host wants no requests; 0 if it has never said so."""
        return self._rest_until.get(host, 0.0)

    def set_crawl_delay(self, host: int, seconds: float | None) -> bool:
        """Take over a Crawl-delay of robots.txt; return whether it has changed."""
        if seconds == self.crawl_delay.get(host):
            return False
        if seconds:
            self.crawl_delay[host] = seconds
        else:
            self.crawl_delay.pop(host, None)
            self._due.pop(host, None)
        return True

    def limits(self) -> FloatArray:
        """Return the crawls per second that each host allows; inf: no limit.

        The limit follows from Crawl-delay, `shares` and `least_delay`, and not from how long a host takes to answer.
        """
        limits = np.full(len(self.names), 1.0 / self.least_delay if self.least_delay else np.inf)
        for host in self.crawl_delay | self._share:
            limits[host] = self.limit(host)
        return limits

    def limit(self, host: int) -> float:
        """Return the largest number of crawls per second that a host allows; see `limits`."""
        seconds = max(self.least_delay, self.crawl_delay.get(host, 0.0))
        return min(1.0 / seconds if seconds else np.inf, self._share.get(host, np.inf) * self.bandwidth)

    def asked(self, host: int, now: float) -> None:
        """Note a request to this host; a failing host gets the next request after another rest or an answer."""
        if self._share and (share := self._share.get(host)) is not None and self.bandwidth:
            # The host's next time may fall between two slots. Its request then goes out in the later slot, and the
            # pause after it is shorter by this delay, so that the host gets its whole share.
            pause = 1.0 / (share * self.bandwidth)
            self._due[host] = max(self._due.get(host, now), now - pause) + pause
        if host in self.crawl_delay:
            self._due[host] = max(self._due.get(host, now), now + self.crawl_delay[host])
        if self._errors and (errors := self._errors.get(host, _NONE)).rest:
            self._errors[host] = errors._replace(until=now + errors.rest)

    def free_at(self, host: int, now: float, *, has_begun: bool = False) -> float:
        """Return the earliest time at which the host itself allows a request; `now` if it does so now.

        A host that `is_leaving` is asked only for visits under way, such as the page that a redirect leads to.
        """
        if self.is_leaving is not None and not has_begun and self.is_leaving(host):
            return float("inf")
        free = max(now, self._rest_until.get(host, 0.0)) if self._rest_until else now
        if self._errors:
            free = max(free, self._errors.get(host, _NONE).until)
        return max(free, self._due.get(host, free)) if self._due else free


def retry_after(value: str, now: float) -> float | None:
    """Read a Retry-After header into POSIX seconds, at most a day from now; None if there is nothing to read.

    >>> retry_after("120", now=1000.0)
    1120.0
    >>> retry_after("Thu, 01 Jan 1970 00:20:00 GMT", now=1000.0)
    1200.0
    >>> retry_after("soon", now=1000.0) is None
    True
    """
    until = now + float(value) if value.strip().isdecimal() else header_time(value)
    # A server that says "in a year" has made a mistake.
    return None if until is None else max(now, min(until, now + DAY))


def header_time(value: str | None) -> float | None:
    """Read a date in a header into POSIX seconds; a date without a time zone is UTC. None if there is no date.

    >>> header_time("Thu, 01 Jan 1970 00:20:00 GMT"), header_time("Thu, 01 Jan 1970 00:20:00"), header_time("soon")
    (1200.0, 1200.0, None)
    """
    try:
        date = parsedate_to_datetime(value or "")
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
