"""Problem instances of the noisy-signals paper: pages with random rates, their changes and announcements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.simulation.figures.distributions import Beta, Uniform
from crawlsched.simulation.history import History

__all__ = ["Instances", "history_of", "poisson_events"]

UNIT = Uniform(0.0, 1.0)


@dataclass(frozen=True)
class Instances:
    """How instances are drawn (section 6.1).

    Attributes
    ----------
    change_rate, importance : Uniform
        Δ and μ of each page.
    recall : Beta or None
        λ: the probability that a change is announced; None where nothing is announced.
    false_signal_rate : Uniform or None
        ν; None where nothing false is announced.
    """

    change_rate: Uniform = UNIT
    importance: Uniform = UNIT
    recall: Beta | None = None
    false_signal_rate: Uniform | None = None

    def words(self) -> dict[str, str]:
        """Say what is drawn from what."""
        said = {"change rates": self.change_rate, "importances": self.importance}
        if self.recall is not None:
            said |= {"recalls": self.recall, "false signal rates": self.false_signal_rate or 0}  # type: ignore[dict-item]
        return {name: str(value) for name, value in said.items()}

    def draw(self, rng: np.random.Generator, n_pages: int, horizon: float) -> History:
        """Draw an instance, and what happens in it from 0 to the horizon."""
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
    """Draw what happens to pages from 0 to the horizon; None where nothing is announced, or nothing false.

    Changes, those announced among them, and false announcements come as independent Poisson processes.
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
    """Return row and time of the events of independent Poisson processes from 0 to the horizon, by row and time.

    Examples
    --------
    >>> rows, times = poisson_events(np.random.default_rng(1), np.array([0.0, 2.0]), 1000.0)
    >>> np.bincount(rows), bool((np.diff(times) >= 0).all())
    (array([   0, 2001]), True)
    """
    rows = np.repeat(np.arange(rates.size), rng.poisson(rates * horizon))
    times = rng.random(rows.size) * horizon
    order = np.lexsort((times, rows))
    return rows, times[order]
