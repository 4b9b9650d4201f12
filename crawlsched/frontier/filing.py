"""Pages come to the frontier and leave it, become due, and the level follows what is picked."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.frontier.candidates import ENOUGH, Candidates, CrawlValues
from crawlsched.frontier.due_times import ASIDE, CANDIDATE, FILED, IN_FLIGHT, NEW, OUT, OVERDUE, SOON, WAITING, DueTimes
from crawlsched.frontier.host_queue import HostQueue
from crawlsched.frontier.new_pages import DiscoveryShare, NewPages
from crawlsched.pages import Pages
from crawlsched.pages.intervals import Intervals

__all__ = ["Filing"]


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


# There is room for so many candidates at least and at most; between, of so many pages as the fewest one is a candidate.
_FEWEST, _MOST = 64, 4096
# Pages that fall due in this number of slots are looked at together: it takes hardly longer than for one page.
# In a small collection they are such a part of a round, as a page can come back after some.
_SLOTS_TOGETHER, _PART_OF_ROUND = 16, 256
# So many pages become candidates with one pick: of ten million no more are due in a slot.
_AT_ONCE = 256
# After a level came down so many due times are reckoned anew at once, and with one pick in so many steps at most while
# there is a candidate.
_RECKONED_AT_ONCE, _STEPS = 1024, 8
# The size of the sample that finds a level, and the number of its pages that are above it at least.
_SAMPLE, _LEAST_RANK = 2048, 8
# A level comes down where less than this share of the room is filled: who is left goes while the next ones are found.
_LEFT = 0.25
# Who was looked at in vain waits for this share of its time since the crawl.
_WAIT_AGAIN = 0.005


class Filing:
    """Keep pages where they are found when their time comes; `Frontier` adds the picks."""

    def __init__(
        self, pages: Pages, values: CrawlValues, *, intervals: Intervals, slot: float, share: DiscoveryShare
    ) -> None:
        self.values, self.slot, self.share = values, slot, share
        self._pages, self._intervals = pages, intervals
        self._due, self._resting = DueTimes(), RestingHosts()
        # Pages with a copy, and pages without one.
        self._queue, self.new = Candidates(pages, values), NewPages(pages, self._resting)
        # While first copies wait no page with a copy goes again sooner than that; a heap of those that it keeps waiting
        # (after a visit, or loaded soon after one), with the times until when.
        self._least_wait, self._kept_waiting = 0.0, list[tuple[float, int]]()
        self._forced, self._overdue = HostQueue(self._resting), HostQueue(self._resting)
        self._force_numbers, self._samples = count(), count()
        self._filed: list[int] = []
        self._hosts_to_check: set[int] = set()
        # Pages in flight that will be due again so soon that they are not left until others are looked at.
        self._coming_back: set[int] = set()
        # A heap of deadlines and pages that were due, which may stand elsewhere by now.
        self._deadlines_of_due: list[tuple[float, int]] = []
        self._now, self._gather_at = -np.inf, -np.inf
        # Slots that pass unused, above what the machine can do, bring no page nearer: picks count.
        self._picks_until_gathered = 0

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
        """Make room for more pages; amortised O(1) a page."""
        if capacity > self._due.place.size:
            self._due.reserve(capacity)
            self.new.reserve(self._due.place.size)

    def file(self, pages: IndexArray, now: float) -> None:
        """Put distinct pages where they belong now, wherever they were; O(1) a page and its due time."""
        if not pages.size:
            return
        self._now = max(now, self._now)
        self.reserve(int(pages.max()) + 1)
        for page in pages[self._due.place[pages] > SOON].tolist():
            self._leave(page)
        self._due.place[pages] = FILED
        if pages.size > _RECKONED_AT_ONCE // 8:
            self._reckon(pages, self._now)
        else:
            self._filed += pages.tolist()
        self._gather_at = self._queue.idle_until = -np.inf

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
        self._queue.idle_until = -np.inf

    def refile(self, pages: IndexArray, now: float) -> None:
        """File pages anew whose values have changed, if in the frontier and not in flight; O(1) a page."""
        inside = pages[pages < self._due.place.size]
        inside = inside[self._due.place[inside] > IN_FLIGHT]
        is_new = self._due.place[inside] == NEW
        if is_new.any():  # they keep their turns
            eligible_at = self._eligible_at(inside[is_new])
            is_new[is_new] = [
                at <= now and self.new.stands_right(page)
                for page, at in zip(inside[is_new].tolist(), eligible_at.tolist(), strict=True)
            ]
        self.file(inside[~is_new], now)

    def discard(self, pages: IndexArray) -> None:
        """Take distinct pages out of the frontier, in flight or not. O(1) a page, O(candidates) for one of these."""
        inside = pages[pages < self._due.place.size]
        for page in inside[self._due.place[inside] > SOON].tolist():
            self._leave(page)
        self._due.place[inside] = OUT
        self.new.forget(inside)
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
            self._queue.discard(page)
        elif place == NEW:
            self.new.discard(page)
        elif place == OVERDUE:
            self._overdue.discard(page)

    def deadline_of(self, page: int) -> float:
        """Return when a page becomes overdue, POSIX seconds; inf without a longest crawl interval, or a copy. O(1)."""
        return float(self._deadlines(np.array([page]))[0])

    def _deadlines(self, pages: IndexArray) -> FloatArray:
        if not self._intervals.come:
            return np.full(pages.size, np.inf)
        last = self._pages.crawled_at[pages]
        found: FloatArray = np.where(last > -np.inf, last, np.inf) + self._intervals.longest(pages)
        return found

    def _eligible_at(self, pages: IndexArray) -> FloatArray:
        columns = self._pages
        least = np.minimum(self._least_wait, self._intervals.longest(pages)) if self._least_wait else 0.0
        soonest = columns.crawled_at[pages] + np.maximum(self._intervals.shortest(pages), least)
        eligible: FloatArray = np.maximum(columns.not_before[pages], soonest)
        return eligible

    # -- due times

    def _reckon(self, pages: IndexArray, now: float, not_before: float | FloatArray = -np.inf) -> None:
        """Say when pages are due: when they reach the level of their host; those without a copy as soon as they may."""
        pages = self._put_new(pages, now)
        if not pages.size:
            return
        if self._queue.level <= 0.0 and pages.size > self._room:
            # Rather too low: it rises as pages are looked at, and to come down takes a look at all.
            self._queue.level = self._level_of(pages, now, self._pages.n // 100)
        times = np.minimum(np.maximum(self._reached(pages, now), not_before), self._deadlines(pages))
        self._set_due(pages, times, now)

    def _set_due(self, pages: IndexArray, times: FloatArray | float, now: float) -> None:
        """Set when pages with a copy are due, not before they may go; remember those that the least wait keeps."""
        if self._least_wait:
            while self._kept_waiting and self._kept_waiting[0][0] <= now:
                heappop(self._kept_waiting)
            until = self._pages.crawled_at[pages] + self._least_wait
            for entry in zip(until[until > now].tolist(), pages[until > now].tolist(), strict=True):
                heappush(self._kept_waiting, entry)
        self._due.set(pages, np.maximum(times, self._eligible_at(pages)))

    def _put_new(self, pages: IndexArray, now: float) -> IndexArray:
        """Let those of some pages wait that have no copy; return the others."""
        is_new: BoolArray = self._pages.crawled_at[pages] == -np.inf
        if not is_new.any():
            return pages
        new = pages[is_new]
        eligible_at = self._eligible_at(new)
        self._due.set(new[eligible_at > now], eligible_at[eligible_at > now])
        self._due.place[new[eligible_at <= now]] = NEW
        self.new.put(new[eligible_at <= now])
        return pages[~is_new]

    def _reached(self, pages: IndexArray, now: float) -> FloatArray:
        levels = self._queue.levels(self._pages.host[pages])
        if not np.any(levels):
            return np.full(pages.size, now)
        return self.values.reaches(pages, levels, now)

    def _reckon_again(self, pages: IndexArray, now: float) -> None:
        """Say when pages are due that were looked at in vain: not at once."""
        if pages.size:
            crawled_at = self._pages.crawled_at[pages]
            elapsed = np.where(crawled_at > -np.inf, now - crawled_at, 0.0)
            again = now + np.maximum(_WAIT_AGAIN * elapsed, self.slot)
            self._reckon(pages, now, np.maximum(again, np.nextafter(self._gather_at, np.inf)))

    def _follow(self, now: float) -> None:
        """Let happen what happens until now: hosts return, pages become due."""
        self._now = max(now, self._now)
        if self._resting.next_time() <= now:
            for host in self._resting.returning(now):
                self.release_host(host)
        is_time = now >= self._gather_at and (self._picks_until_gathered <= 0 or self._gather_at == -np.inf)
        if is_time or not len(self._queue.going):
            self._gather(now)

    def _gather(self, now: float) -> None:
        """Reckon the due times of what was filed, and let those be candidates that are due."""
        self._now = now = max(now, self._now)
        self._gather_at = now + self._slots_together * self.slot
        self._picks_until_gathered = self._slots_together
        if self._filed:
            filed = np.unique(np.array(self._filed, np.intp))
            self._filed.clear()
            filed = filed[self._due.place[filed] == FILED]
            if filed.size:
                self._reckon(filed, now)
        taken = 0
        while taken < _AT_ONCE:
            pages = self._due.take(self._gather_at, min(self._room, _AT_ONCE))
            taken += pages.size
            if not pages.size:
                break
            eligible_at = self._eligible_at(pages)
            self._become_due(pages[eligible_at <= now], now)
            barred = eligible_at > now
            if barred.any():
                self._set_due(pages[barred], eligible_at[barred], now)
                break
        while self._deadlines_of_due and self._deadlines_of_due[0][0] <= now:
            self._become_overdue(heappop(self._deadlines_of_due)[1], now)
        for host in self._hosts_to_check - self._resting.until.keys():
            self._hosts_to_check.discard(host)
            self._bring_host_down(host, now)

    @property
    def _slots_together(self) -> int:
        """For how many slots what falls due is looked at together."""
        return 0 if self._intervals.come else min(self._pages.n // _PART_OF_ROUND, _SLOTS_TOGETHER)

    @property
    def _room(self) -> int:
        """For how many candidates there is room in a queue."""
        return min(max(self._pages.n // _FEWEST, _FEWEST), _MOST)

    def _become_due(self, pages: IndexArray, now: float) -> None:
        pages = self._put_new(pages, now)
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
        if not pages.size:
            return
        queue = self._queue
        self._due.place[pages] = CANDIDATE if host is None else ASIDE
        self._reckon_again(queue.add(pages, now, max(self._gather_at, now), host), now)
        if host is None:
            self._make_room(now)
        elif host in queue.aside and len(queue.aside[host]) > _FEWEST:
            self._reckon_again(queue.raise_host_level(host, now), now)

    def _make_room(self, now: float) -> None:
        if len(self._queue.going) > self._room:
            self._reckon_again(self._queue.raise_level(now), now)

    # -- levels come down

    def _fill(self, now: float) -> bool:
        """Bring the level down to the value of the best candidate; return whether that found a better one."""
        queue = self._queue
        before = queue.highest(now)
        if before >= ENOUGH * queue.level or now < queue.idle_until:
            return False
        self._gather(now)
        for step in count():
            if queue.highest(now) >= ENOUGH * queue.level or (step >= _STEPS and len(queue.going)):
                break
            # Where nobody is left a sample finds somebody at once; to reckon the due times of all could take seconds.
            if not ((len(queue.going) and self._go_on()) or self._bring_down(now)):
                break
            self._gather(now)
        return queue.highest(now) > before

    def _bring_down(self, now: float) -> bool:
        """Lower a level to where some pages are that may go; False if there are none."""
        queue = self._queue
        step = 1 + self._pages.n // _SAMPLE
        pages = self._may_go(np.arange(next(self._samples) % step, self._pages.n, step), now)
        if not pages.size:
            if len(queue.going) or now < queue.searched_until:
                return False
            rows = np.arange(self._pages.n)
            pages = self._may_go(rows, now)
            if not pages.size:
                queue.searched_until = now + rows.size // _RECKONED_AT_ONCE * self.slot
                queue.idle_until = self._next_eligible(now)
                return False
            pages = pages[:: 1 + pages.size // _SAMPLE]
        queue.level = min(self._level_of(pages, now), queue.level)
        best = pages[self.values.value_at(pages, now) >= queue.level]
        self._due.set(best, np.full(best.size, now))
        queue.to_sweep, self._gather_at = self._pages.n, -np.inf
        return True

    def _go_on(self) -> bool:
        """Reckon some due times anew, if that is under way since a level came down; whether it is."""
        queue = self._queue
        if queue.of_hosts.size:
            n = _RECKONED_AT_ONCE
            rows, queue.of_hosts = queue.of_hosts[:n], queue.of_hosts[n:]
        elif queue.to_sweep > 0:
            rows = np.arange(queue.swept, min(queue.swept + _RECKONED_AT_ONCE, self._pages.n))
            queue.swept = queue.swept + rows.size if queue.swept + rows.size < self._pages.n else 0
            queue.to_sweep = max(queue.to_sweep - rows.size, 0)
            if not queue.to_sweep:
                self._gather_at = -np.inf
        else:
            return False
        rows = rows[rows < self._due.place.size]
        place = self._due.place[rows]
        rows = rows[((place == WAITING) | (place == SOON)) & (self._due.at[rows] > self._now)]
        if rows.size:
            self._reckon(rows, self._now)
        return True

    def _level_of(self, pages: IndexArray, now: float, most: int | None = None) -> float:
        """Return the value that a given number of pages exceeds, by a sample; by default half of the room."""
        pages = pages[:: 1 + pages.size // _SAMPLE]
        values = np.sort(self.values.value_at(pages, now))[::-1]
        # A level that is too low rises as pages are looked at, and each that comes down takes a look at all of them.
        rank = max(int((most or self._room / 2) * values.size / max(self._pages.n, 1)), _LEAST_RANK)
        return float(values[min(rank, values.size - 1)])

    def _bring_host_down(self, host: int, now: float) -> None:
        """Lower the level of a host that may be asked, if it has one of its own and no candidate."""
        queue = self._queue
        if host not in queue.host_levels or (queue.going.hosts == host).any():
            return
        rows = np.flatnonzero(self._pages.host[: self._pages.n] == host)
        pages = self._may_go(rows, now)
        pages = pages[:: 1 + pages.size // _SAMPLE]
        values = np.sort(self.values.value_at(pages, now))[::-1]
        rank = int(_FEWEST / 2 * values.size / max(rows.size, 1))
        level = min(values.item(min(rank, values.size - 1)), ENOUGH * queue.host_levels[host]) if values.size else 0
        if level > queue.level:
            queue.host_levels[host] = level
        else:
            del queue.host_levels[host]
        queue.of_hosts = np.concatenate([queue.of_hosts, rows])

    def _may_go(self, rows: IndexArray, now: float, resting: bool = False) -> IndexArray:
        """Return those of some pages with a copy that wait and might go, and whose hosts rest, or do not."""
        place = self._due.place[rows[rows < self._due.place.size]]
        rows = rows[: place.size][(place == WAITING) | (place == SOON)]
        rows = rows[self._eligible_at(rows) <= now]
        rows = rows[self._pages.crawled_at[rows] > -np.inf]
        if self._resting or resting:
            rests: BoolArray = np.isin(self._pages.host[rows], list(self._resting.until))
            rows = rows[rests if resting else ~rests]
        return rows

    def _next_eligible(self, now: float) -> float:
        """Return when the next page that waits may be crawled; inf: never."""
        times = self._eligible_at(np.flatnonzero((self._due.place == WAITING) | (self._due.place == SOON)))
        return float(times[times > now].min(initial=np.inf))

    def _work(self, now: float) -> None:
        """Do a part of the work between picks."""
        self._due.work()
        if 0 < len(self._queue.going) < _LEFT * self._room and self._queue.level > 0.0 and not self._queue.to_sweep:
            self._bring_down(now)
        self._go_on()

    # -- hosts

    def rest_host(self, host: int, until: float) -> None:
        """Leave a host's pages out until a time, or until `release_host`; O(log hosts)."""
        self._resting.rest(host, until)
        self._due.place[self._queue.rest(host)] = ASIDE

    def release_host(self, host: int) -> None:
        """Let a host's pages take part again. O(those of the host)."""
        if host not in self._resting:
            return
        del self._resting.until[host]
        self._queue.idle_until = -np.inf
        pages = self._queue.returns(host)
        self._due.place[pages] = CANDIDATE
        self._make_room(self._now)
        if host in self._queue.host_levels and not pages.size:
            self._hosts_to_check.add(host)
        self.new.host_returns(host)
        self._overdue.host_returns(host)
        self._forced.host_returns(host)
