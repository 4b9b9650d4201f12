"""The planner: what is known of all pages, what each is worth, and which goes next."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators import LearnedRates
from crawlsched.frontier import DiscoveryShare, Frontier, Pick
from crawlsched.pages import FREE
from crawlsched.pages.intervals import Intervals, Limits
from crawlsched.planner.announced import Announced
from crawlsched.planner.endings import Endings
from crawlsched.planner.knowledge import DAY, Knowledge
from crawlsched.planner.lessons import Lessons
from crawlsched.planner.membership import Membership
from crawlsched.planner.options import check_intervals, check_policy, positive
from crawlsched.planner.plans.plan import Plan
from crawlsched.planner.plans.snapshot import Snapshot
from crawlsched.planner.sampling import snapshot_in_parts
from crawlsched.planner.starvation import Rounds
from crawlsched.planner.threshold import Threshold
from crawlsched.planner.told import Told
from crawlsched.planner.values.plug_in_values import KnownRates

__all__ = ["DEFAULT_GRID", "Planner"]

#: 32 change rates per second in equal ratios of 1.75, from once in three years to once in 3 seconds: the range of real
#: sites, and at its fast end that of a demonstration which cannot wait.
DEFAULT_GRID: FloatArray = np.geomspace(1 / (3 * 365 * DAY), 1 / 3, 32)


class Planner:
    """Decide which page to crawl, and learn from what the visit found; the only writer of `Pages`.

    Parameters
    ----------
    bandwidth : float
        Crawls per second.
    crawl_value : str
        ``"posterior"``, the expectation over what is still possible, or one of the papers' rules with estimated (or,
        by `set_rates`, known) rates, a name in `crawlsched.planner.values.rules.RULES`: ``"greedy"``, ...; or a plan,
        a name in `crawlsched.planner.values.planned_values.POLICIES`: ``"harmonic"``, ...
    rates : array_like, optional
        Grid of change rates per second, increasing; `DEFAULT_GRID` by default.
    min_crawl_interval : float
        No page is picked sooner after its last crawl, seconds.
    interval_rules : sequence of Limits, optional
        Other limits of some pages, which go before these two; `add` and `set_intervals` say of which.
    max_crawl_interval : float, optional
        A page not crawled for longer goes before anything of value, seconds.
    max_crawl_rounds : float, optional
        A page of some importance that was not crawled for so many rounds, each as long as one crawl of every page
        takes, goes before long, too (`crawlsched.planner.starvation`); None: what is not worth it never goes.
    discovery_share : float
        At most this share of the slots goes to first copies while pages that have a copy are due.
    signal_delay : float
        A ChangeSignal is discarded so many seconds after a crawl: it announces what that crawl has seen.
    error_interval : float
        A page is tried again so many seconds after an error, then after twice as many, up to a day.
    gone_interval : float
        A gone page is looked for again after so many seconds, then after twice as many, up to 30 days.
    learned : LearnedRates, optional
        The estimator by which the papers' rules learn change rates; the mean of the posterior by default.
    picks : bool, default True
        False: it is only asked what pages are worth. They are not placed in the frontier, which takes most of the time.

    Attributes
    ----------
    pages : Pages
    posterior : Posterior
        What is known of each page's change rate, a compact row per page.
    crawl_values : PosteriorValues, PointValues or PlannedValues
        What pages are worth, by the rule that `crawl_value` names.
    frontier : Frontier
        Finds the best page.
    bandwidth : float
        Crawls per second; see `set_bandwidth`.
    threshold : float
        A running mean of the crawl values picked, of pages that have a copy.
    clipped : int
        Loaded pages whose last crawl was in the future.
    plan : Plan or None
        The plan adopted last.

    Examples
    --------
    >>> planner = Planner(bandwidth=1.0)
    >>> planner.add(host=0, now=0.0, n=2)
    array([0, 1])
    >>> pick = planner.pick(0.0, host_free_at=lambda host, now: now)
    >>> pick.page, pick.reason
    (0, 'value')
    >>> planner.crawled(0, 1.0, changed=None)
    >>> planner.pick(2.0, host_free_at=lambda host, now: now).page
    1
    """

    def __init__(
        self,
        bandwidth: float,
        *,
        crawl_value: str = "posterior",
        rates: npt.ArrayLike | None = None,
        min_crawl_interval: float = 0.0,
        max_crawl_interval: float | None = None,
        interval_rules: Sequence[Limits] = (),
        max_crawl_rounds: float | None = None,
        discovery_share: float = 0.6,
        signal_delay: float = 0.0,
        error_interval: float = 60.0,
        gone_interval: float = DAY,
        learned: LearnedRates | None = None,
        picks: bool = True,
    ) -> None:
        check_policy(crawl_value)
        check_intervals(min_crawl_interval, max_crawl_interval, max_crawl_rounds, signal_delay)
        self.min_crawl_interval = min_crawl_interval
        self.max_crawl_interval = max_crawl_interval
        longest = np.inf if max_crawl_interval is None else max_crawl_interval
        self.intervals = Intervals(Limits(min_crawl_interval, longest), interval_rules)
        if not 0.0 <= discovery_share <= 1.0:
            raise ValueError(f"discovery_share must be a number from 0 to 1, got {discovery_share!r}.")
        error_interval = positive("error_interval", error_interval, "seconds")
        gone_interval = positive("gone_interval", gone_interval, "seconds")
        # Of one rate for each page, the expectation of the crawl value is the papers' most general rule.
        rule = "greedy_ncis" if crawl_value == "posterior" and learned is not None else crawl_value
        self.known = known = Knowledge(
            positive("bandwidth", bandwidth, "crawls per second"),
            DEFAULT_GRID if rates is None else rates,
            rule,
            self.intervals,
            discovery_share,
            learned,
            picks,
        )
        self.rule, self.learned = rule, learned
        self.error_interval, self.gone_interval, self.signal_delay = error_interval, gone_interval, signal_delay
        self.pages, self.posterior, self.grid = known.pages, known.posterior, known.posterior.rates_id
        self.further, self.own_precision = known.further, known.own_precision
        self.announcements, self.in_force = known.announcements, known.in_force
        self.values, self.crawl_values = known.values, known.crawl_values
        self._rounds = None if max_crawl_rounds is None else Rounds(self.pages, max_crawl_rounds)
        self._threshold = Threshold()
        # What the parts do is called without a step in between: their docstrings say how.
        self.at, self.rows, self.change_rates = known.at, known.rows, known.change_rates
        self._membership = came = Membership(known)
        self.reserve, self.add, self.remove = came.reserve, came.add, came.remove
        self.set_priority = came.set_priority
        self.load, self.load_further = came.load, came.load_further
        self.load_learned, self.relearn = came.load_learned, came.relearn
        self.crawled = Lessons(known).crawled
        ended = Endings(known, error_interval, gone_interval)
        self.failed, self.gone, self.moved, self.refused = ended.failed, ended.gone, ended.moved, ended.refused
        self.put_off, self.take_back, self.release = ended.put_off, ended.take_back, ended.release
        self.standing, self.not_allowed, self.ask_soon = ended.standing, ended.not_allowed, ended.ask_soon
        announced = Announced(known, signal_delay)
        self.covered, self.signalled, self.announced_by = announced.covered, announced.signalled, announced.announced_by
        told = Told(known)
        self.set_importance, self.set_rates, self.set_intervals = (
            told.set_importance,
            told.set_rates,
            told.set_intervals,
        )

    @property
    def frontier(self) -> Frontier:
        """The frontier; it begins with the first page."""
        return self.known.frontier

    @property
    def bandwidth(self) -> float:
        """Crawls per second."""
        return self.known.bandwidth

    @property
    def host_limit(self) -> Callable[[int], float]:
        """Gives for how many crawls per second a host lets itself be asked at most; inf: as many as anybody likes."""
        return self.known.host_limit

    @host_limit.setter
    def host_limit(self, limit: Callable[[int], float]) -> None:
        self.known.host_limit = limit
        if self.has_frontier:
            self.frontier.new.limit = limit

    @property
    def now(self) -> float:
        """The latest time that was said, POSIX seconds."""
        return self.known.now

    @property
    def has_frontier(self) -> bool:
        """Whether anything was said of pages or of the time."""
        return self.known.frontier_or_none is not None

    @property
    def known_rates(self) -> KnownRates | None:
        """Rates of pages that somebody has told."""
        return self.known.known_rates

    @property
    def plan(self) -> Plan | None:
        """The plan adopted last."""
        found: Plan | None = self.known.in_force.plan
        return found

    @property
    def clipped(self) -> int:
        """Loaded pages whose last crawl was in the future."""
        return self._membership.clipped

    @property
    def threshold(self) -> float:
        """A running mean of the crawl values picked, of pages that have a copy.

        It may be set where it is known from a crawl before.
        """
        return self._threshold.value

    @threshold.setter
    def threshold(self, value: float) -> None:
        self._threshold.value = value

    # -- picks

    def pick(self, now: float, host_free_at: Callable[[int, float], float]) -> Pick | None:
        """Take out the page to crawl now; amortised O(log n), plus one slice of a plan that is being adopted.

        Parameters
        ----------
        now : float
            POSIX seconds.
        host_free_at : callable
            ``host_free_at(host, now)`` gives the earliest time at which a host may be asked, at most `now` if it may be
            now. A host that may not rests until then, or until `release_host`.

        Returns
        -------
        Pick or None
            Its reason is that of `Frontier.pick`.
            The page is in flight until one of `crawled`, `failed`, `gone`, `moved`, `refused`, `release`, `remove`.
        """
        now, frontier = self.at(now), self.known.frontier
        if self.known.work:
            self.work(now)
        if self._rounds is not None:
            self._rounds.before_pick(frontier, self.known.bandwidth, now)
        pick = frontier.pick(now, host_free_at)
        if pick is None:
            return None
        page, crawl_value, reason, is_first_copy = pick
        self.known.in_flight.add(page)
        if reason == "value" and not is_first_copy:
            self._threshold.follow(crawl_value)
        # Pages go out of turn by force.
        elif reason == "forced" and self._rounds is not None and self._rounds.sent(page):
            pick = Pick(page, crawl_value, "overdue")
        return pick

    @property
    def share(self) -> DiscoveryShare:
        """How many of the slots are for first copies; several planners that share their slots may have one."""
        return self.known.share

    @share.setter
    def share(self, share: DiscoveryShare) -> None:
        self.known.share = share
        if self.has_frontier:
            self.frontier.share = share

    def new_pages_of(self, host: int) -> int:
        """Return how many pages of a host wait for their first copy; O(1)."""
        return self.frontier.new.of_host[host] if self.has_frontier else 0

    @property
    def n_new(self) -> int:
        """How many pages without a copy wait; O(1)."""
        return len(self.frontier.new) if self.has_frontier else 0

    @property
    def makes_first_copies(self) -> bool:
        """Whether pages without a copy wait; O(1)."""
        return self.n_new > 0

    def work(self, now: float) -> bool:
        """Do what is to be done between two picks; return whether there is more. About a millisecond.

        `pick` does it; where picks are rare it can be called at any other time too.
        """
        if self.known.work:
            # In turn, so that announcements do not wait until all pages have adopted a plan.
            step = self.known.work.popleft()
            if step(self.at(now)):
                self.known.work.append(step)
        return bool(self.known.work)

    def hold(self, page: int) -> None:
        """Keep a page in flight although its visit has ended: it is fetched once more. `release` lets it go."""
        self.known.frontier.discard(np.array([page]))
        self.known.in_flight.add(page)

    def catch_up(self, now: float) -> None:
        """Do all that the passing of time has brought about until now; O(pages whose time has come).

        `pick` does it too. Before the first of many picks it can be a long time, as after loading a large collection.
        """
        now = self.at(now)
        self.known.frontier.advance(now)

    def in_flight(self, page: int) -> bool:
        """Whether a page is being visited."""
        return page in self.known.in_flight

    def release_host(self, host: int) -> None:
        """Let a host that rests be asked again."""
        if self.has_frontier:
            self.frontier.release_host(host)

    def waits_for_host(self) -> bool:
        """Whether some page could go if its host did not rest."""
        return self.has_frontier and self.frontier.waits_for_host()

    def bound(self, now: float) -> float:
        """Return what no page that `pick` could give now is worth more than; see `Frontier.bound`."""
        now = self.at(now)
        return self.frontier.bound(now) if self.has_frontier else -np.inf

    def host_returns(self, now: float) -> bool:
        """Whether `bound` may have risen at once, since a host has rested; see `Frontier.host_returns`."""
        return self.has_frontier and self.frontier.host_returns(now)

    def best_value(self, now: float, host_free_at: Callable[[int, float], float]) -> float:
        """Return what the page is worth that `pick` would give now; see `Frontier.best_value`."""
        now = self.at(now)
        return self.frontier.best_value(now, host_free_at) if self.has_frontier else -np.inf

    def peek(self, now: float, n: int) -> IndexArray:
        """Return pages that are likely to be picked next: see `out_of_turn` and `Frontier.peek`."""
        if not self.has_frontier:
            return np.empty(0, np.intp)
        return np.array(list(dict.fromkeys([*self.out_of_turn(now, n), *self.frontier.peek(n).tolist()])), np.intp)

    def out_of_turn(self, now: float, n: int) -> list[int]:
        """Return pages that go with the next `n` picks, whatever they are worth, about in their order; O(n log n)."""
        found = self.frontier.out_of_turn(n)
        if self._rounds is not None:
            found += self._rounds.coming(self.frontier, n - len(found), self.known.bandwidth, now)
        return found

    def next_event(self, now: float) -> float:
        """Return the earliest time at which `pick` could give something, if it gives nothing now; inf: never."""
        return self.frontier.next_event(now) if self.has_frontier else np.inf

    def force(self, pages: npt.ArrayLike, now: float) -> None:
        """Let pages go next, before anything of value; those in flight are left alone."""
        self.at(now)
        rows = np.asarray(pages, np.intp)
        self.rows(rows)
        self.known.frontier.force(rows)

    # -- plans

    def set_bandwidth(self, bandwidth: float, now: float) -> None:
        """Crawl at another rate from now on: the threshold follows by itself."""
        self.known.bandwidth = positive("bandwidth", bandwidth, "crawls per second")
        if self.has_frontier:
            self.frontier.slot = 1.0 / bandwidth

    def snapshot(self, host_limits: Callable[[], FloatArray] | None = None) -> Snapshot:
        """Copy what `plan` needs: `snapshot_in_parts` at once."""
        parts = self.snapshot_in_parts(host_limits)
        while True:
            try:
                next(parts)
            except StopIteration as end:
                found: Snapshot = end.value
                return found

    def snapshot_in_parts(self, host_limits: Callable[[], FloatArray] | None = None) -> Generator[None, None, Snapshot]:
        """Return a generator that yields between parts of a few milliseconds, and returns the snapshot.

        Parameters
        ----------
        host_limits : callable, optional
            Gives by host the crawls per second for which it lets itself be asked at most, as an array; inf: as many as
            anybody likes, which is said of all hosts by default.
        """
        return snapshot_in_parts(self.known, host_limits)

    def adopt(self, plan: Plan, now: float) -> None:
        """Let a plan come into force, page by page in slices over the next picks.

        A page adopts the plan when its slice runs; until then the plan before is in force for it. A plan that comes
        while another is being adopted waits for its turn; of several that wait the newest is taken.

        Parameters
        ----------
        plan : Plan
        now : float
            POSIX seconds.

        Raises
        ------
        ValueError
            If the plan was made for another grid of rates.
        """
        parameters = plan.parameters(self.posterior.rates, DAY)
        self.at(now)
        self.known.in_force.plan = plan
        if self.known.planned is not None:
            self.known.planned.divide(self.known.bandwidth)
        self.known.in_force.put(parameters)

    # -- what is known

    def places(self, pages: npt.ArrayLike) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
        """Return host (-1 for those that were forgotten) and part of its site for each of some pages."""
        rows = np.asarray(pages, np.intp)
        if rows.size and not (rows.min() >= 0 and rows.max() < self.pages.n):
            raise ValueError(f"pages must hold row numbers from 0 to {self.pages.n - 1}, got {pages!r}.")
        return np.where(self.pages.state[rows] == FREE, -1, self.pages.host[rows]), self.pages.part[rows]

    def columns(self, pages: npt.ArrayLike) -> dict[str, npt.NDArray[np.generic]]:
        """Copy all columns of some pages for a store.

        ``page``, those of `Pages` and of `OwnPrecision`, ``log_likelihood`` (uint16), and of an estimator, if there is
        one, ``estimator_state`` (bytes).
        """
        rows = np.asarray(pages, np.intp)
        likelihood = self.posterior.packed(rows)
        own = self.own_precision.columns(rows)
        columns = {"page": rows, **self.pages.columns(rows), **own, "log_likelihood": likelihood}
        if self.learned is not None:
            columns["estimator_state"] = np.array(self.learned.packed(rows), object)
        return columns

    def overdue_demand(self) -> float:
        """Return the crawls per second that `max_crawl_interval` asks for; 0 without one. O(n)."""
        if not self.intervals.come:
            return 0.0
        rows = np.flatnonzero(self.pages.state[: self.pages.n] != FREE)
        return float((np.ones(rows.size) / self.intervals.longest(rows)).sum())
