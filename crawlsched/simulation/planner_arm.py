"""An arm that runs the crawler's own planner and frontier on a simulated clock."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators import LearnedRates
from crawlsched.pages import LIVE
from crawlsched.planner import DEFAULT_GRID, Observation, Plan, Planner, plan
from crawlsched.planner.starvation import MAX_CRAWL_ROUNDS
from crawlsched.simulation.arms import NO_PAGE, Arm, ArmSetting, rate_grid
from crawlsched.simulation.history import CrawlResult

__all__ = ["PlannerArm"]

# Columns of the visits that teach the quality of announcements: name, code of the array, type in numpy.
_VISIT_COLUMNS = (
    ("page", "q", np.intp),
    ("elapsed", "d", np.float64),
    ("n_signals", "q", np.intp),
    ("source", "q", np.intp),
    ("changed", "b", np.bool_),
)


class PlannerArm(Arm):
    """Crawl what `Planner` picks, and let it learn from each visit; with `is_dated`, also from dates of changes.

    Notes
    -----
    All pages are on one host, which never rests. Where there are announcements, one source makes them and covers all
    pages. If the setting has known rates, the planner gets them once. If it has an estimator, the planner uses it, as
    in a crawl. Otherwise the planner learns by itself. The first plan is made after `first_plan` crawls. The number of
    crawls then doubles from plan to plan, until the crawls between two plans are as many as the pages. From then on it
    grows by the share `more_visits`, since later visits teach less.
    """

    def __init__(
        self,
        setting: ArmSetting,
        rule: str,
        is_dated: bool = False,
        *,
        first_plan: int = 64,
        more_visits: float = 1 / 8,
    ) -> None:
        super().__init__(setting)
        # The papers' policies starve pages that are not worth their crawls; the default policy does not.
        self.planner = Planner(
            setting.bandwidth,
            crawl_value=rule,
            rates=_grid(setting),
            signal_delay=setting.signal_delay,
            max_crawl_rounds=MAX_CRAWL_ROUNDS if rule == "posterior" else None,
            learned=setting.learned if isinstance(setting.learned, LearnedRates) else None,
        )
        self.planner.reserve(setting.importance.size)
        # In float32 two pages of different importance could have the same value. Here their values must differ.
        self.planner.pages.importance = self.planner.pages.importance.astype(np.float64)
        # The planner treats a time before 1970 as missing.
        self._origin = min(setting.window.start, 0.0)
        self._is_dated = is_dated or self.planner.learned is not None
        self._knows = setting.recall is not None
        self._visits = {name: array(code) for name, code, _ in _VISIT_COLUMNS}
        self._plan: Plan | None = None
        self._n_crawls = 0
        self._first_plan = self._next_plan = first_plan
        self._more_visits = more_visits

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Load pages as pages with a copy."""
        super().begin(rows, crawled_at, now)
        setting, now, crawled_at = self.setting, now - self._origin, crawled_at - self._origin
        covered = setting.has_signals
        columns: dict[str, npt.NDArray[np.generic]] = {
            "page": rows,
            "state": np.full(rows.size, LIVE, np.uint8),
            "importance": setting.importance[rows],
            "crawled_at": crawled_at,
            "first_seen": crawled_at,
            "host": np.zeros(rows.size, np.intp),
            "source": np.full(rows.size, 0 if covered else -1),
            "signalled_since": np.where(covered, crawled_at, np.nan),
        }
        self.planner.load(columns, None, now)
        if setting.known is not None and setting.recall is not None and setting.false_signal_rate is not None:
            known = setting.known[rows], setting.recall[rows], setting.false_signal_rate[rows]
            self.planner.set_rates(rows, *known, now)

    def end(self, rows: IndexArray, now: float) -> None:
        """Forget pages."""
        super().end(rows, now)
        self.planner.remove(rows)

    def signalled(self, rows: IndexArray, now: float) -> None:
        """Pass announcements on."""
        self.planner.signalled(rows, source=0, now=now - self._origin)

    def choose(self, now: float) -> int:
        """Return the planner's pick."""
        pick = self.planner.pick(now - self._origin, _never_rests)
        return NO_PAGE if pick is None else pick.page

    def crawled(self, visit: CrawlResult) -> None:
        """Let the planner learn, and plan when it is time."""
        now = visit.time - self._origin
        # Where rates are known there is nothing to learn.
        changed = None if self._knows else visit.changed
        modified = visit.time_since_modified if self._is_dated else None
        observation = self.planner.crawled(visit.row, now, changed, time_since_modified=modified)
        if observation is not None and observation.source >= 0:
            self._keep(observation)
        self._n_crawls += 1
        if self._n_crawls >= self._next_plan and not self._knows:
            self._replan(now)

    def _keep(self, observation: Observation) -> None:
        for name, column in self._visits.items():
            column.append(getattr(observation, name))

    def _replan(self, now: float) -> None:
        visits: dict[str, npt.NDArray[Any]] | None = None
        if self._visits["page"]:
            visits = {name: np.array(self._visits[name], dtype) for name, _, dtype in _VISIT_COLUMNS}
        self._plan = plan(self.planner.snapshot(), self.setting.bandwidth, visits, self._plan)
        self.planner.adopt(self._plan, now)
        most = max(len(self.planner.pages), self._first_plan, int(self._n_crawls * self._more_visits))
        self._next_plan = self._n_crawls + min(self._n_crawls, most)


def _grid(setting: ArmSetting) -> FloatArray:
    """Return the planner's own grid of rates, unless the rates of the replay lie far outside of it."""
    wanted = rate_grid(setting.even_rate, setting.window.end - setting.window.start)
    inside = DEFAULT_GRID[0] <= 10 * wanted[0] and wanted[-1] <= 10 * DEFAULT_GRID[-1]
    return DEFAULT_GRID if inside else wanted


def _never_rests(host: int, now: float) -> float:
    return now
