"""The arm that is the crawler itself: the production planner and frontier on a simulated clock."""

from __future__ import annotations

from array import array
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.crawl_value import prepare_compiled
from crawlsched.pages import LIVE
from crawlsched.planner import DEFAULT_GRID, Observation, Plan, Planner, plan
from crawlsched.settings import Settings
from crawlsched.simulation.arm import NO_PAGE, Setting
from crawlsched.simulation.rates import EstimatedRates, rate_grid
from crawlsched.simulation.truth import Visit

__all__ = ["PlannerArm"]

# The first plan is made after so many crawls, and the next ones each after twice as many, up to a crawl of every page;
# then each after an eighth more, since what all pages have in common is known the better the less each visit adds.
_FIRST_PLAN = 64
_SHARE_OF_CRAWLS = 8
# Columns of the visits from which the worth of announcements is learned: name, code of the array, type in numpy.
_VISIT_COLUMNS = (
    ("page", "q", np.intp),
    ("elapsed", "d", np.float64),
    ("n_signals", "q", np.intp),
    ("source", "q", np.intp),
    ("changed", "b", np.bool_),
)
# From so many crawls on it is worth half a second to load compiled code, where numba is installed.
_WORTH_LOADING = 10_000
_SOURCE = 0
_HOST = 0


class PlannerArm:
    """Crawl what `Planner` picks, and tell it what was found.

    Parameters
    ----------
    setting : Setting
    rule : str
        The planner's `crawl_value`.
    signal_delay : float
        Announcements are discarded so many seconds after a crawl.
    is_dated : bool
        Whether each visit tells the planner when the page was last modified, as an honest Last-Modified does.

    Notes
    -----
    All pages are on one host, which never rests. Where there are announcements, one source makes them and covers all
    pages. If the setting has known rates, the planner is told them once; an estimator becomes the planner's own, as in
    a crawl; otherwise it learns by itself. Plans are made at intervals counted in crawls.
    """

    def __init__(
        self,
        setting: Setting,
        rule: str,
        signal_delay: float = 0.0,
        is_dated: bool = False,
    ) -> None:
        if setting.bandwidth * (setting.window.end - setting.window.start) >= _WORTH_LOADING:
            prepare_compiled()
        self._setting = setting
        # The papers' policies let a page starve that is not worth its crawls; the default policy does not.
        default = Settings() if rule == "posterior" else None
        self._planner = Planner(
            setting.bandwidth,
            crawl_value=rule,
            rates=_grid(setting),
            signal_delay=signal_delay,
            max_crawl_rounds=default.max_crawl_rounds if default else None,
            learned=setting.rates.learned if isinstance(setting.rates, EstimatedRates) else None,
        )
        self._planner.reserve(setting.importance.size)
        # In float32 two pages of different importance can be worth the same, which is no tie here.
        self._planner.pages.importance = self._planner.pages.importance.astype(np.float64)
        # To the planner a time before 1970 means none.
        self._origin = min(setting.window.start, 0.0)
        # What an estimator learns, the planner learns by it; other rates it is told.
        self._rates = None if self._planner.learned is not None else setting.rates
        self._is_dated = is_dated or self._planner.learned is not None
        self._knows = setting.rates is not None and setting.recall is not None
        self._visits = SignalVisits()
        self._plan: Plan | None = None
        self._n_crawls = 0
        self._next_plan = _FIRST_PLAN

    @property
    def planner(self) -> Planner:
        """The planner that decides."""
        return self._planner

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Load pages as pages of which there is a copy."""
        now, crawled_at = now - self._origin, crawled_at - self._origin
        covered = self._setting.has_signals
        columns: dict[str, npt.NDArray[np.generic]] = {
            "page": rows,
            "state": np.full(rows.size, LIVE, np.uint8),
            "importance": self._setting.importance[rows],
            "crawled_at": crawled_at,
            "first_seen": crawled_at,
            "host": np.full(rows.size, _HOST),
            "source": np.full(rows.size, _SOURCE if covered else -1),
            "signalled_since": np.where(covered, crawled_at, np.nan),
        }
        self._planner.load(columns, None, now)
        if self._rates is not None:
            self._tell_rates(rows, now)

    def _tell_rates(self, rows: IndexArray, now: float) -> None:
        assert self._rates is not None
        change_rate = self._rates.change_rate(rows)
        setting = self._setting
        if setting.recall is not None and setting.false_signal_rate is not None:
            recall, false = setting.recall[rows], setting.false_signal_rate[rows]
        elif setting.has_signals:
            # What announcements are worth is left to the planner: γ (1 - e^-κ) of them a second are true.
            signal_rate, signal_weight = self._planner.announcements.signals(rows)
            true = np.minimum(signal_rate * -np.expm1(-signal_weight), change_rate)
            recall = np.divide(true, change_rate, out=np.zeros(rows.size), where=change_rate > 0)
            false = signal_rate * np.exp(-signal_weight)
        else:
            recall = false = np.zeros(rows.size)
        self._planner.set_rates(rows, change_rate, recall, false, now)

    def end(self, rows: IndexArray, now: float) -> None:
        """Forget pages."""
        self._planner.remove(rows)

    def signalled(self, rows: IndexArray, now: float) -> None:
        """Pass announcements on."""
        self._planner.signalled(rows, _SOURCE, now - self._origin)

    def pick(self, now: float) -> int:
        """Return the planner's pick."""
        pick = self._planner.pick(now - self._origin, _never_rests)
        return NO_PAGE if pick is None else pick.page

    def crawled(self, visit: Visit) -> None:
        """Tell the planner, and let it plan when it is time."""
        now = visit.time - self._origin
        if self._rates is not None:
            # Told while the page is out, so that it is filed once.
            self._rates.observe(visit)
            if not self._knows:
                self._tell_rates(np.array([visit.row]), now)
        # Where rates are known there is nothing to learn.
        changed = None if self._knows else visit.changed
        modified = visit.time_since_modified if self._is_dated and not isnan(visit.time_since_modified) else None
        observation = self._planner.crawled(visit.row, now, changed, time_since_modified=modified)
        if observation is not None and observation.source >= 0:
            self._visits.add(observation)
        self._n_crawls += 1
        if self._n_crawls >= self._next_plan and not self._knows:
            self._replan(now)

    def _replan(self, now: float) -> None:
        visits = self._visits.columns() if len(self._visits) else None
        self._plan = plan(self._planner.snapshot(), self._setting.bandwidth, visits, self._plan)
        self._planner.adopt(self._plan, now)
        most = max(len(self._planner.pages), _FIRST_PLAN, self._n_crawls // _SHARE_OF_CRAWLS)
        self._next_plan = self._n_crawls + min(self._n_crawls, most)


class SignalVisits:
    """What visits to pages that a source covers have found, in columns as `plan` takes them."""

    def __init__(self) -> None:
        self._columns = {name: array(code) for name, code, _ in _VISIT_COLUMNS}

    def __len__(self) -> int:
        return len(self._columns["page"])

    def add(self, observation: Observation) -> None:
        """Take in a visit."""
        for name, column in self._columns.items():
            column.append(getattr(observation, name))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Copy the columns."""
        return {name: np.array(self._columns[name], dtype) for name, _, dtype in _VISIT_COLUMNS}


def _grid(setting: Setting) -> FloatArray:
    """Return the planner's own grid of rates, unless the rates of the replay lie far outside of it."""
    wanted = rate_grid(setting.even_rate, setting.window.end - setting.window.start)
    inside = DEFAULT_GRID[0] <= 10 * wanted[0] and wanted[-1] <= 10 * DEFAULT_GRID[-1]
    return DEFAULT_GRID if inside else wanted


def _never_rests(host: int, now: float) -> float:
    return now
