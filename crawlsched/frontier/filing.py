"""Filing: how pages enter the frontier, become due and leave it, and how the level is raised and lowered."""

from __future__ import annotations

from itertools import count
from math import cbrt, ceil

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.frontier.candidates import ENOUGH, Candidates, CrawlValues
from crawlsched.frontier.due_times import ASIDE, CANDIDATE, FILED, IN_FLIGHT, NEW, OUT, OVERDUE, SOON, WAITING, DueTimes
from crawlsched.frontier.new_pages import DiscoveryShare, NewPages
from crawlsched.frontier.queues import HostQueue, PriorityQueue
from crawlsched.pages import Pages
from crawlsched.pages.intervals import CrawlIntervals

__all__ = ["AT_ONCE", "LEAST_WAIT", "Filing"]


# A queue has room for one candidate per 64 pages, within the limits `_FEWEST` and `_MOST`. When the candidates of
# resting hosts need twice the room, each of these hosts has at most `_FEWEST`.
_FEWEST = 64
_MOST = _FEWEST**2
#: While first copies wait, a page with a copy goes at most once in this number of slots. Otherwise the first page of a
#: site would be fetched again and again until other pages are known.
LEAST_WAIT = 16
#: Each pick makes at most this number of pages candidates. Together with due times, that takes a millisecond where no
#: page is announced, and up to 10 where all pages are.
AT_ONCE = 128
# Due times are computed anew for this multiple of `AT_ONCE` pages with each `_TOGETHER`-th pick: a few announced pages
# take as long as many. A sample has as many pages.
_TOGETHER = 8
# While there is no good candidate, a pick does at most this number of steps of such work.
_STEPS = 4
# A level is chosen from a sample so that at least this number of the sample's pages have higher values.
_LEAST_RANK = 8
# A page that was due too early is evaluated again when the time since its crawl has grown by this share.
_WAIT_AGAIN = 0.005


