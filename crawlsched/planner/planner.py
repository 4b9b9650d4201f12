"""The planner: what is known of all pages, what each page is worth, and which page is crawled next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.change_signals import FurtherRow
from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.crawl_value.rules import RULES, rule_named
from crawlsched.estimators import LearnedRates
from crawlsched.estimators.observations import check_positive
from crawlsched.frontier import Pick
from crawlsched.pages import (
    ERROR,
    FREE,
    GONE,
    LAST_TRIES,
    LIVE,
    MOVED,
    REFUSED,
    STATE_NAMES,
    check_importance,
)
from crawlsched.planner.evidence.signal_counts import SignalCounts
from crawlsched.planner.knowledge import Knowledge
from crawlsched.planner.plans.in_force import SLICE
from crawlsched.planner.plans.plan import Plan, Snapshot
from crawlsched.planner.sampling import snapshot_in_parts
from crawlsched.planner.starvation import Rounds
from crawlsched.planner.values import POLICIES, PointValues
from crawlsched.slot_clock import DAY

__all__ = ["DEFAULT_GRID", "Observation", "Planner"]

#: 32 change rates per second in equal ratios of 1.75, from once in three years to once in 3 seconds. Real sites have
#: rates in this range. The fastest rates are for demonstrations, which have to show something in seconds.
DEFAULT_GRID: FloatArray = np.geomspace(1 / (3 * 365 * DAY), 1 / 3, 32)

_LONGEST_ERROR_INTERVAL = DAY
_LONGEST_GONE_INTERVAL = 30 * DAY
# The threshold follows the values of picked pages. The first weight is for values below the threshold, the second for
# values above it. With these weights the threshold stays near the value at which pages without announcements are
# picked, although announced pages are picked at higher values.
_STEP_DOWN, _STEP_UP = 0.04, 0.004
# The threshold follows ratios of values, since values differ by orders of magnitude. A ratio above this limit counts as
# the limit.
_LARGEST_RATIO = 4.0
# After this number of visits in a row without content, a page counts as failing.
_FAILING_FROM = 3
# Every visit makes an observation. `tuple.__new__` takes half of the time of `Observation(...)`.
_observation = tuple.__new__


class Observation(NamedTuple):
    """What the planner learned from a visit."""

    page: int
    time: float  # POSIX seconds
    elapsed: float  # seconds since the visit before
    n_signals: int  # ChangeSignals since the visit before
    source: int  # the source of these ChangeSignals; -1 if no source covers the page
    evidence: float  # by how much these ChangeSignals lowered the log-probability of freshness, nats
    changed: bool  # whether the page had changed
    # The further sources that cover the page, each with the number of its ChangeSignals.
    further: tuple[tuple[int, int], ...] = ()
    time_since_modified: float | None = None  # seconds from the last modification to the visit, if known


class Planner(Knowledge):
    """Decide which page to crawl, and learn from what visits find; only the planner and its parts write to `Pages`.

    Parameters
    ----------
    bandwidth : float
        Crawls per second.
    crawl_value : str
        ``"posterior"``: the expectation over the posterior of the change rate. Or one of the papers' rules with
        estimated rates (or with known rates, see `set_rates`): a name in `crawlsched.crawl_value.rules.RULES`, such as
        ``"greedy"``. Or a plan: a name in `crawlsched.planner.values.POLICIES`, such as ``"harmonic"``.
    rates : array_like, optional
        Grid of change rates per second, increasing; `DEFAULT_GRID` by default.
    min_crawl_interval : float
        At least this number of seconds passes between a page's last crawl and the next pick of the page.
    interval_rules : sequence of (float, float), optional
        Shortest and longest intervals that replace `min_crawl_interval` and `max_crawl_interval` for some pages (see
        `add` and `set_intervals`).
    max_crawl_interval : float, optional
        A page that was not crawled for this number of seconds is picked before any page that is picked by value.
    max_crawl_rounds : float, optional
        A page of some importance that was not crawled for this number of rounds is crawled soon. A round is the time
        that one crawl of every page takes (`crawlsched.planner.starvation`). None: some pages may never be crawled,
        since their values never reach the threshold.
    discovery_share : float
        At most this share of the slots goes to first copies while pages that have a copy are due.
    signal_delay : float
        Seconds. A ChangeSignal within this time after a crawl is discarded, since the crawl has seen the change.
    error_interval : float
        Seconds from an error to the next try. The interval doubles after each further error, up to a day.
    gone_interval : float
        Seconds until a gone page is tried again. The interval doubles after each further try, up to 30 days.
    learned : LearnedRates, optional
        The estimator by which the papers' rules learn change rates. By default they use the mean of the posterior.
    picks : bool, default True
        False: the planner only computes crawl values. It does not place pages in the frontier, which takes most of the
        time.

    Attributes
    ----------
    threshold : float
        A running mean of the crawl values at which pages with a copy are picked. It may be set if it is known from an
        earlier crawl.
    clipped : int
        Number of loaded pages whose last crawl was in the future.

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
        interval_rules: Sequence[tuple[float, float]] = (),
        max_crawl_rounds: float | None = None,
        discovery_share: float = 0.5,
        signal_delay: float = 0.0,
        error_interval: float = 60.0,
        gone_interval: float = DAY,
        learned: LearnedRates | None = None,
        picks: bool = True,
    ) -> None:
        _check_policy(crawl_value)
        _check_intervals(min_crawl_interval, max_crawl_interval, max_crawl_rounds, signal_delay)
        longest = np.inf if max_crawl_interval is None else max_crawl_interval
        if not 0.0 <= discovery_share <= 1.0:
            raise ValueError(f"discovery_share must be a number from 0 to 1, got {discovery_share!r}.")
        # With one rate for each page, the expected crawl value is that of the papers' most general rule.
        rule = "greedy_ncis" if crawl_value == "posterior" and learned is not None else crawl_value
        super().__init__(
            check_positive(bandwidth, "bandwidth", "crawls per second"),
            DEFAULT_GRID if rates is None else rates,
            rule,
            [(min_crawl_interval, longest), *interval_rules],
            discovery_share,
            learned,
            picks,
        )
        self.error_interval = check_positive(error_interval, "error_interval", "seconds")
        self.gone_interval = check_positive(gone_interval, "gone_interval", "seconds")
        self.signal_delay = signal_delay
        self.grid = self.posterior.rates_id
        self.clipped = 0
        self._counts = SignalCounts(self.pages, self.further, self.announcements)
        self._rounds = None if max_crawl_rounds is None else Rounds(self.pages, max_crawl_rounds)
        self.threshold, self._n_followed = 0.0, 0

    @property
    def estimator(self) -> str:
        """The name of the estimator whose rows a store has; "" for the posterior, whose rows are stored elsewhere."""
        return "" if self.learned is None else self.learned.key

    @property
    def plan(self) -> Plan | None:
        """The plan that was adopted last."""
        return self.in_force.plan

    # -- pages are added and removed

    def reserve(self, n_pages: int) -> None:
        """Make room for `n_pages` pages in advance, since growing later would waste memory; O(n)."""
        self.pages.reserve(n_pages)
        if self.posterior.n_pages < n_pages:
            self.posterior.resize(n_pages)
            self._grow()
        self.frontier.reserve(n_pages)

    def _grow(self) -> None:
        rows = self.posterior.n_pages
        if rows < self.pages.n:
            self.posterior.resize(max(self.pages.n, rows + rows // 8))
        if self.learned is not None and self.learned.n_pages < self.posterior.n_pages:
            self.learned.resize(self.posterior.n_pages)

    def add(
        self,
        host: npt.ArrayLike,
        now: float,
        importance: npt.ArrayLike = 1.0,
        n: int | None = None,
        part: npt.ArrayLike = 0,
        interval_rules: npt.NDArray[np.uint8] | None = None,
        priority: Sequence[int] = (),
    ) -> IndexArray:
        """Take in new pages; O(log n) a page.

        `host` is a row number of hosts, and `part` the part of the host's site
        (`crawlsched.change_signals.part_number`). If neither `host` nor `importance` is an array, `n` is the number of
        pages. `interval_rules` has the number of the rule that bounds each page's crawl intervals; 0: no rule.
        `priority` is the priority of the pages' requests. Pages with a higher priority get their first copies earlier.
        """
        now = self.at(now)
        pages = self.pages.add(host, now, importance, n, part)
        if interval_rules is not None:
            self.pages.rule[pages] = interval_rules
        self._grow()
        for page, asked in zip(pages.tolist(), priority, strict=False):
            if asked:
                self.set_priority(page, asked, now)
        self._place(pages, now, self.frontier.file)
        return pages

    def set_priority(self, page: int, priority: int, now: float) -> None:
        """Set the priority of a page's request, by which the page waits for its first copy. O(log n)."""
        self.at(now)
        self.frontier.reserve(page + 1)
        self.frontier.new.set_priority(page, priority)
        self._refile(np.array([page]), now)

    def load(
        self, columns: dict[str, npt.NDArray[np.generic]], log_likelihood: npt.NDArray[np.uint16] | None, now: float
    ) -> None:
        """Take in pages from a store, block by block; O(log n) a page.

        `columns` has ``page`` and the columns of `Pages`. ``log_likelihood`` has compact rows, used where
        ``has_log_likelihood`` is true. ``estimator_state`` has the rows of the estimator, used where
        ``has_estimator_state`` is true. If the time of a page's last crawl is later than `now`, this time is set to
        `now`, and the page is counted in `clipped`.
        """
        now = self.at(now)
        pages = np.asarray(columns["page"], np.intp)
        # ``further`` has row numbers of another planner. `load_further` loads the rows.
        known = {name: column for name, column in columns.items() if name != "further"}
        if "first_seen" in known and "crawled_at" in known:
            # After a page's first crawl, nothing depends on the time at which the page became known.
            found = np.asarray(known["first_seen"], float)
            known["first_seen"] = np.where(np.asarray(known["crawled_at"]) > -np.inf, 0.0, found)
        self.pages.set_rows(pages, known)
        self.own_precision.load(pages, columns)
        self._grow()
        future = pages[self.pages.crawled_at[pages] > now]
        self.clipped += future.size
        self.pages.crawled_at[future] = now
        if (self.pages.crawled_at[pages] > -np.inf).any():
            self.frontier.share.has_begun()
        if log_likelihood is not None:
            chosen = np.asarray(columns.get("has_log_likelihood", np.ones(pages.size, bool)), bool)
            self.posterior.unpack(pages[chosen], log_likelihood[chosen])
        if self.learned is not None and "estimator_state" in columns:
            chosen = np.asarray(columns["has_estimator_state"], bool)
            self.learned.unpack(pages[chosen], columns["estimator_state"][chosen].tolist())
        filed = pages[self.pages.state[pages] != FREE]
        self._place(filed, now, self.frontier.file)

    def load_further(self, rows: Iterable[tuple[int, int, *FurtherRow]], now: float) -> None:
        """Load the stored announcements of pages that several sources cover; call `load` first."""
        loaded = set()
        for row in rows:
            page = row[0]
            if page < self.pages.n and self.pages.state.item(page) != FREE:
                self.further.load(*row)
                loaded.add(page)
        if loaded:
            self._refile(np.array(sorted(loaded), np.intp), self.at(now))

    def remove(self, pages: npt.ArrayLike) -> None:
        """Forget pages and all that is known of them. O(1) a page."""
        rows = self.rows(pages)
        self.in_flight_pages.difference_update(rows.tolist())
        self.frontier.discard(rows)
        self.announcements.free(rows)
        self.pages.free(rows)
        self.posterior.unpack(rows, np.zeros((rows.size, self.posterior.rates.size), np.uint16))
        if self.learned is not None:
            self.learned.forget(rows)

    # -- visits

    def crawled(
        self,
        page: int,
        now: float,
        changed: bool | None,
        *,
        doubt: float = 0.0,
        time_since_modified: float | None = None,
    ) -> Observation | None:
        """Take in a visit that reached content; return what was learned from it.

        `changed` is None if the visit cannot be compared with the previous visit. `doubt` and `time_since_modified` are
        as for `Posterior.update_one`. Nothing is learned from a first visit, a visit without a comparison, or the
        return of a gone page.
        """
        now, columns = self.at(now), self.pages
        crawled_at, state = columns.crawled_at.item(page), columns.state.item(page)
        n_signals, covered_further = columns.n_signals.item(page), columns.further.item(page)
        elapsed, observation = now - crawled_at, None
        if changed is not None and now > crawled_at > -inf and state not in (GONE, MOVED):
            further: tuple[tuple[int, int], ...] = ()
            if covered_further:
                further = tuple((other.source, other.n_signals) for other in self.further.of(page)[1:])
            evidence = float(self.announcements.evidence(np.array([page]))[0]) if n_signals or further else 0.0
            parameters = self.in_force.parameters
            prior = parameters.priors[parameters.group(columns.host.item(page))]
            if n_signals or (further and any(n for _, n in further)):
                unchanged = self.posterior.unchanged_one(page, elapsed, prior, parameters.learning_rate)
                self.announcements.visited(page, changed, doubt, unchanged, evidence)
            # Only rounding needs the number of updates. The number of crawls is close to it.
            self.posterior.update_one(
                page,
                elapsed,
                changed,
                evidence,
                doubt=doubt,
                time_since_modified=time_since_modified,
                prior=prior,
                n_updates=columns.n_crawls.item(page),
            )
            if self.learned is not None:
                self.learned.observe(page, elapsed, changed, n_signals, time_since_modified)
            source = columns.source.item(page)
            found = page, now, elapsed, n_signals, source, evidence, changed, further, time_since_modified
            observation = _observation(Observation, found)
        # Unchanged values are not written, to save time.
        if changed:
            columns.n_changes.count_one(page)
        columns.n_crawls.count_one(page)
        columns.crawled_at[page] = now
        if n_signals or covered_further:
            self.announcements.forget(page)
        if state != LIVE:
            columns.state[page] = LIVE
        columns.reached(page)
        self._end_visit(page, now)
        return observation

    def failed(self, page: int, now: float, retry_at: float | None = None, *, of_host: bool = False) -> None:
        """Take in a visit that did not reach content: the page backs off, and is not tried before `retry_at`.

        If the whole host fails (`of_host`), `retry_at` is the time from which the host may be asked again. Then the
        page waits only until that time.
        """
        self._left(page, ERROR, now, self.error_interval, _LONGEST_ERROR_INTERVAL, retry_at, of_host)

    def put_off(self, page: int, until: float, now: float) -> None:
        """Let a page wait until a time."""
        now = self.at(now)
        self.pages.not_before[page] = until
        self.frontier.refile(np.array([page]), now)

    def take_back(self, columns: dict[str, npt.NDArray[Any]], now: float) -> None:
        """Forget what the last visit taught, since another page answered. `columns` is a copy from before that visit.

        The page backs off as after an error.
        """
        rows = columns["page"]
        kept = {name: columns[name] for name in ("crawled_at", "n_crawls", "n_changes", "n_signals")}
        self.pages.set_rows(rows, kept)
        self.own_precision.load(rows, columns)
        self.posterior.unpack(rows, columns["log_likelihood"])
        if not self.in_flight_pages.intersection(rows.tolist()):
            self.failed(int(rows[0]), now)

    def gone(self, page: int, now: float, retry_at: float | None = None, *, of_host: bool = False) -> None:
        """Take in a visit that found the page gone: the page is tried ever more rarely; see `failed`."""
        self._left(page, GONE, now, self._look_again(page), _LONGEST_GONE_INTERVAL, retry_at, of_host)

    def moved(self, page: int, now: float, retry_at: float | None = None, *, of_host: bool = False) -> None:
        """Take in a visit with a permanent redirect: the page is tried ever more rarely; see `failed`."""
        self._left(page, MOVED, now, self.gone_interval, _LONGEST_GONE_INTERVAL, retry_at, of_host)

    def refused(self, page: int, now: float, retry_at: float | None = None, *, of_host: bool = False) -> None:
        """Take in a visit that was refused: the page is tried ever more rarely; see `failed`."""
        self._left(page, REFUSED, now, self._look_again(page), _LONGEST_GONE_INTERVAL, retry_at, of_host)

    def not_allowed(self, page: int, now: float, retry_at: float | None = None, *, of_host: bool = False) -> None:
        """Take in a visit that robots.txt or another rule forbids, so that it was not sent; see `failed`."""
        self._left(page, REFUSED, now, self.gone_interval, _LONGEST_GONE_INTERVAL, retry_at, of_host)

    def _look_again(self, page: int) -> float:
        """Return the seconds until a vanished page is tried again. A page that had a copy is tried sooner."""
        return min(self.error_interval, self.gone_interval) if self.pages.n_crawls.item(page) else self.gone_interval

    def _left(
        self, page: int, state: int, now: float, first: float, longest: float, retry_at: float | None, of_host: bool
    ) -> None:
        """Let a page wait after a visit without content; each such visit in a row doubles the wait."""
        now, pages = self.at(now), self.pages
        # An error does not change the state of a page that is gone or moved.
        if state in (GONE, MOVED) or pages.state.item(page) not in (GONE, MOVED):
            pages.state[page] = state
        if state == MOVED or (state == GONE and not pages.n_crawls.item(page)):
            pages.crawled_at[page] = now
        again = int(pages.n_errors.item(page))
        wait = 0.0 if of_host else min(first * 2.0 ** min(again, 60), max(longest, first))
        # If the host fails, the number of tries stays low, so that the page does not wait for long.
        tries = max(again, min(again + 1, LAST_TRIES if of_host else 255))
        pages.not_before[page], pages.n_errors[page] = max(now + wait, retry_at or 0.0), tries
        self._end_visit(page, now)

    def ask_soon(self, pages: IndexArray, now: float) -> None:
        """Let pages that wait after a failure be crawled now, except pages in flight."""
        now, rows = self.at(now), np.setdiff1d(pages, list(self.in_flight_pages))
        self.pages.not_before[rows] = now
        self._refile(rows, now)

    def standing(self, page: int) -> str:
        """Return the standing of a page that had a copy at some time: live, failing, gone or moved."""
        pages = self.pages
        state = pages.state.item(page)
        if state == LIVE or not pages.n_crawls.item(page):
            return "live"
        if state in (GONE, MOVED):
            return STATE_NAMES[state]
        return "failing" if pages.n_errors.item(page) >= _FAILING_FROM else "live"

    def release(self, page: int, now: float) -> None:
        """Undo the pick of a page whose visit was dropped."""
        self._end_visit(page, self.at(now))

    # -- announcements

    def covered(self, pages: npt.ArrayLike, source: int, now: float) -> None:
        """Let a source count for the pages that it names; this is not yet an announcement. O(1) a page."""
        self.at(now)
        self._counts.cover(self.rows(pages), source, now)

    def signalled(self, pages: npt.ArrayLike, source: int, now: float, since: float | None = None) -> int:
        """Take in one announcement of a change for each of these pages; return how many announcements count.

        An announcement within the signal delay after a crawl does not count. `since` is the time of the previous read
        of this source, by default `now`. Another source's announcement may be of the same change if it came after
        `since`, or at most the signal delay earlier.

        Notes
        -----
        If there are more than 128 announcements, slices of them are counted with the next picks. If a page is visited
        before its slice is counted, that visit has seen the change.
        """
        now = self.at(now)
        columns, before = self.pages, (now if since is None else min(since, now)) - self.signal_delay
        rows = self.rows(pages)
        if (columns.source[rows] != source).any():
            self._counts.cover(rows, source, now)
        if self.signal_delay:
            rows = rows[now - columns.crawled_at[rows] >= self.signal_delay]
        if rows.size <= SLICE:
            self._take_signals(rows, source, now, before)
        else:
            self._in_slices(rows, lambda part, _: self._take_signals(part, source, now, before))
        return int(rows.size)

    def announced_by(self, page: int, source: int) -> bool:
        """Whether a source has announced a page since its last crawl."""
        return self._counts.announced_by(page, source)

    def _take_signals(self, rows: IndexArray, source: int, announced_at: float, since: float) -> None:
        rows = self._counts.take(rows, source, announced_at, since)
        # A page that was never crawled has no copy that could be stale.
        self.frontier.refile(rows[self.pages.crawled_at[rows] > -np.inf], self.now)

    # -- what people set

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
        """Set the rates of distinct pages, for the papers' rules; the planner stops estimating these rates.

        Parameters
        ----------
        recall : array_like
            Probability that a change is announced.
        false_signal_rate : array_like
            Announcements per second without a change.
        """
        if not isinstance(self.crawl_values, PointValues):
            raise ValueError(f"crawl_value must be one of {', '.join(RULES)} for known rates, got {self.rule!r}.")
        self.rows(pages)
        rows = np.asarray(pages, np.intp).reshape(-1)
        self.crawl_values.know(rows, change_rate=change_rate, recall=recall, false_signal_rate=false_signal_rate)
        self._refile(rows, self.at(self.now if now is None else now))

    def set_intervals(self, pages: npt.ArrayLike, rules: npt.ArrayLike, now: float) -> None:
        """Set the rules that bound the crawl intervals of distinct pages (0: no rule), and file the pages anew."""
        self.at(now)
        rows = self.rows(pages)
        self.pages.rule[rows] = rules
        self._refile(rows, now)

    # -- picks

    def pick(self, now: float, host_free_at: Callable[[int, float], float]) -> Pick | None:
        """Take out the page to crawl now; amortised O(log n), plus one slice of a plan that is being adopted.

        The page is in flight until one of `crawled`, `failed`, `gone`, `moved`, `refused`, `release`, `remove` is
        called.

        Parameters
        ----------
        host_free_at : callable
            ``host_free_at(host, now)`` returns the time from which a host may be asked: `now` or earlier if it may be
            asked now. A host that may not be asked yet rests until that time, or until `release_host`.
        """
        now, frontier = self.at(now), self.frontier
        if self.steps:
            self.work(now)
        if self._rounds is not None:
            self._rounds.before_pick(frontier, self.bandwidth, now)
        pick = frontier.pick(now, host_free_at)
        if pick is None:
            return None
        page, crawl_value, reason, is_first_copy = pick
        self.in_flight_pages.add(page)
        if reason == "value" and not is_first_copy:
            self._follow(crawl_value)
        # Pages that have waited for too many rounds are forced, but are reported as overdue.
        elif reason == "forced" and self._rounds is not None and self._rounds.sent(page):
            pick = Pick(page, crawl_value, "overdue")
        return pick

    def _follow(self, crawl_value: float) -> None:
        """Let the threshold follow the value of a picked page that has a copy."""
        self._n_followed += 1
        if self.threshold <= 0.0:
            self.threshold = crawl_value
        else:
            # A page that has certainly changed can be worth thousands of times as much as other pages, but a single
            # such page is no trend.
            ratio = min(max(crawl_value / self.threshold, 1 / _LARGEST_RATIO), _LARGEST_RATIO)
            # The first values come from a young collection. The threshold is their mean until there are enough values.
            self.threshold *= ratio ** max(_STEP_UP if ratio > 1.0 else _STEP_DOWN, 1.0 / self._n_followed)

    def work(self, now: float) -> bool:
        """Work for a millisecond on the steps that wait between picks; return whether more steps wait.

        `pick` calls this method. If picks are rare, callers may also call `work` at any time.
        """
        if self.steps:
            # Steps take turns, so that announcements do not wait until all pages have adopted a plan.
            step = self.steps.popleft()
            if step(self.at(now)):
                self.steps.append(step)
        return bool(self.steps)

    def hold(self, page: int) -> None:
        """Keep a page in flight after its visit, because the page is fetched a second time. `release` ends that."""
        self.frontier.discard(np.array([page]))
        self.in_flight_pages.add(page)

    def in_flight(self, page: int) -> bool:
        """Whether a page is being visited."""
        return page in self.in_flight_pages

    def peek(self, now: float, n: int) -> IndexArray:
        """Return pages that are likely to be picked next: see `out_of_turn` and `Frontier.peek`."""
        return np.array(list(dict.fromkeys([*self.out_of_turn(now, n), *self.frontier.peek(n).tolist()])), np.intp)

    def out_of_turn(self, now: float, n: int) -> list[int]:
        """Return the forced and overdue pages, approximately in their order; O(n log n)."""
        found = self.frontier.out_of_turn(n)
        if self._rounds is not None:
            found += self._rounds.coming(self.frontier, n - len(found), self.bandwidth, now)
        return found

    def force(self, pages: npt.ArrayLike, now: float) -> None:
        """Let pages be picked before all pages that are picked by value; pages in flight do not change."""
        self.at(now)
        rows = np.asarray(pages, np.intp)
        self.rows(rows)
        self.frontier.force(rows)

    # -- plans

    def set_bandwidth(self, bandwidth: float, now: float) -> None:
        """Crawl at another rate from now on; the threshold follows without further calls."""
        self.bandwidth = check_positive(bandwidth, "bandwidth", "crawls per second")
        self.frontier.slot = 1.0 / bandwidth

    def snapshot(self, host_limits: Callable[[], FloatArray] | None = None) -> Snapshot:
        """In a single step, copy what `plan` needs; `snapshot_in_parts` copies it in parts."""
        parts = snapshot_in_parts(self, host_limits)
        while True:
            try:
                next(parts)
            except StopIteration as end:
                found: Snapshot = end.value
                return found

    def adopt(self, plan: Plan, now: float) -> None:
        """Let a plan come into force; with the next picks, all pages are placed by it, in slices."""
        parameters = plan.parameters(self.posterior.rates)
        self.at(now)
        self.in_force.plan = plan
        if self.planned is not None:
            self.planned.divide(self.bandwidth)
        self.in_force.put(parameters)

    # -- what is known

    def hosts(self, pages: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Return the host of each of some pages; -1 for forgotten pages."""
        rows = np.asarray(pages, np.intp)
        self.rows(rows)
        found: npt.NDArray[np.int32] = np.where(self.pages.state[rows] == FREE, -1, self.pages.host[rows])
        return found

    def columns(self, pages: npt.ArrayLike) -> dict[str, npt.NDArray[np.generic]]:
        """Return copies of all columns of some pages, for a store.

        The columns are ``page``, those of `Pages` and `OwnPrecision`, ``log_likelihood`` (uint16), and
        ``estimator_state`` (bytes) if there is an estimator.
        """
        rows = np.asarray(pages, np.intp)
        likelihood = self.posterior.packed(rows)
        own = self.own_precision.columns(rows)
        columns = {"page": rows, **self.pages.columns(rows), **own, "log_likelihood": likelihood}
        if self.learned is not None:
            columns["estimator_state"] = np.array(self.learned.packed(rows), object)
        return columns

    def overdue_demand(self, pages: slice = slice(None)) -> float:
        """Return the crawls per second that `max_crawl_interval` needs for some pages; O(n).

        It is 0 without `max_crawl_interval`.
        """
        if not self.intervals.come:
            return 0.0
        rows = np.arange(*pages.indices(self.pages.n))
        return float((1.0 / self.intervals.longest(rows[self.pages.state[rows] != FREE])).sum())


def _check_policy(crawl_value: str) -> None:
    """Raise `ValueError` if there is no such crawl value."""
    if crawl_value not in ("posterior", *POLICIES) and rule_named(crawl_value) is None:
        names = ", ".join(("posterior", *RULES, "greedy_ncis_approx_j", *POLICIES))
        raise ValueError(f"crawl_value must be one of {names}, got {crawl_value!r}.")


def _check_intervals(
    min_crawl_interval: float, max_crawl_interval: float | None, max_crawl_rounds: float | None, signal_delay: float
) -> None:
    """Raise `ValueError` if one of these numbers is out of its range, or the longest interval is below the shortest."""
    for name, seconds in (("min_crawl_interval", min_crawl_interval), ("signal_delay", signal_delay)):
        if not 0 <= seconds < np.inf:
            raise ValueError(f"{name} must be seconds, 0 or more and finite, got {seconds!r}.")
    if max_crawl_interval is not None and not max(min_crawl_interval, 1e-9) <= max_crawl_interval < np.inf:
        raise ValueError(
            f"max_crawl_interval must be None or finite seconds, above 0 and at least min_crawl_interval "
            f"({min_crawl_interval!r}), got {max_crawl_interval!r}."
        )
    if max_crawl_rounds is not None and not 1 <= max_crawl_rounds < np.inf:
        raise ValueError(f"max_crawl_rounds must be None or finite, 1 or more rounds, got {max_crawl_rounds!r}.")
