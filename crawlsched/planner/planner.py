"""The planner: what is known of all pages, what each is worth, and which goes next."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import IndexArray
from crawlsched.columns.number_column import NumberColumn
from crawlsched.frontier import Pick
from crawlsched.pages import FREE
from crawlsched.planner.knowledge import DEFAULT_GRID, Knowledge, positive
from crawlsched.planner.plans.plan import Plan
from crawlsched.planner.plans.snapshot import Snapshot
from crawlsched.planner.slices import done_at_once

__all__ = ["DEFAULT_GRID", "Planner"]


# Pages whose likelihoods a snapshot copies at most.
_SAMPLE = 100_000
# Rows of a column that are looked at in one part of a snapshot: half a millisecond, and 2 MB.
_LOOKED_AT = 2**19
_GOLDEN = 0.6180339887498949
# The threshold follows the values picked: down with the first of these weights for the newest, up with the second, so
# that it stays where pages go that have waited for it. Announced ones jump over it.
_STEP_DOWN, _STEP_UP = 0.04, 0.004
# In ratios, of which none larger counts, as values spread over orders of magnitude.
_LARGEST_RATIO = 4.0
# First crawls are worth many times what any other is. They count only where so many came in a row, and nothing else.
_FIRST_CRAWLS_IN_A_ROW = 100


class Planner(Knowledge):
    """Decide which page to crawl, and learn from what the visit found; the only writer of `Pages`.

    Parameters
    ----------
    bandwidth : float
        Crawls per second.
    crawl_value : str
        ``"posterior"``, the expectation over what is still possible, or one of the papers' rules with estimated (or,
        by `set_rates`, known) rates, a name in `crawlsched.planner.values.rules.RULES`: ``"greedy"``, ...; or a plan,
        a name in `crawlsched.planner.values.planned_values.POLICIES`: ``"harmonic"``, ...
    objective : str
        What the crawl value ``"posterior"`` or ``"greedy_ncis"`` is to keep: ``"freshness"``, the share of fresh
        copies; ``"age"``, copies young; ``"delay"``, changes seen soon (`crawlsched.crawl_value.objectives`).
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
        takes, goes before long, too (`crawlsched.planner.overrides.starvation`); None: what is not worth it never goes.
    discovery_horizon : float
        How far ahead a first crawl counts, seconds.
    signal_delay : float
        A ChangeSignal is discarded so many seconds after a crawl: it announces what that crawl has seen.
    error_interval : float
        A page is tried again so many seconds after an error, then after twice as many, up to a day.
    gone_interval : float
        A gone page is looked for again after so many seconds, then after twice as many, up to 30 days.
    learned : LearnedRates, optional
        The estimator by which the papers' rules learn change rates; the mean of the posterior by default.

    Attributes
    ----------
    pages : Pages
    posterior : Posterior
        What is known of each page's change rate, a compact row per page.
    crawl_values : PosteriorValues, PointValues, PlannedValues or ObjectiveValues
        What pages are worth, by the rule that `crawl_value` names.
    frontier : Frontier
        Finds the best page.
    bandwidth : float
        Crawls per second; see `set_bandwidth`.
    threshold : float
        A running mean of the crawl values picked, of pages that have a copy; of first crawls while nothing else goes.
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
        now, frontier = self.at(now), self.frontier
        if self._work:
            self.work(now)
        if self._rounds is not None:
            self._rounds.before_pick(frontier, self.bandwidth, now)
        pick = frontier.pick(now, host_free_at)
        if pick is None:
            self._first_crawls = 0
            return None
        page, crawl_value, reason = pick
        self._in_flight.add(page)
        if reason == "value":
            self._follow(crawl_value, is_first=self.pages.crawled_at.item(page) == -np.inf)
        elif reason == "forced" and self._rounds is not None and self._rounds.sent(page):
            # Pages go out of turn by force.
            pick = Pick(page, crawl_value, "overdue")
        return pick

    def _follow(self, crawl_value: float, *, is_first: bool) -> None:
        """Let the threshold follow a value that was picked: the one at which pages that have a copy go."""
        self._first_crawls = self._first_crawls + 1 if is_first else 0
        if is_first and not self._is_of_first_crawls and self._first_crawls < _FIRST_CRAWLS_IN_A_ROW:
            return
        if is_first != self._is_of_first_crawls or self.threshold <= 0.0:
            self._is_of_first_crawls, self.threshold = is_first, crawl_value
        else:
            # A page that is sure to have changed can be worth thousands of times what others are: one is no trend.
            ratio = min(max(crawl_value / self.threshold, 1 / _LARGEST_RATIO), _LARGEST_RATIO)
            self.threshold *= ratio ** (_STEP_UP if ratio > 1.0 else _STEP_DOWN)

    @property
    def makes_first_copies(self) -> bool:
        """Whether the page that was worth most at the last pick had never been crawled; O(1)."""
        return self._first_crawls > 0

    def work(self, now: float) -> bool:
        """Do one slice of what is to be done between picks; return whether there is more. About a millisecond.

        `pick` does it; where picks are rare it can be called at any other time too.
        """
        if self._work:
            # In turn, so that announcements do not wait until all pages have adopted a plan.
            step = self._work.popleft()
            if step(self.at(now)):
                self._work.append(step)
        return bool(self._work)

    def hold(self, page: int) -> None:
        """Keep a page in flight although its visit has ended: it is fetched once more. `release` lets it go."""
        self.frontier.discard(np.array([page]))
        self._in_flight.add(page)

    def catch_up(self, now: float) -> None:
        """Do all that the passing of time has brought about until now; O(pages whose time has come).

        `pick` does it too. Before the first of many picks it can be a long time, as after loading a large collection.
        """
        now = self.at(now)
        self.frontier.advance(now)

    def in_flight(self, page: int) -> bool:
        """Whether a page is being visited."""
        return page in self._in_flight

    def release_host(self, host: int) -> None:
        """Let a host that rests be asked again."""
        if self._frontier is not None:
            self._frontier.release_host(host)

    def waits_for_host(self) -> bool:
        """Whether some page could go if its host did not rest."""
        return self._frontier is not None and self._frontier.waits_for_host()

    def peek(self, now: float, n: int) -> IndexArray:
        """Return up to about `n` pages that are likely to be picked next, likeliest first."""
        return self._frontier.peek(n) if self._frontier is not None else np.empty(0, np.intp)

    def next_event(self, now: float) -> float:
        """Return the earliest time at which `pick` could give something, if it gives nothing now; inf: never."""
        return self._frontier.next_event(now) if self._frontier is not None else np.inf

    def force(self, pages: npt.ArrayLike, now: float) -> None:
        """Let pages go next, before anything of value; those in flight are left alone."""
        self.at(now)
        rows = np.asarray(pages, np.intp)
        self.rows(rows)
        self.frontier.force(rows)

    # -- plans

    def set_bandwidth(self, bandwidth: float, now: float) -> None:
        """Crawl at another rate from now on: the threshold follows by itself."""
        self.bandwidth = positive("bandwidth", bandwidth, "crawls per second")

    def snapshot(self) -> Snapshot:
        """Copy what `plan` needs: the rows of about 100,000 pages at most, evenly chosen.

        Two comparisons of all pages, half a nanosecond each, and the copies: about 30 ms for 10,000,000 pages.
        """
        return done_at_once(self.snapshot_in_parts())

    def snapshot_in_parts(self) -> Generator[None, None, Snapshot]:
        """Do what `snapshot` does in parts of a few milliseconds, between which pages may be picked and crawled.

        Returns
        -------
        generator
            Yields after each part, and returns the snapshot.
        """
        columns, n = self.pages, self.pages.n
        n_visited, sample = yield from _evenly(columns.n_crawls, n, _visited, _SAMPLE)
        _, sources = yield from _evenly(columns.source, n, _covered, _SAMPLE)
        likelihood = self.posterior.codes(n)[sample]
        yield
        hosts, importance = columns.host[sample], columns.importance[sample].astype(np.float64)
        yield
        further, (others, others_of) = self.further, self.further.everything()
        covered = np.concatenate([sources, others_of])
        source = np.concatenate([columns.source[sources], further.source[others]])
        since = np.concatenate([columns.signalled_since[sources], further.signalled_since[others]])
        n_total = np.concatenate([columns.n_signals_total[sources], further.n_signals_total[others]])
        yield
        own = self.own_precision.columns(sources)
        judged = {
            name: np.concatenate([column, getattr(further, name)[others]]).astype(np.float64)
            for name, column in own.items()
        }
        yield
        time = self._now if np.isfinite(self._now) else 0.0
        return Snapshot(
            rates=self.posterior.rates,
            discovery_horizon=self.discovery_horizon,
            time=time,
            n_pages=n_visited,
            pages=sample,
            log_likelihood=likelihood,
            hosts=hosts,
            importance=importance,
            sources=source,
            signalled_hosts=columns.host[covered],
            signalled_parts=columns.part[covered],
            n_signals_total=n_total.astype(np.float64),
            signalled_for=np.maximum(self._now - since, 0.0),
            co_changes=self._newest_parameters.co_changes,
            neighbour_losses=self.neighbours.losses.copy() if self.neighbours.n_visits else None,
            objective=self.objective,
            **judged,
        )

    def adopt(self, plan: Plan, now: float, begin: int = 0) -> None:
        """Let a plan come into force, page by page in slices over the next picks.

        A page adopts the plan when its slice runs; until then the plan before is in force for it. A plan that comes
        while another is being adopted waits for its turn; of several that wait the newest is taken.

        Parameters
        ----------
        plan : Plan
        now : float
            POSIX seconds.
        begin : int, default 0
            Pages with lower numbers are filed by it already, as when a crawl goes on where the last one ended.

        Raises
        ------
        ValueError
            If the plan was made for another grid of rates.
        """
        parameters = plan.parameters(self.posterior.rates, self.discovery_horizon)
        self.at(now)
        if self._watch.n_visits:
            # What this planner knows is newer; only one that has just begun takes what a plan remembers.
            parameters = replace(parameters, co_changes=self._newest_parameters.co_changes)
        self.plan = plan
        if not self.neighbours.n_visits and plan.neighbour_losses is not None:
            self.neighbours.recall(plan.neighbour_losses)
        if self._planned is not None:
            self._planned.divide(self.bandwidth)
        self._put_in_force(parameters, begin)

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


