"""Pages come to the frontier and leave it, and what the passing of time does to those that stand in it."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.frontier.deadlines import Deadlines
from crawlsched.frontier.evaluation.evaluation_queue import OPENED, SOON, WOKEN, Looks
from crawlsched.frontier.hosts.host_queues import HostQueues
from crawlsched.frontier.placement import Standing
from crawlsched.frontier.places import BARRED, IN_FLIGHT, OUT
from crawlsched.frontier.sleeping.crowded_levels import Crowds
from crawlsched.frontier.sleeping.level_queue import Ladder
from crawlsched.frontier.timers.eligibility import Eligibility
from crawlsched.frontier.values import CrawlValues
from crawlsched.pages import Pages
from crawlsched.pages.intervals import Intervals, Limits

__all__ = ["PICKS_PER_TICK", "Filing"]


#: About so many picks make a tick.
PICKS_PER_TICK = 32
# A bed with more sleepers than this is opened in parts with compiled code, so many with each pick.
_CROWDED, _PART = 128, 96
# While hosts rest, one pick looks at no more sleepers than so many portions: the next one goes on.
_PORTIONS_OPENED = 8
# Of more pages than this it is supposed that others will come whose values are lower.
_MANY = 192


class Filing:
    """Keep pages where they can be found when their time comes; `Frontier` adds the picks."""

    def __init__(
        self,
        pages: Pages,
        values: CrawlValues,
        *,
        tick: float,
        now: float,
        min_crawl_interval: float = 0.0,
        max_crawl_interval: float | None = None,
        intervals: Intervals | None = None,
    ) -> None:
        self._pages = pages
        self.values = values
        self._standing = Standing(pages, values, tick, now)
        self._resting = self._standing.resting
        self._returning = self._resting.order
        self._ladders = self._standing.ladders
        if intervals is None:
            longest = np.inf if max_crawl_interval is None else max_crawl_interval
            intervals = Intervals(Limits(min_crawl_interval, longest))
        self._eligibility = Eligibility(pages, intervals)
        # Pages that may be crawled before the turn ends.
        self._soon: list[tuple[float, int]] = []
        self._deadlines = Deadlines(self._eligibility, self._standing, intervals=intervals, tick=tick, now=now)
        # By page, the number by which forced pages are ordered.
        self._force_number: dict[int, float] = {}
        self._force_numbers = count()
        self._forced = HostQueues(self._resting.until, self._force_number.get)
        self._crowds = Crowds(self._ladders, self._resting)
        self._has_looked = False  # whether the last call has looked at many pages already
        self._n_picks_left = 0  # until there is time for other work
        self._looks = Looks(self._standing, self._crowds, self._bar_again)
        # With compiled code, the bed that is being opened in parts.
        self._opening: tuple[Ladder, int] | None = None
        # How many sleepers the last pick has looked at, and whether it has to go on with the next one.
        self._n_opened = 0
        self._is_looking = False

    def __len__(self) -> int:
        """Count the pages in the frontier; O(n)."""
        return int(np.count_nonzero(self._standing.place != OUT))

    def __contains__(self, page: int) -> bool:
        place = self._standing.place
        return 0 <= page < place.size and bool(place[page] != OUT)

    # -- pages come and go

    def reserve(self, capacity: int) -> None:
        """Make room for so many pages; amortised O(1) a page."""
        size = self._standing.place.size
        if capacity > size:
            capacity = max(capacity, size + size // 4)
            self._standing.reserve(capacity)
            self._deadlines.reserve(capacity)

    def file(self, pages: IndexArray, now: float, falling: bool = False) -> None:
        """Put distinct pages where they belong now, wherever they were; O(log n) a page, in numpy.

        Parameters
        ----------
        pages : ndarray of int, shape (n,)
            Pages that are new or back from a visit.
        now : float
            POSIX seconds.
        falling : bool
            Whether the values picked may be falling soon: then pages sleep where they are not disturbed by that.
        """
        if not pages.size:
            return
        self._advance(now)
        self._looks.leave_out(pages)
        self.reserve(int(pages.max()) + 1)
        standing = self._standing
        self._resting.make_room(self._pages.host[pages[standing.place[pages] == OUT]])
        standing.leave(pages)
        if standing.followers:
            standing.place[pages] = IN_FLIGHT  # so that none of them takes over from another
            standing.hand_over(pages)
        eligible = self._eligibility.at(pages)
        self._deadlines.set(pages)
        barred = eligible > now
        if barred.any():
            self._bar_many(pages[barred], eligible[barred], now)
            pages = pages[~barred]
        if pages.size == 1 and not falling:
            standing.put_one(pages.item(0))
            standing.compare_awake()
        elif pages.size:
            standing.put(pages, falling)
            if pages.size > _MANY and not falling:
                standing.calm.suppose(standing.cutoff)
            standing.compare_awake()

    def refile(self, pages: IndexArray, now: float) -> None:
        """File those of some pages that are in the frontier and not in flight: their values have changed. As `file`.

        O(log n) a page.
        """
        place = self._standing.place
        inside = pages[pages < place.size]
        inside = inside[place[inside] > IN_FLIGHT]
        if inside.size <= self.values.few:
            for page in inside.tolist():
                self.file_one(page, now)
        else:
            self.file(inside, now, falling=inside.size > _MANY)

    def file_one(self, page: int, now: float) -> None:
        """Do what `file` does for a single page that was filed before; O(log n)."""
        standing = self._standing
        place = standing.place
        if page >= len(place) or (at := place.item(page)) == OUT:
            self.file(np.array([page]), now)
            return
        if now != standing.now:  # as where a page comes back in the moment in which it was picked
            self._advance(now)
        if self._looks.look is not None:
            self._looks.look.leave_out(page)
        if at != IN_FLIGHT:
            standing.leave_one(page)
            standing.place[page] = IN_FLIGHT
            standing.hand_over_one(page)
        if self._deadlines.come:
            self._deadlines.set_one(page)
        eligible = self._eligibility.at_one(page)
        if eligible > now:
            self._bar(page, eligible, now)
        else:
            standing.put_crawled(page)

    def discard(self, pages: IndexArray) -> None:
        """Take distinct pages out of the frontier, in flight or not; O(1) a page."""
        standing = self._standing
        inside = pages[pages < standing.place.size]
        inside = inside[standing.place[inside] != OUT]
        standing.leave(inside)
        standing.place[inside] = OUT
        standing.hand_over(inside)
        self._forced.discard_many(inside)
        self._deadlines.discard(inside)

    def force(self, pages: IndexArray) -> None:
        """Let pages go before all others, in the order of these calls and of the array; O(log n) a page.

        Pages which may not be crawled yet go too; pages in flight are left alone.
        """
        host = self._pages.host
        for page in pages.tolist():
            if page not in self._forced and self._is_in(page):
                number = self._force_number[page] = float(next(self._force_numbers))
                self._forced.push(host.item(page), number, page)

    def _is_in(self, page: int) -> bool:
        place = self._standing.place
        return 0 <= page < place.size and place.item(page) > IN_FLIGHT

    def _bar(self, page: int, until: float, now: float) -> None:
        """Leave a page out until a time."""
        self._standing.place[page] = BARRED
        if until <= self._standing.until:
            heappush(self._soon, (until, page))
        else:
            self._standing.calendar.set_one(page, until, self._standing.rung)

    def _bar_many(self, pages: IndexArray, until: FloatArray, now: float) -> None:
        """Leave pages out, each until a time."""
        for page, eligible in zip(pages.tolist(), until.tolist(), strict=True):
            self._bar(page, eligible, now)

    def _bar_again(self, pages: IndexArray) -> None:
        """Leave pages out until they may be crawled."""
        self._bar_many(pages, self._eligibility.at(pages), self._standing.now)

    def forget_deadlines(self, pages: IndexArray) -> None:
        """Forget when pages become overdue, before their intervals change; `refile` sets it anew. O(1) a page."""
        self._deadlines.discard(pages)

    def deadline_of(self, page: int) -> float:
        """Return when a page becomes overdue, POSIX seconds; inf without a longest crawl interval. O(1)."""
        return self._deadlines.of(page)

    # -- time passes

    def _advance(self, now: float, picking: bool = False) -> None:
        """Let everything happen that was to happen until now, before a pick perhaps; amortised O(log n) per event."""
        standing = self._standing
        standing.now = now
        self._has_looked = False
        if now >= standing.until:
            self._turn(now, picking)
        if self._soon or self._returning or self._deadlines.soon:
            self._let_happen(now)

    def _let_happen(self, now: float) -> None:
        """Let hosts return, pages become eligible and overdue whose time has come within the tick."""
        for host in self._resting.returning(now):
            self.release_host(host)
        while self._soon and self._soon[0][0] <= now:
            _, page = heappop(self._soon)
            if self._standing.place[page] == BARRED and self._eligibility.at_one(page) <= now:
                self._standing.calendar.clear_one(page)
                self._standing.put_one(page)
        self._deadlines.advance()

    def _turn(self, now: float, picking: bool) -> None:
        """Begin the tick of `now`: all pages that are awake or whose alarms ring are put where they belong.

        In numpy those that are awake, or fresh, wait for other picks. And two calls take longer than one: if the pick
        that follows has to open a bed, it is opened here.
        """
        standing = self._standing
        self._looks.turn(now)
        standing.begin_turn(now)
        standing.calendar.adapt()
        self._ladders.adapt()
        standing.calm.turn(standing.cutoff, standing.ticks)
        self._crowds.fell(standing.cutoff, PICKS_PER_TICK * standing.ticks)
        self._deadlines.turn()
        pages = self._rung(standing.calendar.due(standing.rung), now)
        opened = self._ladder_to_open(now) if picking and standing.at_once < np.inf else None
        if standing.at_once == np.inf:
            pages = np.concatenate([standing.take_awake(), standing.take_fresh(), pages])
        elif (ending := standing.take_ending()).size:
            pages = np.concatenate([ending, pages])
        if opened is not None:
            standing.place[pages] = IN_FLIGHT  # or some would be found in their beds once more
            pages = np.concatenate([pages, self._opened(opened)])
        if pages.size:
            standing.put(pages, falling=False, waking=0 if opened is None else WOKEN)
        self._has_looked = pages.size > 0 or standing.at_once < np.inf
        if opened is not None:
            self._ladders.note(opened)
        standing.part_resting()

    def _rung(self, due: IndexArray, now: float) -> IndexArray:
        """Take pages whose alarms have rung from where they stand; return those that may be crawled by now."""
        if not due.size:
            return due
        barred = self._standing.leave(due, rung=True)
        if barred.size:
            eligible = self._eligibility.at(barred)
            later = eligible > now
            self._bar_many(barred[later], eligible[later], now)
            due = np.concatenate([due[self._standing.place[due] != BARRED], barred[~later]])
        return due

    def _ring_ahead(self) -> None:
        """Look at some pages whose alarms ring in the next tick, if these are many: to ring early does no harm."""
        standing = self._standing
        pages = self._rung(standing.calendar.ahead(self.values.portion), standing.now)
        if pages.size:
            standing.put(pages, falling=False)

    # -- beds are opened

    def _ladder_to_open(self, now: float) -> Ladder | None:
        """Return the ladder with a bed above all that is awake now; None if there is none."""
        ladder, bounds = self._ladders.highest(), self._standing.awake.bounds(now)
        if ladder is None or (bounds.size and bounds.max() >= -ladder[0]):
            return None
        return ladder[2]

    def _open(self, ladder: Ladder) -> None:
        """Look at the pages of a ladder's highest beds, to which the cutoff comes down, or at the best of a run."""
        pages = self._opened(ladder)
        self._n_opened += pages.size
        if pages.size:
            self._standing.put(pages, falling=True, waking=WOKEN if self._standing.at_once < np.inf else 0)
            self._has_looked = True
        self._ladders.note(ladder)

    def _opened(self, ladder: Ladder) -> IndexArray:
        """Take out the pages of a ladder's highest beds, to which the cutoff comes down, or the best of a run."""
        standing, most = self._standing, self._most_opened
        bed = ladder.next_bed() if most < np.inf else None
        lowest: int | None
        if bed is not None and bed[1] > most:
            lowest = bed[0]
            pages = ladder.take(lowest, int(most))
        else:
            pages, lowest = ladder.open(int(min(OPENED, standing.at_once)), standing.at_once)
        if lowest is not None:
            standing.come_down(lowest - 1, ladder.host)
        ladder.noted = None
        standing.place[pages] = IN_FLIGHT
        standing.calendar.clear(pages)
        return pages

    @property
    def _most_opened(self) -> float:
        """How many sleepers a pick may look at: few of them may be of hosts that do not rest, or none. O(1)."""
        return _PORTIONS_OPENED * self.values.portion if self._resting else np.inf

    def _open_soon(self) -> None:
        """Begin to open the highest bed in parts, if it is crowded and soon no page is awake that is worth more.

        Or the pick that finds none awake would have to look at all of them.
        """
        standing, highest = self._standing, self._ladders.highest()
        bed = None if highest is None else highest[2].next_bed()
        if highest is None or bed is None or bed[1] <= _CROWDED:
            return
        if np.count_nonzero(standing.awake.bounds(standing.now) > -highest[0]) > SOON:
            return
        self._opening = highest[2], bed[0]
        standing.come_down(bed[0] - 1, highest[2].host)

    def _open_part(self) -> None:
        """Look at some pages of the bed that is being opened."""
        assert self._opening is not None
        ladder, level = self._opening
        bed = ladder.next_bed()
        # Where the cutoff has risen again they would all come back.
        if bed is None or bed[0] != level or level <= self._standing.cutoff:
            self._opening = None
            return
        pages = ladder.take(level, _PART)
        if pages.size:  # else those were dead: the next part has others
            self._standing.calendar.clear(pages)
            self._standing.put(pages, falling=True)

    def _thin_out(self) -> None:
        """Look at some pages of a bed that the cutoff is coming down to, so that not all have to be looked at then."""
        pages = self._crowds.take()
        if pages.size:
            self._standing.calendar.clear(pages)
            self._standing.put(pages, falling=True)

    # -- hosts

    def rest_host(self, host: int, until: float) -> None:
        """Leave a host's pages out until a time, or until `release_host`; O(log hosts)."""
        self._resting.rest(host, until, self._standing.cutoff)
        self._standing.awake.rest(host, True)

    def release_host(self, host: int) -> None:
        """Let a host's pages take part again; O(its awake pages)."""
        if host not in self._resting:
            return
        self._standing.part_resting()  # or, where too many wait, they would push the cutoff of all up
        self._resting.release(host)
        self._standing.awake.rest(host, False)
        waiting = self._resting.take(host)
        if 0 < waiting.size <= self.values.few:
            for page in waiting.tolist():
                self._standing.put_one(page)
        elif waiting.size:
            self._standing.put(waiting, falling=False)
        self._deadlines.overdue.host_returns(host)
        self._forced.host_returns(host)
        self._ladders.host_returns(host)
