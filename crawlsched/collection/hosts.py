"""Hosts: their row numbers, and until when each wants to be left alone."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Hosts"]


class Hosts:
    """Host names as dense numbers, with what each host has asked of us.

    A host is what Scrapy's downloader counts as one: the host name without the port, or ``meta["download_slot"]``.
    Hosts that never asked for anything take no room but their name.

    Examples
    --------
    >>> hosts = Hosts()
    >>> hosts.number("example.com"), hosts.number("example.org"), hosts.number("example.com")
    (0, 1, 0)
    >>> hosts.rest(0, until=110.0)
    True
    >>> hosts.free_at(0, now=100.0), hosts.free_at(1, now=100.0)
    (110.0, 100.0)
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self.crawl_delay: dict[int, float] = {}
        self._numbers: dict[str, int] = {}
        self._rest_until: dict[int, float] = {}
        self._asked_at: dict[int, float] = {}
        for name in names:
            self.number(name)

    def __len__(self) -> int:
        return len(self.names)

    def number(self, name: str) -> int:
        """Return the number of a host, giving it one if it is new."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return number

    def rest(self, host: int, until: float) -> bool:
        """Leave a host alone until this time (Retry-After); return whether that is longer than it was."""
        if until <= self._rest_until.get(host, 0.0):
            return False
        self._rest_until[host] = until
        return True

    def rest_until(self, host: int) -> float:
        """Until when the host wants to be left alone; 0 if it never asked."""
        return self._rest_until.get(host, 0.0)

    def set_crawl_delay(self, host: int, seconds: float | None) -> bool:
        """Take over a Crawl-delay of robots.txt; return whether it is another one than before."""
        if seconds == self.crawl_delay.get(host):
            return False
        if seconds:
            self.crawl_delay[host] = seconds
        else:
            self.crawl_delay.pop(host, None)
            self._asked_at.pop(host, None)
        return True

    def asked(self, host: int, now: float) -> None:
        """A request goes to this host now."""
        if host in self.crawl_delay:
            self._asked_at[host] = now

    def free_at(self, host: int, now: float) -> float:
        """Return the earliest time at which the host may be asked, as far as its own wishes go; `now` if it may be."""
        free = max(now, self._rest_until.get(host, 0.0)) if self._rest_until else now
        delay = self.crawl_delay.get(host) if self.crawl_delay else None
        return free if delay is None else max(free, self._asked_at.get(host, float("-inf")) + delay)
