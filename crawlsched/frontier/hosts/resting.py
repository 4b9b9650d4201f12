"""Hosts that rest: their pages are left out of picks until they return."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import IndexArray, LevelArray
from crawlsched.columns.growing import grown
from crawlsched.frontier.places import LOWEST

__all__ = ["RestingHosts"]


class RestingHosts:
    """Which hosts rest until when, and which of their pages would be awake.

    Attributes
    ----------
    until : dict of int to float
        POSIX seconds, by host.
    rests : ndarray of bool
        By host.
    has_pages : ndarray of bool
        By host, whether it ever had a page.
    cutoffs : ndarray of int32
        What the cutoff of a host has above the lowest level: 0 but for those that rested with too many pages awake.
    have_cutoffs : bool
        Whether a host ever had one of its own.
    stays : ndarray of bool
        By host, whether it still had its own cutoff when it began to rest once more: that has not come down to the
        one of all, and will not soon, since the host has more pages than its rests leave slots for.
    awake : dict of int to set of int
        By host the pages that would be awake if it did not rest.
    order : list of tuple
        A heap of (time, host): which host may return when.
    """

    def __init__(self) -> None:
        self.until: dict[int, float] = {}
        self.rests: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.has_pages: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._n_with_pages = 0
        self.cutoffs: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.stays: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.have_cutoffs = False
        self.awake: dict[int, set[int]] = {}
        # The hosts to which pages came since `crowded` was called.
        self._came: set[int] = set()
        self.order: list[tuple[float, int]] = []

    def __bool__(self) -> bool:
        """Whether a host rests."""
        return bool(self.until)

    def __contains__(self, host: int) -> bool:
        return host in self.until

    def make_room(self, hosts: LevelArray) -> None:
        """Make room for these hosts; amortised O(n)."""
        most = int(hosts.max()) + 1 if hosts.size else 0
        if most > self.rests.size:
            self.cutoffs = grown(self.cutoffs, most + most // 2)
            self.rests = grown(self.rests, most + most // 2)
            self.has_pages = grown(self.has_pages, most + most // 2)
            self.stays = grown(self.stays, most + most // 2)
        if not self.has_pages[hosts].all():
            self.has_pages[hosts] = True
            self._n_with_pages = int(np.count_nonzero(self.has_pages))

    def are_all(self) -> bool:
        """Whether all hosts that ever had a page rest; O(1) while fewer do, else O(hosts)."""
        return len(self.until) >= self._n_with_pages > 0 and not np.any(self.has_pages & ~self.rests)

    def rest(self, host: int, until: float, cutoff: int) -> None:
        """Let a host rest until a time, POSIX seconds, while the cutoff of all is at a level; O(log hosts)."""
        self.until[host] = until
        self.rests[host] = True
        self.stays[host] = self.has_own_cutoff(host, cutoff)
        if until < np.inf:
            heappush(self.order, (until, host))

    def release(self, host: int) -> None:
        """Let a host that rests do so no longer; O(1)."""
        del self.until[host]
        self.rests[host] = False

    def has_own_cutoff(self, host: int, cutoff: int) -> bool:
        """Whether a host, or none if it is -1, has a cutoff of its own that is above that of all; O(1)."""
        return host >= 0 and self.cutoffs.item(host) + LOWEST > cutoff

    def next_time(self) -> float:
        """Return a time until which no host returns; inf if none does by itself. O(1)."""
        return self.order[0][0] if self.order else np.inf

    def returning(self, now: float) -> list[int]:
        """Return the hosts whose rest has ended by now; O(log hosts) each."""
        hosts = []
        while self.order and self.order[0][0] <= now:
            until, host = heappop(self.order)
            if self.until.get(host) == until:
                hosts.append(host)
        return hosts

    def set_aside(self, pages: IndexArray, hosts: LevelArray) -> None:
        """Keep pages that would be awake until their hosts return; O(n)."""
        for page, host in zip(pages.tolist(), hosts.tolist(), strict=True):
            self.awake.setdefault(host, set()).add(page)
            self._came.add(host)

    def crowded(self, most: int) -> list[int]:
        """Return the hosts of which more pages than `most` would be awake, where some came since the last call.

        O(hosts of these).
        """
        crowded = [host for host in self._came if len(self.awake.get(host, ())) > most]
        self._came.clear()
        return crowded

    def forget(self, page: int, host: int) -> None:
        """Keep a page no longer; O(1)."""
        self.awake.get(host, set()).discard(page)

    def take(self, host: int) -> IndexArray:
        """Take out the pages of a host that would be awake; O(their number)."""
        waiting = self.awake.pop(host, set())
        return np.fromiter(waiting, np.intp, len(waiting))
