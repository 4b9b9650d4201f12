"""What is known of all pages, and how it changes: the only writer of `Pages`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp, inf
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from crawlsched.change_signals import FurtherRow
from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.crawl_value.objectives import OBJECTIVES
from crawlsched.estimators import LearnedRates, Posterior
from crawlsched.estimators.page_precision import expected_evidence
from crawlsched.frontier import PICKS_PER_TICK, Frontier
from crawlsched.pages import ERROR, FREE, GONE, LIVE, MOVED, REFUSED, Pages, check_importance, distinct
from crawlsched.pages.intervals import Intervals, Limits
from crawlsched.planner.evidence.co_change_watch import CoChangeWatch, FoundCoChanges
from crawlsched.planner.evidence.further_sources import FurtherSources
from crawlsched.planner.evidence.neighbours import Neighbours
from crawlsched.planner.evidence.page_precision import OwnPrecision, beta, learned
from crawlsched.planner.evidence.signal_counts import Listening
from crawlsched.planner.observation import Observation
from crawlsched.planner.overrides.starvation import Rounds
from crawlsched.planner.parameters.parameters import Parameters
from crawlsched.planner.plans.plan import Plan
from crawlsched.planner.plans.signal_learning import FIRST_PRECISION, FIRST_SIGNAL_RATE
from crawlsched.planner.values.objective_values import ObjectiveValues
from crawlsched.planner.values.planned_values import POLICIES, PlannedValues
from crawlsched.planner.values.plug_in_values import KnownRates, PointValues
from crawlsched.planner.values.posterior_values import PosteriorValues
from crawlsched.planner.values.rules import RULES, rule_named

__all__ = ["DEFAULT_GRID", "Knowledge", "positive"]


DAY = 86_400.0
#: 32 change rates per second in equal ratios of 1.75, from once in three years to once in 3 seconds: the range of real
#: sites, and at its fast end that of a demonstration which cannot wait.
DEFAULT_GRID: FloatArray = np.geomspace(1 / (3 * 365 * DAY), 1 / 3, 32)

#: Probability that a page's change rate is another one at the next visit: what was learned of a page that has changed
#: its ways is forgotten in about ten visits. docs/notes/learning.md has what it costs where rates stay.
RENEWAL = 0.01
# Co-changes are put in force when the evidence of some page changes by so many nats at least.
_WORTH_ADOPTING = 0.05

# So many pages of a plan or of many signals are worked on between two picks: a millisecond or two, and what they leave
# to be done by the turns that follow, which have to look at those that wake, stays within a few more.
SLICE = 128
# So many are filed in one call: more gain nothing.
_FILED = 2048
# What an estimator learns from.
_VISIT_COLUMNS = ("page", "elapsed", "changed", "n_signals", "time_since_modified")
# What `Observation(...)` does, in half of the time: each visit makes one.
_make = tuple.__new__
# Up to so many announcements at once are taken one by one.
_FEW = 16
_LONGEST_ERROR_INTERVAL = DAY
_LONGEST_GONE_INTERVAL = 30 * DAY
# The lengths that a tick of the frontier may have, seconds.
_TICK = (0.05, 3600.0)


class Knowledge:
    """Take pages in, and learn from visits and ChangeSignals; `Planner` adds the decisions."""

    def __init__(
        self,
        bandwidth: float,
        *,
        crawl_value: str = "posterior",
        objective: str = "freshness",
        rates: npt.ArrayLike | None = None,
        min_crawl_interval: float = 0.0,
        max_crawl_interval: float | None = None,
        interval_rules: Sequence[Limits] = (),
        max_crawl_rounds: float | None = None,
        discovery_horizon: float = DAY,
        signal_delay: float = 0.0,
        error_interval: float = 60.0,
        gone_interval: float = DAY,
        learned: LearnedRates | None = None,
    ) -> None:
        self.bandwidth = positive("bandwidth", bandwidth, "crawls per second")
        if crawl_value not in ("posterior", *POLICIES) and rule_named(crawl_value) is None:
            names = ", ".join(("posterior", *RULES, "greedy_ncis_approx_j", *POLICIES))
            raise ValueError(f"crawl_value must be one of {names}, got {crawl_value!r}.")
        if objective not in ("freshness", *OBJECTIVES):
            raise ValueError(f"objective must be freshness, {' or '.join(OBJECTIVES)}, got {objective!r}.")
        if objective != "freshness" and crawl_value not in ("posterior", "greedy_ncis"):
            raise ValueError(
                f"objective {objective} needs the crawl_value posterior or greedy_ncis, got {crawl_value!r}: the other "
                "policies are made for freshness."
            )
        for name, seconds in (("min_crawl_interval", min_crawl_interval), ("signal_delay", signal_delay)):
            if not 0 <= seconds < np.inf:
                raise ValueError(f"{name} must be seconds, 0 or more and finite, got {seconds!r}.")
        if max_crawl_interval is not None and not max(min_crawl_interval, 1e-9) <= max_crawl_interval < np.inf:
            raise ValueError(
                f"max_crawl_interval must be None or finite seconds, above 0 and at least min_crawl_interval "
                f"({min_crawl_interval!r}), got {max_crawl_interval!r}."
            )
        self.min_crawl_interval = min_crawl_interval
        self.max_crawl_interval = max_crawl_interval
        longest = np.inf if max_crawl_interval is None else max_crawl_interval
        self.intervals = Intervals(Limits(min_crawl_interval, longest), interval_rules)
        if max_crawl_rounds is not None and not 1 <= max_crawl_rounds < np.inf:
            raise ValueError(f"max_crawl_rounds must be None or finite, 1 or more rounds, got {max_crawl_rounds!r}.")
        self.discovery_horizon = positive("discovery_horizon", discovery_horizon, "seconds")
        self.signal_delay = signal_delay
        self.error_interval = positive("error_interval", error_interval, "seconds")
        self.gone_interval = positive("gone_interval", gone_interval, "seconds")
        self.pages = Pages()
        grid = DEFAULT_GRID if rates is None else rates
        self.posterior = Posterior(0, grid, dtype=np.uint8, renewal=RENEWAL, counts_updates=False)
        self.grid = self.posterior.rates_id
        self.further = FurtherSources(self.pages)
        self.own_precision = OwnPrecision(self.pages)
        self.neighbours = Neighbours(self.pages)
        known = self.further, self.own_precision, self.neighbours
        self.values = PosteriorValues(self.pages, self.posterior, self._first_parameters(), *known)
        self._rounds = None if max_crawl_rounds is None else Rounds(self.pages, max_crawl_rounds)
        self._listening = Listening(self.pages, self.further, self.values)
        self.known_rates: KnownRates | None = None
        # Of one rate for each page, the expectation of the crawl value is the papers' most general rule.
        crawl_value = "greedy_ncis" if crawl_value == "posterior" and learned is not None else crawl_value
        self.learned = learned
        self._rule = crawl_value
        self.objective = objective
        self.crawl_values: PosteriorValues | PointValues | PlannedValues | ObjectiveValues = self.values
        self._planned: PlannedValues | None = None
        if crawl_value in POLICIES:
            self.crawl_values = self._planned = PlannedValues(self.pages, self, crawl_value)
        elif crawl_value != "posterior":
            self.crawl_values = PointValues(self.pages, self.values, crawl_value, self)
        if objective != "freshness":
            point = self.crawl_values if isinstance(self.crawl_values, PointValues) else None
            self.crawl_values = ObjectiveValues(self.pages, self.values, OBJECTIVES[objective], point)
        self._frontier: Frontier | None = None
        self.threshold = 0.0
        # What the threshold was made of last, and how many first crawls went in a row.
        self._is_of_first_crawls, self._first_crawls = True, 0
        self.clipped = 0
        self.plan: Plan | None = None
        # Whose parameters are in force for pages that have not yet adopted the newest ones, and for the others.
        self._plan_before: Plan | None = None
        self._plan_coming: Plan | None = None
        self._in_flight: set[int] = set()
        self._now = -np.inf
        self._work: deque[Callable[[float], bool]] = deque()
        self._next_parameters: Parameters | None = None
        self._adopting = False
        self._watch = CoChangeWatch()
        self._searching: set[int] = set()  # hosts

    @property
    def frontier(self) -> Frontier:
        """The frontier; it begins with the first page."""
        assert self._frontier is not None, "the planner has no pages yet"
        return self._frontier

    def change_rates(self, pages: IndexArray) -> FloatArray:
        """Return how often pages change, announced or not, per second: by the estimator, or the posterior's means."""
        if self.learned is not None:
            return self.learned.change_rate(pages)
        signal_rate, signal_weight = self.values.signals(pages)
        unsignalled: FloatArray = (self.values.weights(pages) * self.posterior.rates).sum(axis=1)
        return unsignalled + signal_rate * -np.expm1(-signal_weight)

    def _first_parameters(self) -> Parameters:
        n_rates = self.posterior.rates.size
        return Parameters(
            priors=np.full((1, n_rates), 1 / n_rates),
            group_of_host=np.zeros(0, np.intp),
            signal_weights=np.array([-np.log1p(-FIRST_PRECISION)]),
            signal_rates=np.array([FIRST_SIGNAL_RATE]),
            rates=self.posterior.rates,
            discovery_horizon=self.discovery_horizon,
        )

    def at(self, now: float) -> float:
        """Return the time, POSIX seconds; where a clock was set back time stands still until it has caught up."""
        if now > self._now:
            self._now = now
        if self._frontier is None:
            tick = float(np.clip(PICKS_PER_TICK / self.bandwidth, *_TICK))
            self._frontier = Frontier(
                self.pages,
                self.crawl_values,
                tick=tick,
                now=self._now,
                intervals=self.intervals,
            )
            self._frontier.reserve(self.pages.capacity)
        return self._now

    # -- pages come and go

    def reserve(self, n_pages: int) -> None:
        """Make room for so many pages at once, so that no memory is lost to growing; O(n)."""
        self.pages.reserve(n_pages)
        if self.posterior.n_pages < n_pages:
            self.posterior.resize(n_pages)
            self._grow()
        if self._frontier is not None:
            self._frontier.reserve(n_pages)

    def _grow(self) -> None:
        rows = self.posterior.n_pages
        if rows < self.pages.n:
            self.posterior.resize(max(self.pages.n, rows + rows // 8))
        if self.learned is not None and self.learned.n_pages < self.posterior.n_pages:
            self.learned.resize(self.posterior.n_pages)
        self.neighbours.make_room(self.pages.n)

    def add(
        self,
        host: npt.ArrayLike,
        now: float,
        importance: npt.ArrayLike = 1.0,
        n: int | None = None,
        part: npt.ArrayLike = 0,
        interval_rules: npt.NDArray[np.uint8] | None = None,
    ) -> IndexArray:
        """Take in new pages; O(log n) a page.

        Parameters
        ----------
        host : int or array_like of int
            Row number of each page's host.
        now : float
            POSIX seconds.
        importance : float or array_like of float
            Weight of a fresh copy.
        n : int, optional
            How many pages, where neither of these is an array.
        part : int or array_like of int
            Part of its site that each page is in (`crawlsched.change_signals.part_number`).
        interval_rules : ndarray of uint8, optional
            By which of its rules each page has its crawl intervals; 0: by none.

        Returns
        -------
        ndarray of int
            The new pages.
        """
        now = self.at(now)
        pages = self.pages.add(host, now, importance, n, part)
        if interval_rules is not None:
            self.intervals.put(pages, interval_rules)
        self._grow()
        for start in range(0, pages.size, _FILED):
            self.frontier.file(pages[start : start + _FILED], now)
        return pages

    def load(
        self, columns: dict[str, npt.NDArray[np.generic]], log_likelihood: npt.NDArray[np.uint16] | None, now: float
    ) -> None:
        """Take in pages from a store, block by block; O(log n) a page.

        Parameters
        ----------
        columns : dict of ndarray, shape (n,)
            ``page`` and the columns of `Pages`; others are ignored, but ``has_log_likelihood``, where it stands, says
            which rows of `log_likelihood` count.
        log_likelihood : ndarray of uint16, shape (n, K), optional
            Compact rows of the posterior.
        now : float
            POSIX seconds; a last crawl later than that is set to it, and counted in `clipped`.
        """
        now = self.at(now)
        pages = np.asarray(columns["page"], np.intp)
        # Numbers of rows that another planner has given out; `load_further` brings what they stand for.
        known = {name: column for name, column in columns.items() if name != "further"}
        if "first_seen" in known and "crawled_at" in known:
            # Of a page that was crawled nothing depends any more on when it became known.
            found = np.asarray(known["first_seen"], float)
            known["first_seen"] = np.where(np.asarray(known["crawled_at"]) > -np.inf, np.nan, found)
        self.pages.set_rows(pages, known)
        self.own_precision.load(pages, columns)
        self._grow()
        future = pages[self.pages.crawled_at[pages] > now]
        self.clipped += future.size
        self.pages.crawled_at[future] = now
        if log_likelihood is not None:
            chosen = np.asarray(columns.get("has_log_likelihood", np.ones(pages.size, bool)), bool)
            self.posterior.unpack(pages[chosen], log_likelihood[chosen])
        filed = pages[self.pages.state[pages] != FREE]
        # The best of so many are far above what will be picked when those that have waited longest are through.
        for start in range(0, filed.size, _FILED):
            self.frontier.file(filed[start : start + _FILED], now, falling=True)

    def load_learned(self, pages: IndexArray, rows: Sequence[bytes], now: float) -> None:
        """Take in from a store what the estimator knew of pages, once they are there."""
        assert self.learned is not None
        self.learned.unpack(pages, rows)
        self._refile(pages, self.at(now))

    def relearn(self, visits: Mapping[str, npt.NDArray[Any]], now: float) -> None:
        """Learn once more from the visits that are kept of pages, by an estimator that does not know them yet.

        Parameters
        ----------
        visits : mapping of str to ndarray
            ``page``, ``elapsed``, ``changed``, ``n_signals`` and ``time_since_modified`` (nan: not known), the visits
            of each page in their order.
        now : float
            POSIX seconds.
        """
        assert self.learned is not None
        order = np.argsort(visits["page"], kind="stable")
        columns = {name: column[order] for name, column in visits.items()}
        pages, starts, counts = np.unique(columns["page"], return_index=True, return_counts=True)
        # The first visits of all pages, then the second ones, and so on.
        for number in range(int(counts.max(initial=0))):
            at = starts[counts > number] + number
            page, *told = (columns[name][at] for name in _VISIT_COLUMNS)
            self.learned.observe(page, *told)
        self._refile(pages.astype(np.intp), self.at(now))

    def load_further(self, rows: Iterable[tuple[int, int, *FurtherRow]], now: float) -> None:
        """Take in from a store what several sources say of the same pages, once the pages are there."""
        loaded = set()
        for row in rows:
            page = row[0]
            if page < self.pages.n and self.pages.state.item(page) != FREE:
                self.further.load(*row)
                loaded.add(page)
        if loaded:
            self._refile(np.array(sorted(loaded), np.intp), self.at(now))

    def load_neighbours(self, heard: npt.NDArray[np.uint8], now: float) -> None:
        """Take in from a store what pages have heard of their neighbours, once they are there."""
        self.neighbours.restore(heard[: self.pages.n])
        self.neighbours.make_room(self.pages.n)
        self._refile(self.neighbours.with_evidence(), self.at(now))

    def remove(self, pages: npt.ArrayLike) -> None:
        """Forget pages; their numbers are not given out again. O(1) a page."""
        rows = self.rows(pages)
        self._in_flight.difference_update(rows.tolist())
        if self._frontier is not None:
            self._frontier.discard(rows)
        self.further.free(rows)
        self.own_precision.free(rows)
        self.neighbours.free(rows)
        self.pages.free(rows)
        self.posterior.unpack(rows, np.zeros((rows.size, self.posterior.rates.size), np.uint16))

    def rows(self, pages: npt.ArrayLike) -> IndexArray:
        """Return pages as an array of distinct row numbers, or raise `ValueError` if one of them is none."""
        rows = distinct(np.asarray(pages, np.intp).reshape(-1))
        if rows.size and not (rows[0] >= 0 and rows[-1] < self.pages.n):
            self._complain(pages)
        return rows

    def _complain(self, pages: npt.ArrayLike) -> NoReturn:
        raise ValueError(f"pages must hold row numbers from 0 to {self.pages.n - 1}, got {pages!r}.")

    # -- what a visit found

    def crawled(
        self,
        page: int,
        now: float,
        changed: bool | None,
        *,
        doubt: float = 0.0,
        time_since_modified: float | None = None,
    ) -> Observation | None:
        """A visit reached content.

        Parameters
        ----------
        page : int
        now : float
            POSIX seconds.
        changed : bool or None
            Whether the content differs from what the visit before saw; None where that cannot be told.
        doubt, time_since_modified
            As for `Posterior.update_one`.

        Returns
        -------
        Observation or None
            What was learned; None if nothing: a first visit, one that cannot be compared, or the return of a page that
            had been gone.
        """
        now = self.at(now)
        columns, values = self.pages, self.values
        crawled_at, state = columns.crawled_at.item(page), columns.state.item(page)
        n_signals, covered_further = columns.n_signals.item(page), columns.further.item(page)
        elapsed, observation = now - crawled_at, None
        has_rare_facts = columns.rare.item(page)
        if changed is not None and now > crawled_at > -inf and state not in (GONE, MOVED):
            source = columns.source.item(page)
            further: tuple[tuple[int, int], ...] = ()
            if covered_further:
                further = tuple((other.source, other.n_signals) for other in self.further.counts(page)[1:])
            evidence = self._evidence(page) if n_signals or further else 0.0
            parameters, host = values.parameters_of(page), columns.host.item(page)
            prior = parameters.priors[parameters.group(host)]
            n_crawls = columns.n_crawls.item(page)
            if self._rule == "posterior":
                evidence += self._foretell(page, host, parameters, prior, elapsed, crawled_at, now, evidence, changed)
            if n_signals or (further and any(n for _, n in further)):
                self._judge_signals(page, elapsed, changed, doubt, evidence)
            visit = page, elapsed, changed, evidence
            # A count of updates only spreads rounding, and nearly every crawl is one.
            self.posterior.update_one(
                *visit, doubt=doubt, time_since_modified=time_since_modified, prior=prior, n_updates=n_crawls
            )
            if self.learned is not None:
                # The papers' estimators know nothing of what is said of other pages.
                self.learned.observe(page, elapsed, changed, n_signals, time_since_modified)
            found = page, now, elapsed, n_signals, source, evidence, changed, further, time_since_modified
            observation = _make(Observation, found)
        else:
            self.neighbours.forget(page)
        if self._planned is not None:
            self._planned.crawled(page, now)
        # What stands there already is not written once more: this is done in each slot.
        if changed:
            columns.n_changes.count_one(page)
        columns.n_crawls.count_one(page)
        columns.crawled_at[page] = now
        if n_signals:
            columns.n_signals[page] = 0
        if covered_further:
            self.further.crawled(page)
        if state != LIVE:
            columns.state[page] = LIVE
        if has_rare_facts:
            columns.reached(page)
        self._return(page, now)
        return observation

    def _evidence(self, page: int) -> float:
        _, weight = self.values.signals_one(page)
        return weight * self.values.heard_one(page)

    def _judge_signals(self, page: int, elapsed: float, changed: bool, doubt: float, evidence: float) -> None:
        """Learn from a visit how far announcements of this page can be trusted; `evidence` is all there was, nats."""
        fresh_by_age = self._fresh_by_age(page, elapsed)

        def found(told: float) -> tuple[float, float]:
            # What the other sources said explains its part of what was found.
            fresh = fresh_by_age * exp(-max(evidence - told, 0.0))
            return (1.0, -fresh) if changed else (doubt, (1.0 - doubt) * fresh)

        if n_signals := self.pages.n_signals.item(page):
            prior = self.values.precision_one(page)
            told = self.own_precision.evidence_one(page, *prior, float(n_signals))
            self.own_precision.learn(page, prior, float(n_signals), *found(told))
        for one in self.further.counts(page)[1:]:
            if one.n_signals:
                prior, before = self.values.precision_of(page, one.source), (one.true_signals, one.false_signals)
                of_source, against = beta(*prior)
                told = expected_evidence(of_source + before[0], against + before[1], one.n_signals)
                self.further.judge(one.row, *learned(prior, before, one.n_signals, *found(told)))

    def _fresh_by_age(self, page: int, elapsed: float) -> float:
        """Return the probability that a page has not changed, if nothing is known of it but its age."""
        power = self.values.parameters_of(page).learning_rate
        return self.posterior.unchanged_one(page, elapsed, self.values.prior_one(page), power)

    def _foretell(
        self,
        page: int,
        host: int,
        parameters: Parameters,
        prior: FloatArray,
        elapsed: float,
        crawled_at: float,
        now: float,
        announced: float,
        changed: bool,
    ) -> float:
        """Compare a visit with what was to be expected; return the evidence of pages around it before it, nats.

        Parameters
        ----------
        page, host : int
        parameters : Parameters
            In force for the page.
        prior : ndarray, shape (K,)
            Probabilities of the rates before the first visit.
        elapsed, crawled_at, now : float
            Seconds since the visit before, and the times of that and of this one.
        announced : float
            Evidence of announcements, nats.
        changed : bool
        """
        nearby, by_co_changes = self.neighbours.evidence_one(page), 0.0
        if parameters.co_changes.hosts:
            by_co_changes = parameters.co_changes.evidence_one(host, crawled_at)
        together = nearby + by_co_changes
        fresh = self.posterior.unchanged_one(page, elapsed, prior, parameters.learning_rate)
        # What was announced is no surprise, whatever announcements prove worth: neighbours do not explain it.
        if announced == 0.0:
            self._watch_host(host, page, crawled_at, fresh, now, changed, together)
        by_all_else = fresh * exp(-(announced + max(together - nearby, 0.0)))
        told = self.neighbours.visited(page, now, by_all_else, changed, expected=parameters.even_rate < inf)
        if told.size:
            self.frontier.refile(told, now)
        return together

    def _watch_host(
        self, host: int, page: int, crawled_at: float, fresh: float, now: float, changed: bool, together: float
    ) -> None:
        """Learn of co-changes from a visit.

        `fresh` is the probability that the page had not changed by its age alone, and `together` the evidence of the
        co-changes known, nats.
        """
        # A search takes milliseconds, too long for the end of a visit.
        if self._watch.visited(host, page, crawled_at, now, fresh, together, changed) and host not in self._searching:
            self._searching.add(host)
            search = self._watch.search(host)

            def step(now: float) -> bool:
                try:
                    next(search)
                except StopIteration as end:
                    self._searching.discard(host)
                    self._found_co_changes(host, end.value)
                    return False
                return True

            self._work.append(step)

    def _found_co_changes(self, host: int, found: FoundCoChanges) -> None:
        known = self._newest_parameters.co_changes
        of_host = found.beside(known.hosts.get(host))
        # All pages are filed again for it: not for what makes no difference.
        if of_host.difference(known.of_host(host)) > _WORTH_ADOPTING:
            self._put_in_force(replace(self._newest_parameters, co_changes=known.with_host(host, of_host)))

    # -- parameters

    @property
    def _newest_parameters(self) -> Parameters:
        return self._next_parameters or self.values.parameters

    def _put_in_force(self, parameters: Parameters, begin: int = 0) -> None:
        """Let parameters come into force page by page; those that wait for others to be in force may be overtaken."""
        if self._adopting:
            self._next_parameters = parameters
        else:
            self._begin_adoption(parameters, begin)

    def _begin_adoption(self, parameters: Parameters, begin: int = 0) -> None:
        self._adopting = True
        self.values.begin_adoption(parameters)
        self.values.adopt_below(begin)
        # Whatever comes into force belongs to the newest plan: what waits is overtaken by what comes with a newer one.
        self._plan_before, self._plan_coming = self._plan_coming, self.plan
        at = begin

        def step(now: float) -> bool:
            nonlocal at
            rows = np.arange(at, min(at + SLICE, self.pages.n))
            at += SLICE
            self.values.adopt_below(at)
            self.frontier.refile(rows, now)
            if at < self.pages.n:
                return True
            self.values.adopt_below(None)
            self._adopting = False
            if self._next_parameters is not None:
                following, self._next_parameters = self._next_parameters, None
                self._begin_adoption(following)
            return False

        self._work.append(step)

    def failed(self, page: int, now: float, retry_at: float | None = None) -> None:
        """A visit did not reach content: the page backs off, at least until `retry_at`."""
        now = self.at(now)
        again = self._again(page, ERROR)
        wait = _backing_off(again, self.error_interval, _LONGEST_ERROR_INTERVAL)
        self.pages.set_rare(page, not_before=max(now + wait, retry_at or 0.0), n_errors=min(again + 1, 255))
        self._return(page, now)

    def put_off(self, page: int, until: float, now: float) -> None:
        """Leave a page alone until a time."""
        now = self.at(now)
        self.pages.set_rare(page, not_before=until)
        self.frontier.refile_one(page, now)

    def take_back(self, columns: dict[str, npt.NDArray[Any]], now: float) -> None:
        """Forget what the last visit of a page taught: it was not that page. It backs off as after an error.

        Parameters
        ----------
        columns : dict of ndarray
            What `Planner.columns` gave of it before that visit.
        now : float
        """
        rows = columns["page"]
        kept = {name: columns[name] for name in ("state", "crawled_at", "n_crawls", "n_changes", "n_signals")}
        self.pages.set_rows(rows, kept)
        self.own_precision.load(rows, columns)
        self.posterior.unpack(rows, columns["log_likelihood"])
        if not self._in_flight.intersection(rows.tolist()):
            self.failed(int(rows[0]), now)

    def gone(self, page: int, now: float) -> None:
        """A visit was told that the page is gone: it is looked for ever more rarely."""
        now = self.at(now)
        self._probe_later(page, GONE, now)
        self.pages.crawled_at[page] = now
        self.neighbours.forget(page)
        self._return(page, now)

    def moved(self, page: int, now: float) -> None:
        """A visit was sent elsewhere for good: the page is looked for ever more rarely."""
        now = self.at(now)
        self._probe_later(page, MOVED, now)
        self.pages.crawled_at[page] = now
        self.neighbours.forget(page)
        self._return(page, now)

    def refused(self, page: int, now: float) -> None:
        """A visit was refused before it left: it is tried ever more rarely."""
        now = self.at(now)
        self._probe_later(page, REFUSED, now)
        self._return(page, now)

    def release(self, page: int, now: float) -> None:
        """A visit was dropped: the page is as if it had not been picked."""
        self._return(page, self.at(now))

    def _probe_later(self, page: int, state: int, now: float) -> None:
        again = self._again(page, state)
        wait = _backing_off(again, self.gone_interval, _LONGEST_GONE_INTERVAL)
        self.pages.set_rare(page, not_before=now + wait, n_errors=min(again + 1, 255))

    def _again(self, page: int, state: int) -> int:
        """Put a page into a state in which its visit ended; return how many in a row before it had ended so."""
        again = self.pages.n_errors.item(page) if self.pages.state.item(page) == state else 0
        self.pages.state[page] = state
        return int(again)

    def _return(self, page: int, now: float) -> None:
        self._in_flight.discard(page)
        assert self._frontier is not None  # whoever has said what time it is has made it
        self._frontier.file_one(page, now)

    # -- ChangeSignals and importance

    def covered(self, pages: npt.ArrayLike, source: int, now: float) -> None:
        """A source names these pages; the first time is no announcement. O(1) a page."""
        self.at(now)
        self._listening.cover(self.rows(pages), source, now)

    def signalled(self, pages: npt.ArrayLike, source: int, now: float, since: float | None = None) -> int:
        """A source announces changes of these pages, once each.

        Parameters
        ----------
        pages : array_like of int
        source : int
        now : float
            POSIX seconds.
        since : float, optional
            When the source was read before, POSIX seconds: what another source has announced since then may be the
            same change. The signal delay before `now` by default.

        Returns
        -------
        int
            How many were taken: not those within the signal delay after a crawl.

        Notes
        -----
        More than 128 at once come into force in slices over the next picks; a page visited before its slice has been
        seen by that visit.
        """
        now = self.at(now)
        columns, before = self.pages, (now if since is None else min(since, now)) - self.signal_delay
        rows = np.asarray(pages, np.intp).reshape(-1)
        if rows.size <= min(_FEW, self.frontier.values.few):
            return self._take_few_signals(sorted(set(rows.tolist())), source, now, before)
        rows = self.rows(rows)
        if (columns.source[rows] != source).any():
            self._listening.cover(rows, source, now)
        if self.signal_delay:
            rows = rows[now - columns.crawled_at[rows] >= self.signal_delay]
        if rows.size <= SLICE:
            self._take_signals(rows, source, now, before)
        else:
            self._in_slices(rows, lambda part, _: self._take_signals(part, source, now, before))
        return int(rows.size)

    def _take_few_signals(self, pages: list[int], source: int, now: float, since: float) -> int:
        """Take announcements of a few distinct pages one by one, for which arrays would cost more than all the rest."""
        columns, frontier = self.pages, self.frontier
        if pages and not (pages[0] >= 0 and pages[-1] < columns.n):
            self._complain(pages)
        sources, further, n_signals, crawled_at = columns.source, columns.further, columns.n_signals, columns.crawled_at
        if any(sources.item(page) != source for page in pages):
            self._listening.cover(np.array(pages), source, now)
        if self.signal_delay:
            pages = [page for page in pages if now - crawled_at.item(page) >= self.signal_delay]
        for page in pages:
            heard = n_signals.item(page)
            if sources.item(page) != source or further.item(page) or heard == 0xFFFF:
                self._take_signals(np.array([page]), source, now, since)
            elif crawled_at.item(page) <= now:
                changes = frontier.values.hears(page)
                n_signals[page] = heard + 1
                columns.n_signals_total.set_one(page, columns.n_signals_total.item(page) + 1)
                # Of a page never crawled there is no copy that could go stale.
                if changes and crawled_at.item(page) > -np.inf:
                    frontier.refile_one(page, self._now)
        return len(pages)

    def announced_by(self, page: int, source: int) -> bool:
        """Whether a source has announced a page since its last crawl."""
        return self._listening.announced_by(page, source)

    def _take_signals(self, rows: IndexArray, source: int, announced_at: float, since: float) -> None:
        rows = self._listening.take(rows, source, announced_at, since)
        # Of a page never crawled there is no copy that could go stale.
        self.frontier.refile(rows[self.pages.crawled_at[rows] > -np.inf], self._now)

    def set_importance(self, pages: npt.ArrayLike, importance: npt.ArrayLike, now: float) -> None:
        """Set the weights of distinct pages; O(log n) a page."""
        now = self.at(now)
        rows = np.asarray(pages, np.intp).reshape(-1)
        if self.rows(rows).size != rows.size:
            raise ValueError(f"pages must be distinct, got {pages!r}.")
        weights = np.broadcast_to(check_importance(importance), rows.shape).astype(np.float32)
        differs = self.pages.importance[rows] != weights
        self.pages.importance[rows[differs]] = weights[differs]
        self._refile(rows[differs], now)

    def set_rates(
        self,
        pages: npt.ArrayLike,
        change_rate: npt.ArrayLike,
        recall: npt.ArrayLike = 0.0,
        false_signal_rate: npt.ArrayLike = 0.0,
        now: float | None = None,
    ) -> None:
        """Say what the rates of pages are, for the papers' rules: nothing is estimated for these pages any more.

        Parameters
        ----------
        pages : array_like of int
            Distinct pages.
        change_rate : array_like
            Changes per second.
        recall : array_like
            Probability that a change is announced.
        false_signal_rate : array_like
            Announcements per second without a change.
        now : float, optional
            POSIX seconds; the time passed last by default.
        """
        rule = rule_named(self._rule)
        if rule is None:
            raise ValueError(f"crawl_value must be one of {', '.join(RULES)} for known rates, got {self._rule!r}.")
        rows = self.rows(pages)
        order = np.argsort(np.asarray(pages, np.intp), kind="stable")
        if self.known_rates is None:
            self.known_rates = KnownRates(rule)
        columns = (
            np.broadcast_to(np.asarray(c, np.float64), order.shape) for c in (change_rate, recall, false_signal_rate)
        )
        self.known_rates.set(rows, *(column[order] for column in columns))
        if self._frontier is not None:
            self._refile(rows, self.at(self._now if now is None else now))

    def set_intervals(self, pages: npt.ArrayLike, rules: npt.ArrayLike, now: float) -> None:
        """Say by which rules distinct pages have their crawl intervals (0: by none), and file them again."""
        self.at(now)
        rows = self.rows(pages)
        self.frontier.forget_deadlines(rows)
        self.intervals.put(rows, np.asarray(rules, np.uint8))
        self._refile(rows, now)

    def _refile(self, rows: IndexArray, now: float) -> None:
        for start in range(0, rows.size, _FILED):
            self.frontier.refile(rows[start : start + _FILED], now)

    def _in_slices(self, rows: IndexArray, do: Callable[[IndexArray, float], None]) -> None:
        at = 0

        def step(now: float) -> bool:
            nonlocal at
            do(rows[at : at + SLICE], now)
            at += SLICE
            return at < rows.size

        self._work.append(step)


def _backing_off(again: int, first: float, longest: float) -> float:
    return float(min(first * 2.0 ** min(again, 60), max(longest, first)))


def positive(name: str, value: float, unit: str) -> float:
    """Return a number above 0 and finite, or raise `ValueError`."""
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be {unit} above 0 and finite, got {value!r}.")
    return float(value)