class Filing:
    """Keep pages in a column and in queues, so that due pages are found quickly; `Frontier` adds the picks."""

    def __init__(
        self, pages: Pages, values: CrawlValues, *, intervals: CrawlIntervals, slot: float, share: DiscoveryShare
    ) -> None:
        self.values, self.slot, self.share = values, slot, share
        self._pages, self._intervals = pages, intervals
        self._due = DueTimes()
        self._resting = PriorityQueue[int]()  # hosts, by the time until which they rest, POSIX seconds
        # Pages with a copy, and pages without one.
        self._queue, self.new = Candidates(pages, values), NewPages(pages, self._resting)
        # Forced pages, and due pages that have a deadline.
        self._forced, self._overdue = HostQueue(self._resting), HostQueue(self._resting)
        self._force_numbers, self._samples, self._n_picks = count(), count(), count()
        # Pages whose due times will be computed at the next look. Until then their entries in the column of due times
        # are lower bounds.
        self._filed: set[int] = set()
        # Pages whose due times have to be computed anew, by how many of the lower levels they have reached. The
        # last are computed first: the level has fallen, or the level of one host. All pages are computed anew because
        # they were loaded, or because the lowest level has changed.
        self._anew: tuple[list[range | IndexArray], ...] = ([], [], [])
        # Due times are computed for the lowest of these levels first. A page that has reached it gets the time at which
        # it reaches the next one, and at last the level itself. When the level falls, only the due times of the pages
        # that have reached a lower level have to be computed anew.
        self._lower_levels: FloatArray = np.zeros(2)
        # While first copies wait, a page with a copy is not picked again within these seconds.
        self._least_wait = 0.0
        # Before `_idle_until`, no waiting page may go. Until `_searched_until`, the search through all pages is not
        # repeated.
        self._idle_until = self._searched_until = -np.inf
        self._now = self._looked_until = -np.inf
        # Picks are counted here, not slots: slots that a slow machine leaves unused need no look.
        self._picks_until_look = 0

    def _place_of(self, page: int) -> int:
        place = self._due.place
        return place.item(page) if 0 <= page < place.size else OUT

    # -- pages are added and removed

    def reserve(self, capacity: int) -> None:
        """Make room for more pages; amortised O(1) a page."""
        if capacity > self._due.place.size:
            self._due.reserve(capacity)
            self.new.reserve(self._due.place.size)

    def file(self, pages: IndexArray, now: float) -> None:
        """File distinct pages by the present knowledge; O(1) a page, and the computation of its due time."""
        if not pages.size:
            return
        self._now = max(now, self._now)
        self.reserve(int(pages.max()) + 1)
        self._leave(pages)
        self._due.place[pages], self._due.at[pages], self._due.n_reached[pages] = FILED, -np.inf, 0
        if pages.size <= AT_ONCE:
            self._filed.update(pages.tolist())
            self._picks_until_look = 0
        elif not self._due.are_many:
            self._reckon(pages, self._now)
        else:  # the next picks place these pages by their values
            known = self._put_new(pages, self._now)
            self._due.set(known, np.maximum(self._deadlines(known), self._eligible_at(known)))
            self._anew[0].append(range(int(pages.min()), int(pages.max()) + 1))
        self._idle_until = -np.inf

    def file_one(self, page: int, now: float) -> None:
        """File a page after its visit. O(1)."""
        if self._place_of(page) != IN_FLIGHT:
            self.file(np.array([page]), now)
            return
        self._now = max(now, self._now)
        self._due.place[page], self._due.at[page], self._due.n_reached[page] = FILED, -np.inf, 0
        self._filed.add(page)
        self._idle_until = -np.inf

    def refile(self, pages: IndexArray, now: float) -> None:
        """File anew the pages whose values have changed, if they are in the frontier and not in flight; O(1) a page."""
        inside = pages[pages < self._due.place.size]
        inside = inside[self._due.place[inside] > IN_FLIGHT]
        # A new page that is already in its right place in the queue stays there, so that it does not lose its turn.
        stay = (self._due.place[inside] == NEW) & (self._eligible_at(inside) <= now)
        stay[stay] = [self.new.stands_right(page) for page in inside[stay].tolist()]
        self.file(inside[~stay], now)

    def discard(self, pages: IndexArray) -> None:
        """Take distinct pages out of the frontier, in flight or not. O(1) a page, O(candidates) for a candidate."""
        inside = pages[pages < self._due.place.size]
        self._leave(inside)
        self._due.place[inside] = OUT
        self.new.forget(inside)
        for page in inside.tolist() if self._forced else ():
            self._forced.discard(page)

    def force(self, pages: IndexArray) -> None:
        """Let pages go before all others, in the order of the calls, and of the array in each call; O(log n) a page.

        Forced pages go even if they may not be crawled yet. Pages in flight are left alone.
        """
        for page in pages.tolist():
            if page not in self._forced and self._place_of(page) > IN_FLIGHT:
                self._forced.push(self._pages.host.item(page), float(next(self._force_numbers)), page)

    def _leave(self, pages: IndexArray) -> None:
        for page in (pages if self._overdue else pages[self._due.place[pages] > SOON]).tolist():
            self._leave_one(page)

    def _leave_one(self, page: int) -> None:
        place = self._due.place.item(page)
        if place == NEW:
            self.new.discard(page)
        elif place in (CANDIDATE, ASIDE):
            self._queue.discard(page)
        self._overdue.discard(page)

    def deadline_of(self, page: int) -> float:
        """Return when a page becomes overdue, POSIX seconds; inf: it has no longest interval, or no copy. O(1)."""
        return float(self._deadlines(np.array([page]))[0])

    def _deadlines(self, pages: IndexArray) -> FloatArray:
        if not self._intervals.come:
            return np.full(pages.size, np.inf)
        last = self._pages.crawled_at[pages]
        found: FloatArray = np.where(last > -np.inf, last, np.inf) + self._intervals.longest(pages)
        return found

    def _eligible_at(self, pages: IndexArray | int, least_wait: float = 0.0) -> FloatArray:
        columns = self._pages
        soonest = columns.crawled_at[pages] + np.maximum(self._intervals.shortest(pages), least_wait)
        eligible: FloatArray = np.maximum(columns.not_before[pages], soonest)
        return eligible

    # -- due times

    def _reckon(self, pages: IndexArray, now: float) -> None:
        """Set due times: when a page with a copy reaches its host's level, and when any other page may go."""
        pages = self._put_new(pages, now)
        if not pages.size:
            return
        if self._queue.level <= 0.0 and (self._anew[0] or pages.size > _FEWEST):
            # A level that is too low rises as pages become candidates. A level that is too high has to be lowered, and
            # then due times are computed anew. These pages may be the first of as many as there is room for.
            sample = self._may_go(self._some(range(self._pages.n)), now)
            levels = self._come_down(sample, now, self._room, self._due.place.size, np.inf)
            self._lower_levels[:], self._queue.level = levels[:-1], float(levels[-1])
        not_before = np.where(self._due.place[pages] == FILED, self._due.at[pages], -np.inf)
        times = np.minimum(np.maximum(self._reach(pages, now), not_before), self._deadlines(pages))
        self._due.set(pages, np.maximum(times, self._eligible_at(pages)))

    def _reach(self, pages: IndexArray, now: float) -> FloatArray:
        """Return when pages reach the next of the lower levels, or at last their host's level; note what is reached."""
        levels, n_reached = self._queue.levels(self._pages.host[pages]), self._due.n_reached[pages]
        least = int(n_reached.min())
        nths = np.arange(least, self._lower_levels.size)
        lower = [np.where(n_reached > nth, np.inf, self._lower_levels[nth]) for nth in nths]
        reached = self.values.reaches(pages, np.minimum.accumulate([levels, *lower[::-1]])[::-1], now)
        n_reached = np.maximum(n_reached, ((reached[:-1] <= now).T * (nths + 1)).max(axis=1, initial=0))
        self._due.n_reached[pages] = n_reached
        earliest: FloatArray = reached[n_reached - least, np.arange(pages.size)]
        return earliest

    def _put_new(self, pages: IndexArray, now: float) -> IndexArray:
        """Queue pages without a copy as new pages, unless they have to wait; return the pages with a copy."""
        is_new: BoolArray = self._pages.crawled_at[pages] == -np.inf
        if not is_new.any():
            return pages
        new = pages[is_new]
        eligible_at = self._eligible_at(new)
        self._due.set(new[eligible_at > now], eligible_at[eligible_at > now])
        self._due.place[new[eligible_at <= now]] = NEW
        self.new.put(new[eligible_at <= now])
        return pages[~is_new]

    def _put_back(self, pages: IndexArray, now: float) -> None:
        """File pages that were due too early, so that they are not due again immediately."""
        again = now + np.maximum(_WAIT_AGAIN * (now - self._pages.crawled_at[pages]), self.slot)
        self._due.place[pages] = FILED
        self._due.at[pages] = np.maximum(again, np.nextafter(self._looked_until, np.inf))
        self._filed.update(pages.tolist())

    def _follow(self, now: float) -> None:
        """Let hosts return and pages become due, up to `now`."""
        self._let_hosts_return(now)
        if self._picks_until_look <= 0 or not len(self._queue.going):
            self._look(now)

    def _let_hosts_return(self, now: float) -> None:
        self._now = max(now, self._now)
        while (host := self._resting.first()) is not None and self._resting.at[host] <= now:
            self.release_host(host)

    def _look(self, now: float) -> None:
        """Compute the due times of filed pages, and make due pages candidates."""
        self._now = now = max(now, self._now)
        self._looked_until = now + self._slots_together * self.slot
        if self._filed:
            some = sorted(self._filed)[:AT_ONCE]
            filed = np.array(some, np.intp)
            self._filed.difference_update(some)
            self._reckon(filed[self._due.place[filed] == FILED], now)
        pages = self._due.take(self._looked_until, AT_ONCE)
        self._picks_until_look = 0 if pages.size == AT_ONCE or self._filed else self._slots_together
        if pages.size:
            eligible_at = self._eligible_at(pages)
            is_barred = eligible_at > now
            self._due.set(pages[is_barred], eligible_at[is_barred])
            if is_barred.any():  # the next look comes when the first of these may go
                slots = ceil((eligible_at[is_barred].min() - now) / self.slot)
                self._picks_until_look = min(self._picks_until_look, slots)
            self._become_due(pages[~is_barred], now)

    @property
    def _slots_together(self) -> int:
        """The number of slots whose due pages become candidates together: that takes about as long as for one slot.

        In a small collection a page can be due again after a few slots.
        """
        is_small = self._pages.n <= 2 * AT_ONCE
        return 0 if is_small or self._intervals.come else int(cbrt(self._pages.n))

    @property
    def _room(self) -> int:
        """The number of candidates when the level has fallen; a queue may have twice as many.

        It is for as many pages as there is room for, since a store is read in blocks.
        """
        return min(max(self._due.place.size // _FEWEST, _FEWEST), _MOST)

    @property
    def _apart(self) -> float:
        """How many times as many pages exceed a level as the next higher level; all pages exceed a level of 0."""
        return cbrt(max(self._due.place.size / self._room, 1.0))

    def _become_due(self, pages: IndexArray, now: float) -> None:
        """Make pages candidates, or set them aside if their hosts rest; raise a level that has too many candidates."""
        pages = self._put_new(pages, now)
        if not pages.size:
            return
        if self._intervals.come:
            deadlines = self._deadlines(pages)
            for page, deadline in zip(pages.tolist(), deadlines.tolist(), strict=True):
                if deadline < np.inf:
                    self._overdue.push(self._pages.host.item(page), deadline, page)
            self._due.place[pages[deadlines <= now]] = OVERDUE
            pages = pages[deadlines > now]
        others, aside = self._queue.add(pages, now, self._looked_until, self._resting)
        self._put_back(others, now)
        for host, set_aside in aside.items():
            self._due.place[set_aside] = ASIDE
            if self._queue.n_aside > 2 * self._room and len(self._queue.aside[host]) > _FEWEST:
                self._put_back(self._queue.raise_level(now, self._looked_until, host), now)
        self._make_room(now)

    def _make_room(self, now: float) -> None:
        if len(self._queue.going) > 2 * self._room:
            self._put_back(self._queue.raise_level(now, self._looked_until), now)

    # -- levels come down

    def _fill(self, now: float) -> bool:
        """Lower the level until a candidate reaches it; return whether the best candidate is better than before."""
        queue = self._queue
        before = queue.highest(now)
        if before >= ENOUGH * queue.level or now < self._idle_until:
            return False
        self._look(now)
        for step in range(_STEPS):
            # Mostly the next due times give a candidate. If not, a sample finds one immediately: to compute all due
            # times could take seconds.
            goes_on = not step or len(queue.going) > 0
            if queue.highest(now) >= ENOUGH * queue.level or not ((goes_on and self._go_on()) or self._bring_down(now)):
                break
            self._look(now)
        return queue.highest(now) > before

    def _bring_down(self, now: float) -> bool:
        """Lower the level so that some pages are due; return False if no page may go."""
        queue = self._queue
        self._picks_until_look = 0
        for nth in (2, 1, 0):
            near = range(0) if any(self._anew[:nth]) else self._near(nth)
            if nth and len(near) <= self._room:
                continue
            pages = self._may_go(self._some(near), now)
            if not nth and not pages.size:
                if len(queue.going) or now < self._searched_until:
                    return False
                pages = self._some(self._may_go(np.arange(len(near)), now))
                if not pages.size:
                    self._searched_until = now + len(near) // (_TOGETHER * AT_ONCE) * self.slot
                    self._idle_until = self._next_eligible(now)
                    return False
            levels = self._come_down(pages, now, self._room, len(near), queue.level)
            if not nth or levels[-1] > self._lower_levels[nth - 1]:
                break
        if nth < 2 and self._anew[nth] and levels[-1] > self._lower_levels[nth]:
            nth = first = nth + 1  # the other pages are computed anew already
            near = self._near(nth)
        else:  # a lower level that too many pages exceed is raised, too
            first = nth - (nth > 0 and len(near) > 1.25 * self._room * self._apart ** (3 - nth))
        least = self._lower_levels[nth - 1] if nth else 0.0
        queue.level, self._lower_levels[first:] = float(levels[-1]), np.maximum(levels[first:-1], least)
        self._due.n_reached[self._due.n_reached > first] = first
        self._anew = (*self._anew[:first], [near], *([] for _ in self._anew[first + 1 :]))
        return True

    def _near(self, nth: int) -> range | IndexArray:
        """Return the pages that have reached at least this number of the lower levels."""
        return np.flatnonzero(self._due.n_reached >= nth) if nth else range(min(self._pages.n, self._due.place.size))

    def _some(self, rows: range | IndexArray) -> IndexArray:
        """Return some rows at equal distances, different rows at each call; O(1)."""
        step = 1 + len(rows) // (_TOGETHER * AT_ONCE)
        return np.array(rows[next(self._samples) % step :: step], np.intp)

    def _go_on(self) -> bool:
        """Compute some due times anew if the level has fallen; return False if none had to be computed."""
        anew = next(filter(None, reversed(self._anew)), None)
        if anew is None:
            return False
        some, rest = anew[0][: _TOGETHER * AT_ONCE], anew[0][_TOGETHER * AT_ONCE :]
        anew[:1] = [rest] if len(rest) else []
        rows = np.array(some, np.intp)
        place = self._due.place[rows]
        waits = ((place == WAITING) | (place == SOON)) & (self._due.at[rows] > self._now)
        self._reckon(rows[waits], self._now)
        return True

    def _come_down(self, pages: IndexArray, now: float, above: float, n_pages: int, most: float) -> FloatArray:
        """Return the lower levels and, at last, the level that `above` of `n_pages` exceed, by a sample of them.

        Make the sample's pages above the level due.
        """
        values = self.values.value_at(pages, now)
        ordered = np.sort(values) if values.size else np.zeros(1)
        wanted = above * self._apart ** np.arange(self._lower_levels.size, -1, -1)
        ranks = np.clip(wanted / max(n_pages, 1) * pages.size, _LEAST_RANK, ordered.size - 1).astype(np.intp)
        levels: FloatArray = np.minimum(ordered[-1 - ranks], most)
        best = pages[values >= levels[-1]]
        self._due.set(best, np.full(best.size, now))
        return levels

    def _bring_hosts_down(self, now: float) -> None:
        """Lower the levels of hosts that have no candidates left."""
        hosts = self._queue.host_levels.keys() - self._resting.at.keys()
        if hosts and (hosts := hosts - set(self._queue.going.hosts.tolist())):
            near = self._near(self._lower_levels.size)
            for host in hosts:
                rows = near[self._pages.host[near] == host]
                most = ENOUGH * self._queue.host_levels[host]
                level = self._come_down(self._may_go(self._some(rows), now), now, _FEWEST / 2, rows.size, most)[-1]
                self._queue.host_levels[host] = float(level)
                if level <= self._queue.level:
                    del self._queue.host_levels[host]
                self._anew[-1].insert(0, rows)
            self._picks_until_look = 0

    def _may_go(self, rows: IndexArray, now: float, resting: bool = False) -> IndexArray:
        """Return waiting pages that have a copy and may be crawled now: pages of resting hosts, or of others."""
        place = self._due.place[rows[rows < self._due.place.size]]
        rows = rows[: place.size][(place >= FILED) & (place <= SOON)]
        rows = rows[self._eligible_at(rows, self._least_wait) <= now]
        rows = rows[self._pages.crawled_at[rows] > -np.inf]
        if self._resting or resting:
            rests: BoolArray = np.isin(self._pages.host[rows], list(self._resting.at))
            rows = rows[rests if resting else ~rests]
        return rows

    def _next_eligible(self, now: float) -> float:
        """Return when the next page that waits may be crawled; inf: never."""
        waiting = np.flatnonzero((self._due.place >= FILED) & (self._due.place <= SOON))
        times = self._eligible_at(waiting, self._least_wait)
        return float(times[times > now].min(initial=np.inf))

    def _work(self, now: float) -> None:
        self._due.work()
        # Begin when less than a quarter of the room is filled. The last candidates are picked meanwhile.
        is_short = 0 < 4 * len(self._queue.going) < self._room - 4 * self._queue.n_aside
        if is_short and self._queue.level > 0.0 and not any(self._anew):
            self._bring_down(now)
        if next(self._n_picks) % _TOGETHER == 0:
            self._bring_hosts_down(now)
            self._go_on()

    # -- hosts

    def rest_host(self, host: int, until: float) -> None:
        """Leave a host's pages out until a time, or until `release_host` is called; O(log hosts)."""
        self._resting.put(host, until)
        self._due.place[self._queue.rest(host)] = ASIDE

    def release_host(self, host: int) -> None:
        """Let a host's pages take part again. O(candidates of the host)."""
        if host not in self._resting:
            return
        self._resting.discard(host)
        self._idle_until = -np.inf
        self._due.place[self._queue.returns(host)] = CANDIDATE
        self._make_room(self._now)
        for pages in (self.new, self._overdue, self._forced):
            pages.host_returns(host)
