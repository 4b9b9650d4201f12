"""The common parts of the noisy-signals paper's figures: random pages, policies, the optimum without signals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from crawlsched.bandwidth import refresh_rates
from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.freshness import expected_freshness
from crawlsched.simulation.figures.figure import FigureSettings
from crawlsched.simulation.history import History
from crawlsched.simulation.replaying import Replayed, replay

PAPER = "Busa-Fekete et al. (2025)"
# Section 6.3. The 100 repetitions are at the beginning of section 6.
BANDWIDTH = 100.0
SECTION_6 = FigureSettings(repetitions=100, pages=(100, 200, 500, 750, 1000), horizon=1000.0)
#: The optimal continuous policy without announcements, problem (5).
BASELINE = "baseline"
#: The paper's name of each policy, and its name in `replay`.
POLICIES = {
    "GREEDY": "greedy",
    "LDS": "lds",
    "GREEDY-CIS": "greedy_cis",
    "GREEDY-CIS+": "greedy_cis_plus",
    "GREEDY-NCIS": "greedy_ncis",
    "G-NCIS-APPROX-1": "greedy_ncis_approx_1",
    "G-NCIS-APPROX-2": "greedy_ncis_approx_2",
}
# Policies that ignore announcements get none.
_DEAF = ("GREEDY", "LDS")


@dataclass(frozen=True)
class Distribution:
    """A distribution that can describe itself."""

    words: str
    draw: Callable[[np.random.Generator, int], FloatArray]  # ``draw(rng, n)`` returns numbers


def uniform(low: float, high: float) -> Distribution:
    """Return the uniform distribution between two numbers."""
    return Distribution(f"Unif({low:g}, {high:g})", lambda rng, n: rng.uniform(low, high, n))


def beta(a: float, b: float) -> Distribution:
    """Return the beta distribution."""
    return Distribution(f"Beta({a:g}, {b:g})", lambda rng, n: rng.beta(a, b, n))


def lognormal(median: float, sigma: float) -> Distribution:
    """Return the lognormal distribution, by its median and the standard deviation of the logarithm."""
    words = f"lognormal with median {median:g} and sigma {sigma:g}"
    return Distribution(words, lambda rng, n: rng.lognormal(np.log(median), sigma, n))


UNIT = uniform(0.0, 1.0)


@dataclass(frozen=True)
class Instances:
    """How instances are drawn (section 6.1)."""

    change_rate: Distribution = UNIT  # Δ and μ of each page
    importance: Distribution = UNIT
    recall: Distribution | None = None  # λ: the probability that a change is announced; None where nothing is announced
    false_signal_rate: Distribution | None = None  # ν; None where no announcement is false

    def words(self) -> dict[str, str]:
        """Name the distribution of each quantity."""
        said = {"change rates": self.change_rate.words, "importances": self.importance.words}
        if self.recall is not None:
            false = "0" if self.false_signal_rate is None else self.false_signal_rate.words
            said |= {"recalls": self.recall.words, "false signal rates": false}
        return said

    def draw(self, rng: np.random.Generator, n_pages: int, horizon: float) -> History:
        """Draw an instance, and its events from 0 to the horizon."""
        change_rate = self.change_rate.draw(rng, n_pages)
        importance = self.importance.draw(rng, n_pages)
        if self.recall is None:
            return history_of(rng, importance, change_rate, None, None, horizon)
        recall = self.recall.draw(rng, n_pages)
        false = None if self.false_signal_rate is None else self.false_signal_rate.draw(rng, n_pages)
        return history_of(rng, importance, change_rate, recall, false, horizon)


def history_of(
    rng: np.random.Generator,
    importance: FloatArray,
    change_rate: FloatArray,
    recall: FloatArray | None,
    false_signal_rate: FloatArray | None,
    horizon: float,
) -> History:
    """Draw the events of pages from 0 to the horizon; `recall` is None if nothing is announced.

    Changes and false announcements are independent Poisson processes. Each change is announced with the probability
    `recall`. `false_signal_rate` is None if no announcement is false.
    """
    none = np.zeros(importance.size)
    change_rows, change_times = poisson_events(rng, change_rate, horizon)
    signal_rows = signal_times = None
    if recall is not None:
        announced = rng.random(change_rows.size) < recall[change_rows]
        false_rows, false_times = poisson_events(rng, none if false_signal_rate is None else false_signal_rate, horizon)
        signal_rows = np.concatenate([change_rows[announced], false_rows])
        signal_times = np.concatenate([change_times[announced], false_times])
        by_time = np.lexsort((signal_rows, signal_times))
        signal_rows, signal_times = signal_rows[by_time], signal_times[by_time]
    return History(
        page=np.arange(importance.size),
        birth=none,
        end=np.full(importance.size, np.inf),
        importance=importance,
        change_rows=change_rows,
        change_times=change_times,
        signal_rows=signal_rows,
        signal_times=signal_times,
        change_rate=change_rate,
        recall=none if recall is None else recall,
        false_signal_rate=none if false_signal_rate is None else false_signal_rate,
    )


def poisson_events(rng: np.random.Generator, rates: FloatArray, horizon: float) -> tuple[IndexArray, FloatArray]:
    """Draw the events of independent Poisson processes from 0 to the horizon.

    Return the rows and the times of the events, sorted by row and then by time.

    >>> rows, times = poisson_events(np.random.default_rng(1), np.array([0.0, 2.0]), 1000.0)
    >>> np.bincount(rows), bool((np.diff(times) >= 0).all())
    (array([   0, 2001]), True)
    """
    rows = np.repeat(np.arange(rates.size), rng.poisson(rates * horizon))
    times = rng.random(rows.size) * horizon
    order = np.lexsort((times, rows))
    return rows, times[order]


def known(history: History) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return change rates, recalls and false signal rates of a history that has them."""
    change_rate, recall, false = history.change_rate, history.recall, history.false_signal_rate
    assert change_rate is not None
    assert recall is not None
    assert false is not None
    return change_rate, recall, false


def crawl_by(
    policy: str, history: History, horizon: float, bandwidth: float = BANDWIDTH, signal_delay: float = 0.0
) -> Replayed:
    """Let a policy that knows all rates crawl a history from 0 to the horizon."""
    if policy in _DEAF:
        history = replace(history, signal_rows=None, signal_times=None)
    return replay(history, bandwidth, POLICIES[policy], "known", start=0.0, end=horizon, signal_delay=signal_delay)


def optimal_rates(history: History) -> FloatArray:
    """Return the crawl rates of the optimal continuous policy that ignores announcements."""
    return refresh_rates(known(history)[0], history.importance, BANDWIDTH).rates


def baseline(history: History) -> float:
    """Return the accuracy of the optimal continuous policy, by the formula in section 6.2."""
    return expected_freshness(optimal_rates(history), known(history)[0], history.importance)
