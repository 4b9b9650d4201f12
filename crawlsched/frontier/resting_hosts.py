"""Hosts that rest: their pages are left out of picks until they return."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

__all__ = ["RestingHosts"]


class RestingHosts:
    """Which hosts rest until when."""

    def __init__(self) -> None:
        self.until: dict[int, float] = {}  # POSIX seconds, by host
        self._order: list[tuple[float, int]] = []

    def __contains__(self, host: object) -> bool:
        return host in self.until

    def __bool__(self) -> bool:
        """Whether a host rests."""
        return bool(self.until)

    def rest(self, host: int, until: float) -> None:
        """Let a host rest until a time, POSIX seconds; O(log hosts)."""
        self.until[host] = until
        if until < np.inf:
            heappush(self._order, (until, host))

    def next_time(self) -> float:
        """Return a time until which no host returns; inf if none does by itself. O(1)."""
        return self._order[0][0] if self._order else np.inf

    def returning(self, now: float) -> list[int]:
        """Return the hosts whose rest has ended by now; O(log hosts) each."""
        hosts = []
        while self._order and self._order[0][0] <= now:
            until, host = heappop(self._order)
            if self.until.get(host) == until:
                hosts.append(host)
        return hosts