def _visited(n_crawls: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    visited: npt.NDArray[np.bool_] = n_crawls != 0
    return visited


def _covered(source: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    covered: npt.NDArray[np.bool_] = source >= 0
    return covered


def _evenly(
    column: NumberColumn | npt.NDArray[Any],
    n: int,
    is_one: Callable[[npt.NDArray[Any]], npt.NDArray[np.bool_]],
    most: int,
) -> Generator[None, None, tuple[int, IndexArray]]:
    """Return how many of the first n rows of a column are such ones, and about `most` of these at most; in parts.

    They are in ascending order.
    """
    count, parts = 0, [slice(start, min(start + _LOOKED_AT, n)) for start in range(0, n, _LOOKED_AT)]
    for part in parts:
        count += int(np.count_nonzero(is_one(column[part])))
        yield
    if count <= 4 * most:
        found = []
        for part in parts:
            found.append(part.start + np.flatnonzero(is_one(column[part])))
            yield
        rows = np.concatenate(found) if found else np.empty(0, np.intp)
        return count, rows[:: max(1, -(-count // most))]
    # One row of each stretch of equal length, at places that follow no period which pages or hosts may have.
    length = count / most
    stretch = np.arange(int(n / length))
    rows = ((stretch + stretch * _GOLDEN % 1) * length).astype(np.intp)
    return count, rows[is_one(column[rows])]
