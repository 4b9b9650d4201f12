"""Pages come to the frontier and leave it, become due, and the level follows what is picked."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.frontier.candidates import ENOUGH, Candidates
from crawlsched.frontier.due_times import ASIDE, CANDIDATE, FILED, IN_FLIGHT, OUT, OVERDUE, SOON, WAITING, DueTimes
from crawlsched.frontier.host_queue import HostQueue
from crawlsched.frontier.resting_hosts import RestingHosts
from crawlsched.frontier.values import CrawlValues
from crawlsched.pages import Pages
from crawlsched.pages.intervals import Intervals

__all__ = ["Filing"]

# There is room for so many candidates at least and at most; between, of so many pages as the fewest one is a candidate.
_FEWEST, _MOST = 64, 4096
# What falls due in so many slots is looked at together, at the beginning: it takes hardly longer than for one page.
# Among fewer pages than so many for each slot they are fewer slots, as one can come back after some.
_SLOTS_TOGETHER, _PAGES_A_SLOT = 16, 256
# So many pages become candidates with one pick.
_AT_ONCE = 1024
# So many pages are looked at to find a level, and so many due times are reckoned anew with one pick when it came down.
_SAMPLE, _SWEPT_AT_ONCE = 2048, 1024
# A level comes down by so much at least; by twice, four times, ... as much while too few are found.
_FINEST = 0.995
# It does so where less than this share of the room is filled: who is left goes while the next ones are looked for.
_LEFT = 0.25
# Who was looked at in vain waits for this share of its time since the crawl.
_WAIT_AGAIN = 0.005


class Filing:
    """Keep pages where they are found when their time comes; `Frontier` adds the picks."""

    def __init__(self, pages: Pages, values: CrawlValues, *, intervals: Intervals, slot: float) -> None:
        self.values, self.slot = values, slot
        self._pages, self._intervals = pages, intervals
        self._due, self._resting = DueTimes(), RestingHosts()
        # Pages with a copy, and pages without one, each with a level of its own.
        self._queues = tuple(Candidates(pages, values) for _ in range(2))
        self._forced, self._overdue = HostQueue(self._resting), HostQueue(self._resting)
        self._force_numbers, self._samples = count(), count()
        self._filed: list[int] = []
        self._hosts_to_check: set[int] = set()
        # Pages in flight that will be due again so soon that they are not left until others are looked at.
        self._coming_back: set[int] = set()
        # A heap of deadlines and pages that were due, which may stand elsewhere by now.
        self._deadlines_of_due: list[tuple[float, int]] = []
        self._now, self._gather_at = -np.inf, -np.inf

    def __len__(self) -> int:
        """Count the pages in the frontier; O(n)."""
        return int(np.count_nonzero(self._due.place != OUT))

    def __contains__(self, page: int) -> bool:
        return self._place_of(page) != OUT

    def _place_of(self, page: int) -> int:
        place = self._due.place
        return place.item(page) if 0 <= page < place.size else OUT

    # -- pages come and go

    def reserve(self, capacity: int) -> None:
        """Make room for so many pages; amortised O(1) a page."""
        self._due.reserve(capacity)

    def file(self, pages: IndexArray, now: float) -> None:
        """Put distinct pages where they belong now, wherever they were; O(1) a page and its due time."""
        if not pages.size:
            return
        self._now = max(now, self._now)
        self.reserve(int(pages.max()) + 1)
        for page in pages[self._due.place[pages] > SOON].tolist():
            self._leave(page)
        self._due.place[pages] = FILED
        if pages.size > _AT_ONCE // 8:
            self._reckon(pages, self._now)
        else:
            self._filed += pages.tolist()
        self._gather_at = -np.inf
        for queue in self._queues:
            queue.idle_until = -np.inf

    def file_one(self, page: int, now: float) -> None:
        """Put a page that comes back from a visit where it belongs. O(1)."""
        if self._place_of(page) != IN_FLIGHT:
            self.file(np.array([page]), now)
            return
        self._now = max(now, self._now)
        self._due.place[page] = FILED
        self._filed.append(page)
        if page in self._coming_back:
            self._coming_back.discard(page)
            self._gather_at = -np.inf
        self._queues[self._pages.crawled_at.item(page) == -np.inf].idle_until = -np.inf

    def refile(self, pages: IndexArray, now: float) -> None:
        """File those of some pages that are in the frontier and not in flight: their values have changed.

        O(1) a page and its due time.
        """
        inside = pages[pages < self._due.place.size]
        self.file(inside[self._due.place[inside] > IN_FLIGHT], now)

    def discard(self, pages: IndexArray) -> None:
        """Take distinct pages out of the frontier, in flight or not. O(1) a page, O(candidates) for one of these."""
        inside = pages[pages < self._due.place.size]
        for page in inside[self._due.place[inside] > SOON].tolist():
            self._leave(page)
        self._due.place[inside] = OUT
        for page in inside.tolist() if self._forced else ():
            self._forced.discard(page)

    def force(self, pages: IndexArray) -> None:
        """Let pages go before all others, in the order of these calls and of the array; O(log n) a page.

        Pages which may not be crawled yet go too; pages in flight are left alone.
        """
        for page in pages.tolist():
            if page not in self._forced and self._place_of(page) > IN_FLIGHT:
                self._forced.push(self._pages.host.item(page), float(next(self._force_numbers)), page)

    def _leave(self, page: int) -> None:
        """Take a page from where it stands, if that is more than a place in the column."""
        place = self._due.place.item(page)
        if place in (CANDIDATE, ASIDE):
            for queue in self._queues:
                queue.discard(page)
        elif place == OVERDUE:
            self._overdue.discard(page)

    def deadline_of(self, page: int) -> float:
        """Return when a page becomes overdue, POSIX seconds; inf without a longest interval, or a copy. O(1)."""
        return float(self._deadlines(np.array([page]))[0])

    def _deadlines(self, pages: IndexArray) -> FloatArray:
        if not self._intervals.come:
            return np.full(pages.size, np.inf)
        last = self._pages.crawled_at[pages]
        found: FloatArray = np.where(last > -np.inf, last, np.inf) + self._intervals.longest(pages)
        return found

    def _eligible_at(self, pages: IndexArray) -> FloatArray:
        columns = self._pages
        soonest = columns.crawled_at[pages] + self._intervals.shortest(pages)
        eligible: FloatArray = np.maximum(columns.not_before[pages], soonest)
        return eligible

    # -- due times

    def _reckon(self, pages: IndexArray, now: float, not_before: float | FloatArray = -np.inf) -> None:
        """Say when pages are due, each by the level of its queue and host."""
        times = np.empty(pages.size)
        for queue, part in zip(self._queues, self._by_queue(pages), strict=True):
            if part.any():
                if queue.level <= 0.0 and np.count_nonzero(part) > self._room:
                    # Rather too low: it rises as pages are looked at, and to come down takes a look at all.
                    queue.level = self._level_of(pages[part], now, self._pages.n // 10)
                times[part] = self._reached(queue, pages[part], now)
        times = np.minimum(np.maximum(times, not_before), self._deadlines(pages))
        self._due.set(pages, np.maximum(times, self._eligible_at(pages)))

    def _reached(self, queue: Candidates, pages: IndexArray, now: float) -> FloatArray:
        levels = queue.levels(self._pages.host[pages])
        if not np.any(levels):
            return np.full(pages.size, now)
        return self.values.reaches(pages, levels, now)

    def _reckon_again(self, pages: IndexArray, now: float) -> None:
        """Say when pages are due that were looked at in vain: not at once."""
        if pages.size:
            crawled_at = self._pages.crawled_at[pages]
            elapsed = np.where(crawled_at > -np.inf, now - crawled_at, 0.0)
            self._reckon(pages, now, now + np.maximum(_WAIT_AGAIN * elapsed, self.slot))

    def _follow(self, now: float) -> None:
        """Let happen what happens until now: hosts return, pages become due."""
        self._now = max(now, self._now)
        if self._resting.next_time() <= now:
            for host in self._resting.returning(now):
                self.release_host(host)
        if now >= self._gather_at or not len(self._queues[0].going):
            self._gather(now)

    def _gather(self, now: float) -> None:
        """Reckon the due times of what was filed, and let those be candidates that are due."""
        self._now = now = max(now, self._now)
        self._gather_at = now + self._together
        if self._filed:
            filed = np.unique(np.array(self._filed, np.intp))
            self._filed.clear()
            filed = filed[self._due.place[filed] == FILED]
            if filed.size:
                self._reckon(filed, now)
        taken = 0
        while taken < _AT_ONCE:
            pages = self._due.take(self._gather_at, self._room)
            taken += pages.size
            if not pages.size:
                break
            eligible_at = self._eligible_at(pages)
            self._become_due(pages[eligible_at <= now], now)
            barred = eligible_at > now
            if barred.any():
                self._due.set(pages[barred], eligible_at[barred])
                break
        while self._deadlines_of_due and self._deadlines_of_due[0][0] <= now:
            self._become_overdue(heappop(self._deadlines_of_due)[1], now)
        for host in self._hosts_to_check - self._resting.until.keys():
            self._hosts_to_check.discard(host)
            self._bring_host_down(host, now)

    @property
    def _together(self) -> float:
        """For how many seconds what falls due is looked at together."""
        if self._intervals.come:
            return 0.0
        return min(self._pages.n // _PAGES_A_SLOT, _SLOTS_TOGETHER) * self.slot

    @property
    def _room(self) -> int:
        """For how many candidates there is room in a queue."""
        return min(max(self._pages.n // _FEWEST, _FEWEST), _MOST)

    def _become_due(self, pages: IndexArray, now: float) -> None:
        if self._intervals.come:
            deadlines = self._deadlines(pages)
            for entry in zip(deadlines.tolist(), pages.tolist(), strict=True):
                heappush(self._deadlines_of_due, entry)
            while self._deadlines_of_due and self._deadlines_of_due[0][0] <= now:
                self._become_overdue(heappop(self._deadlines_of_due)[1], now)
            pages = pages[deadlines > now]
        if self._resting and pages.size:
            hosts = self._pages.host[pages]
            rests = np.isin(hosts, list(self._resting.until))
            for host in np.unique(hosts[rests]).tolist():
                self._add(pages[hosts == host], now, host)
            pages = pages[~rests]
        self._add(pages, now)

    def _become_overdue(self, page: int, now: float) -> None:
        """Let a page that is due go first from now on, if its deadline has passed."""
        deadline = self.deadline_of(page)
        if self._due.place.item(page) in (CANDIDATE, ASIDE) and deadline <= now:
            self._leave(page)
            self._due.place[page] = OVERDUE
            self._overdue.push(self._pages.host.item(page), deadline, page)

    def _add(self, pages: IndexArray, now: float, host: int | None = None) -> None:
        """Let pages be candidates, of a host that rests if one is given; raise levels where there are too many."""
        for queue, part in zip(self._queues, self._by_queue(pages), strict=True):
            chosen = pages[part]
            if not chosen.size:
                continue
            self._due.place[chosen] = CANDIDATE if host is None else ASIDE
            self._reckon_again(queue.add(chosen, now, max(self._gather_at, now), host), now)
            if host is None:
                self._make_room(queue, now)
            elif host in queue.aside and len(queue.aside[host]) > _FEWEST:
                self._reckon_again(queue.raise_host_level(host, now), now)

    def _make_room(self, queue: Candidates, now: float) -> None:
        if len(queue.going) > self._room:
            self._reckon_again(queue.raise_level(now), now)

    def _by_queue(self, pages: IndexArray) -> tuple[BoolArray, BoolArray]:
        """Return which pages have a copy, and which have none."""
        never: BoolArray = self._pages.crawled_at[pages] == -np.inf
        return ~never, never

    # -- levels come down

    def _fill(self, queue: Candidates, now: float, least: float) -> bool:
        """Bring the level of a queue down to what its best candidate is worth, or `least`; whether one is worth more.

        A page that waits can be worth the level.
        """
        if now < queue.idle_until:
            return False
        self._gather(now)
        while max(highest := queue.highest(now), least) < ENOUGH * queue.level:
            if not self._go_on(queue) and not self._bring_down(queue, now, least):
                break
            self._gather(now)
        if highest > least:
            queue.steps = 0
        return highest > least

    def _bring_down(self, queue: Candidates, now: float, least: float) -> bool:
        """Lower a level to where some pages are that may go; False if there are none."""
        step = 1 + self._pages.n // _SAMPLE
        pages = self._may_go(np.arange(next(self._samples) % step, self._pages.n, step), now, queue)
        if not pages.size:
            if len(queue.going) or now < queue.searched_until:
                return False
            rows = np.arange(self._pages.n)
            pages = self._may_go(rows, now, queue)
            if not pages.size:
                queue.searched_until = now + rows.size // _AT_ONCE * self.slot
                queue.idle_until = self._next_eligible(queue, now)
                return False
            pages = pages[:: 1 + pages.size // _SAMPLE]
        highest = queue.level * _FINEST**2.0**queue.steps
        queue.steps += 1
        queue.level = max(min(self._level_of(pages, now), highest), least, 0.0)
        best = pages[self.values.value_at(pages, now) >= queue.level]
        self._due.set(best, np.full(best.size, now))
        queue.to_sweep, self._gather_at = self._pages.n, -np.inf
        return True

    def _go_on(self, queue: Candidates) -> bool:
        """Reckon some due times anew, if that is under way since a level of a queue came down; whether it is."""
        if queue.of_hosts.size:
            rows, queue.of_hosts = queue.of_hosts[:_SWEPT_AT_ONCE], queue.of_hosts[_SWEPT_AT_ONCE:]
        elif queue.to_sweep > 0:
            rows = np.arange(queue.swept, min(queue.swept + _SWEPT_AT_ONCE, self._pages.n))
            queue.swept = queue.swept + rows.size if queue.swept + rows.size < self._pages.n else 0
            queue.to_sweep -= rows.size
            if not queue.to_sweep:
                self._gather_at = -np.inf
        else:
            return False
        rows = rows[rows < self._due.place.size]
        place = self._due.place[rows]
        rows = rows[((place == WAITING) | (place == SOON)) & (self._due.at[rows] > self._now)]
        rows = rows[self._by_queue(rows)[self._queues.index(queue)]]
        if rows.size:
            self._reckon(rows, self._now)
        return True

    def _level_of(self, pages: IndexArray, now: float, most: int | None = None) -> float:
        """Return what so many of all pages are worth more than, by a sample of them; half of the room by default."""
        pages = pages[:: 1 + pages.size // _SAMPLE]
        values = np.sort(self.values.value_at(pages, now))[::-1]
        rank = int((most or self._room / 2) * values.size / max(self._pages.n, 1))
        return float(values[min(rank, values.size - 1)])

    def _bring_host_down(self, host: int, now: float) -> None:
        """Lower the level of a host that may be asked, if it has one of its own and no candidate."""
        for queue in self._queues:
            if host not in queue.host_levels or (queue.going.hosts == host).any():
                continue
            rows = np.flatnonzero(self._pages.host[: self._pages.n] == host)
            pages = self._may_go(rows, now, queue)
            pages = pages[:: 1 + pages.size // _SAMPLE]
            values = np.sort(self.values.value_at(pages, now))[::-1]
            rank = int(_FEWEST / 2 * values.size / max(rows.size, 1))
            level = min(values.item(min(rank, values.size - 1)), ENOUGH * queue.host_levels[host]) if values.size else 0
            if level > queue.level:
                queue.host_levels[host] = level
            else:
                del queue.host_levels[host]
            queue.of_hosts = np.concatenate([queue.of_hosts, rows])

    def _may_go(
        self, rows: IndexArray, now: float, queue: Candidates | None = None, resting: bool = False
    ) -> IndexArray:
        """Return those of some pages that wait and might go, of a queue, and whose hosts rest, or do not."""
        place = self._due.place[rows[rows < self._due.place.size]]
        rows = rows[: place.size][(place == WAITING) | (place == SOON)]
        rows = rows[self._eligible_at(rows) <= now]
        if queue is not None:
            rows = rows[(self._pages.crawled_at[rows] == -np.inf) == (queue is self._queues[1])]
        if self._resting or resting:
            rests: BoolArray = np.isin(self._pages.host[rows], list(self._resting.until))
            rows = rows[rests if resting else ~rests]
        return rows

    def _next_eligible(self, queue: Candidates, now: float) -> float:
        """Return when the next page of a queue that waits may be crawled; inf: never."""
        rows = np.flatnonzero((self._due.place == WAITING) | (self._due.place == SOON))
        times = self._eligible_at(rows[self._by_queue(rows)[self._queues.index(queue)]])
        return float(times[times > now].min(initial=np.inf))

    def _work(self, now: float) -> None:
        """Do a part of what is to be done between picks."""
        self._due.work()
        known = self._queues[0]
        if len(known.going) >= _LEFT * self._room:
            known.steps = 0
        elif len(known.going) and known.level > 0.0 and not known.to_sweep:
            self._bring_down(known, now, 0.0)
        for queue in self._queues:
            self._go_on(queue)

    # -- hosts

    def rest_host(self, host: int, until: float) -> None:
        """Leave a host's pages out until a time, or until `release_host`; O(log hosts)."""
        self._resting.rest(host, until)
        for queue in self._queues:
            self._due.place[queue.rest(host)] = ASIDE

    def release_host(self, host: int) -> None:
        """Let a host's pages take part again. O(those of the host)."""
        if host not in self._resting:
            return
        del self._resting.until[host]
        for queue in self._queues:
            queue.idle_until = -np.inf
            pages = queue.returns(host)
            self._due.place[pages] = CANDIDATE
            self._make_room(queue, self._now)
            if host in queue.host_levels and not pages.size:
                self._hosts_to_check.add(host)
        self._overdue.host_returns(host)
        self._forced.host_returns(host)
