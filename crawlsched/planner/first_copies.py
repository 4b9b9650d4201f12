"""First copies: of pages that are worth the same, those of the hosts that need longest for theirs go first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.pages import NEW
from crawlsched.planner.knowledge import Knowledge

__all__ = ["FirstCopies"]

_NOT_WAITING = frozenset({"out", "in flight"})
# Hosts are chosen anew after so many first copies, and where there are many pages after one in so many of them: that is
# some tenth of a microsecond a pick.
_LEAST_PICKS, _ROWS_A_PICK = 16, 64
# Rows at which a choice looks at most, and those among which a host's next page is looked for at once.
_LOOKED_AT, _SEARCHED_AT_ONCE = 2**18, 4096
# What a page may be worth less than another and count as equal, as a share: roundings.
_EQUAL = 1e-9


class FirstCopies:
    """Sends one page of each host that needs longest before others that are worth no more.

    Parameters
    ----------
    known : Knowledge

    Attributes
    ----------
    limits : callable or None
        Gives by host the crawls per second for which it lets itself be asked at most, inf: as many as anybody likes;
        None: that is so of all hosts.
    value : float
        What the last first copy was worth that went for its value.

    Notes
    -----
    The rule is that of longest processing time first (R. L. Graham, *Bounds on multiprocessing timing anomalies*,
    1969): a host's new pages take at least their number times its delay. What it is not asked for now is lost, and
    left until the end a slow host keeps first copies waiting when all others have theirs. As many hosts are sent as the
    bandwidth can ask at their full pace.
    """

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self.limits: Callable[[], FloatArray] | None = None
        self.value = np.inf
        self._picks_left = 0
        self._from: dict[int, int] = {}  # by chosen host, the row from which its next page is looked for
        self._sent: dict[int, int] = {}  # pages sent and not yet picked, with their hosts

    def wait_for(self, host: int) -> bool:
        """Whether a host has pages that were never crawled; of very many pages only some are looked at."""
        columns, n = self._known.pages, self._known.pages.n
        some = slice(0, n, 1 + n // _LOOKED_AT)
        return bool(np.any((columns.state[some] == NEW) & (columns.host[some] == host)))

    def before_pick(self, now: float) -> None:
        """Choose the hosts, if it is time, and send a page of each."""
        self._picks_left -= 1
        if self.limits is None or self._picks_left > 0:
            return
        self._choose(self.limits())
        frontier = self._known.frontier
        self._sent = {page: host for page, host in self._sent.items() if frontier.is_forced(page)}
        busy = set(self._sent.values())
        for host in [host for host in self._from if host not in busy]:
            self._send(host, now)

    def sent(self, page: int, now: float) -> bool:
        """Whether a page goes because its host needs longest; the next one of that host is sent then."""
        host = self._sent.pop(page, None)
        if host is None:
            return False
        self._send(host, now)
        return True

    def _choose(self, limits: FloatArray) -> None:
        """Choose hosts by the seconds that their new pages take; O(rows looked at + H log H)."""
        columns, n = self._known.pages, self._known.pages.n
        step = 1 + n // _LOOKED_AT
        self._picks_left = max(_LEAST_PICKS, n // step // _ROWS_A_PICK)
        slow = limits < self._known.bandwidth
        self._from.clear()
        if not slow.any():
            return
        new = np.flatnonzero(columns.state[:n:step] == NEW) * step
        hosts = columns.host[new]
        n_new = step * np.bincount(hosts, minlength=limits.size)
        first = np.zeros(n_new.size, np.intp)
        first[hosts[::-1]] = new[::-1]  # the last one written stays
        seconds = np.where(slow, n_new / limits, 0.0)
        order = np.argsort(-seconds, kind="stable")
        is_served = (np.cumsum(limits[order]) <= self._known.bandwidth) & (seconds[order] > 0.0)
        self._from.update((host, first.item(host)) for host in order[is_served].tolist())

    def _send(self, host: int, now: float) -> None:
        """Let the next page of a chosen host go before others, unless those are worth more."""
        columns, frontier = self._known.pages, self._known.frontier
        at = self._from.get(host, columns.n)
        while at < columns.n:
            part = slice(at, min(at + _SEARCHED_AT_ONCE, columns.n))
            at = part.stop
            found = np.flatnonzero((columns.state[part] == NEW) & (columns.host[part] == host))
            for page in (part.start + found).tolist():
                if frontier.place_of(page) in _NOT_WAITING or not frontier.may_go(page, now):
                    continue
                self._from[host] = page + 1
                if self._known.crawl_values.value_at(np.array([page]), now).item() >= self.value * (1.0 - _EQUAL):
                    self._sent[page] = host
                    frontier.force(np.array([page]))
                else:
                    del self._from[host]
                return
        self._from.pop(host, None)
