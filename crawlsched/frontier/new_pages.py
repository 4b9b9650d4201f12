"""New pages: pages without a copy wait in lines, one for each part of a site, and the lines take turns."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Container
from math import inf

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.columns.growing import grown
from crawlsched.frontier.queues import FairQueue
from crawlsched.pages import Pages

__all__ = ["DiscoveryShare", "NewPages"]

# When lines share turns, importances are limited to the range from the inverse of this number to this number.
_MOST_TURNS = 8.0


class DiscoveryShare:
    """Gives first copies at most a share of the slots while pages that have a copy are due.

    Parameters
    ----------
    share : float
        From 0 to 1.
    n_first : float
        At the beginning this number of slots may all go to first copies, since there are few copies to keep fresh yet.

    Examples
    --------
    >>> share = DiscoveryShare(0.5)
    >>> for _ in range(6):
    ...     print("new" if share.is_due else "known", end=" ")
    ...     share.went(is_first_copy=share.is_due)
    new new known new known new
    """

    def __init__(self, share: float, n_first: float = 0.0) -> None:
        self.share = share
        self._credit = 1.0 + (1.0 - share) * n_first

    @property
    def is_due(self) -> bool:
        """Whether the next slot is for a first copy, if a page without a copy waits; O(1)."""
        return self._credit + self.share >= 1.0 - 1e-9

    def went(self, *, is_first_copy: bool) -> None:
        """Count a used slot. First copies are not charged for slots that other pages left unused. O(1)."""
        if not is_first_copy or self.is_due:
            self._credit = min(self._credit + self.share - is_first_copy, max(self._credit, 1.0))

    def has_begun(self) -> None:
        """End the first slots (see `n_first`), because there are pages to keep fresh now. O(1)."""
        self._credit = min(self._credit, 1.0)


class _Line:
    """The new pages of one priority and one part of a site, newest first."""

    __slots__ = ("first", "host", "part", "priority")

    def __init__(self, priority: float, host: int, part: int) -> None:
        self.priority, self.host, self.part, self.first = priority, host, part, -1


class NewPages:
    """Pages without a copy, highest priority first. Hosts of one priority take turns, and so do the parts of a site.

    Attributes
    ----------
    limit : callable
        ``limit(host)`` returns the largest number of crawls per second that a host allows.

    Notes
    -----
    A page of importance 0 is picked only when no other page waits. In a part of a site, pages found last are picked
    first. Of pages found together, the most important go first, and equally important pages go in their order.

    A host's limit can be so low that its pages take longer than all new pages take at the rate of first copies. Such a
    host is asked whenever possible (longest processing time first, R. L. Graham, *Bounds on multiprocessing timing
    anomalies*, 1969). Several such hosts can be asked at their full pace at the same time.
    """

    def __init__(self, pages: Pages, resting: Container[int]) -> None:
        self._pages, self._resting = pages, resting
        self.limit: Callable[[int], float] = lambda host: inf
        self.of_host: Counter[int] = Counter()  # how many pages wait, by host
        self._n = 0
        # By page: the number of its line (0: none), the pages after and before it in the line, and the priority of its
        # request.
        self._line, self._next, self._before, self._priority = (np.zeros(0, np.int32) for _ in range(4))
        self._lines: list[_Line] = [_Line(0.0, -1, -1)]
        self._numbers: dict[tuple[float, int, int], int] = {}
        # The priorities, the hosts of each priority, and for each host the parts of its site. They take turns.
        self._order: list[float] = []
        self._hosts: dict[float, FairQueue[int]] = {}
        self._parts: dict[float, dict[int, FairQueue[int]]] = {}

    def __len__(self) -> int:
        return self._n

    def reserve(self, capacity: int) -> None:
        """Make room for more pages; amortised O(1) a page."""
        self._line, self._next = grown(self._line, capacity), grown(self._next, capacity)
        self._before, self._priority = grown(self._before, capacity), grown(self._priority, capacity)

    def set_priority(self, page: int, priority: int) -> None:
        """Set the priority of a page's request; `put` uses it. O(1)."""
        self._priority[page] = min(max(priority, -(2**31)), 2**31 - 1)

    def forget(self, pages: IndexArray) -> None:
        """Forget the priority of pages that are in no line. O(1) a page."""
        self._priority[pages] = 0

    def _key(self, page: int) -> tuple[float, int, int]:
        columns = self._pages
        priority = float(self._priority.item(page)) if columns.importance.item(page) > 0.0 else -inf
        return priority, columns.host.item(page), columns.part.item(page)

    def stands_right(self, page: int) -> bool:
        """Whether a page is where `put` would put it now. O(1)."""
        return self._line.item(page) == self._numbers.get(self._key(page))

    def put(self, pages: IndexArray) -> None:
        """Add pages found together: the most important first, and all before pages found earlier. O(log n) a page."""
        begun: list[int] = []
        best_last = np.argsort(-self._pages.importance[pages], kind="stable")[::-1]
        for page in pages[best_last].tolist():
            key = self._key(page)
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self._lines)
                self._lines.append(_Line(*key))
            line = self._lines[number]
            if line.first < 0:
                begun.append(number)
            else:
                self._before[line.first] = page
            self._line[page], self._next[page], self._before[page] = number, line.first, -1
            line.first = page
            self.of_host[line.host] += 1
        self._n += pages.size
        for number in reversed(begun):
            self._begin(self._lines[number], number)

    def _begin(self, line: _Line, number: int) -> None:
        if line.priority not in self._hosts:
            self._hosts[line.priority], self._parts[line.priority] = FairQueue(), {}
            insort(self._order, line.priority)
        self._hosts[line.priority].come(line.host)
        self._parts[line.priority].setdefault(line.host, FairQueue()).come(number)

    def discard(self, page: int) -> None:
        """Take a page out. O(log places)."""
        number = self._line.item(page)
        line, before, after = self._lines[number], self._before.item(page), self._next.item(page)
        self._line[page] = 0
        if before >= 0:
            self._next[before] = after
        else:
            line.first = after
        if after >= 0:
            self._before[after] = before
        self._n -= 1
        self.of_host[line.host] -= 1
        if line.first < 0:
            self._end(line, number)

    def _end(self, line: _Line, number: int) -> None:
        hosts, parts = self._hosts[line.priority], self._parts[line.priority][line.host]
        parts.leave(number)
        if not len(parts):
            hosts.leave(line.host)
            if not self.of_host[line.host]:
                del self.of_host[line.host]
        if not len(hosts):
            self._order.remove(line.priority)
            del self._hosts[line.priority], self._parts[line.priority]

    def first(self, is_free: Callable[[int], bool] = lambda host: True) -> int | None:
        """Return the page that goes next. If a host may not be asked, ``is_free`` lets it rest. O(log places)."""
        for priority in reversed(self._order):
            while (host := self._hosts[priority].first(self._resting)) is not None:
                if is_free(host):
                    number = self._parts[priority][host].first()
                    assert number is not None
                    return self._lines[number].first
        return None

    def matters(self, page: int) -> bool:
        """Whether the importance of a waiting page is above 0. O(1)."""
        return self._lines[self._line.item(page)].priority > -inf

    def took(self, page: int, rate: float) -> None:
        """Count the turn of the first page. `rate` is the number of first copies a second. O(log places)."""
        line = self._lines[self._line.item(page)]
        importance = self._pages.importance.item(page)
        cost = 1.0 / min(max(importance, 1.0 / _MOST_TURNS), _MOST_TURNS)
        self._parts[line.priority][line.host].took(self._line.item(page), cost)
        takes_longest = self.of_host[line.host] * rate > self._n * self.limit(line.host)
        self._hosts[line.priority].took(line.host, 0.0 if takes_longest else cost)

    def host_returns(self, host: int) -> None:
        """Let a host's pages take part again. O(priorities)."""
        for hosts in self._hosts.values():
            hosts.returns(host)

    def likely(self, n: int, resting: Container[int]) -> list[int]:
        """Return at most `n` pages that go next if these hosts rest, about in their order; O(hosts log n)."""
        found: list[int] = []
        for priority in reversed(self._order):
            hosts = [host for host in self._hosts[priority].likely(n) if host not in resting]
            parts = [self._parts[priority][host].likely(n) for host in hosts]
            # One page of each host comes first, then a second page of each host, and so on. The parts of a host take
            # turns.
            heads = [[self._lines[number].first for number in numbers] for numbers in parts]
            while heads and len(found) < n:
                for pages in heads:
                    page = pages.pop(0)
                    found.append(page)
                    if (after := self._next.item(page)) >= 0:
                        pages.append(after)
                heads = [pages for pages in heads if pages]
            if len(found) >= n:
                break
        return found[:n]
