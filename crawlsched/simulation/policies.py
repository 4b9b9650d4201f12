"""Policies by name, and the estimators that each can use."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.estimators import LearnedRates
from crawlsched.estimators.learned_rates import POINT_ESTIMATORS
from crawlsched.simulation.arms import (
    INTERVALS,
    AdaptiveIntervals,
    Arm,
    ArmSetting,
    PosteriorRates,
    RoundRobinArm,
)
from crawlsched.simulation.brute_force import BruteForce, Judged, listens
from crawlsched.simulation.history import History, SimulationError, Window
from crawlsched.simulation.plan_arms import DIVISIONS, AtRandom, LowDiscrepancy, Planned
from crawlsched.simulation.planner_arm import PlannerArm

__all__ = ["ESTIMATOR_NAMES", "POLICIES", "default_estimator", "make_arm"]

#: All policies.
POLICIES = (
    "round_robin",
    "uniform",
    "proportional",
    "square_root",
    "lds",
    "poisson",
    "harmonic",
    "nutch",
    "stormcrawler",
    "greedy",
    "greedy_cis",
    "greedy_ncis",
    "greedy_cis_plus",
    "greedy_ncis_approx_1",
    "greedy_ncis_approx_2",
    "posterior",
    "frontier",
)
#: The names that `estimator` may have. ``known`` takes the history's columns of rates, and ``hindsight`` divides the
#: number of each page's changes by its time of life.
ESTIMATOR_NAMES = (*POINT_ESTIMATORS, "posterior", "known", "hindsight")

_ORDERS: dict[str, type[Planned]] = {"lds": LowDiscrepancy, "poisson": AtRandom}
_GIVEN = ("known", "hindsight")
# With this estimator, the policy `posterior` learns as usual, and also from the date of modification at each visit.
_DATED = "last_modified"


def default_estimator(policy: str) -> str | None:
    """Return the estimator that a policy uses if none is named; None if the policy needs no rates.

    >>> default_estimator("posterior"), default_estimator("harmonic"), default_estimator("round_robin")
    ('posterior', 'gamma_posterior', None)
    """
    if policy in ("round_robin", *INTERVALS):
        return None
    return "hindsight" if policy == "frontier" else "gamma_posterior" if policy in DIVISIONS else "posterior"


def make_arm(
    history: History,
    window: Window,
    bandwidth: float,
    policy: str,
    estimator: str | None,
    seed: int,
    signal_delay: float = 0.0,
) -> tuple[Arm, str | None]:
    """Return the arm for a policy, and the estimator that it uses."""
    _check(policy, estimator)
    used = default_estimator(policy) and (estimator or default_estimator(policy))
    setting = _setting(history, window, bandwidth, policy, used, seed, signal_delay)
    if policy == "round_robin":
        return RoundRobinArm(setting), used
    if policy in INTERVALS:
        return AdaptiveIntervals(setting, policy), used
    if policy == "frontier":
        return Judged(PlannerArm(setting, "greedy_ncis"), BruteForce(setting, "greedy_ncis")), used
    if policy in DIVISIONS:
        return _ORDERS.get(policy, Planned)(setting, policy), used
    if used in _GIVEN or (setting.learned is not None and not (setting.has_signals and listens(policy))):
        # Without uncertainty about rates, the policy `posterior` is the noisy-signals rule with known rates.
        return BruteForce(setting, "greedy_ncis" if policy == "posterior" else policy), used
    # The planner learns the quality of announcements with each of its plans.
    return PlannerArm(setting, policy, is_dated=used == _DATED), used


def _check(policy: str, estimator: str | None) -> None:
    if policy not in POLICIES:
        raise SimulationError(f"policy must be one of {', '.join(POLICIES)}, got {policy!r}.")
    if estimator is not None and estimator not in ESTIMATOR_NAMES:
        raise SimulationError(f"estimator must be one of {', '.join(ESTIMATOR_NAMES)}, got {estimator!r}.")
    if policy == "frontier" and estimator not in (None, *_GIVEN):
        raise SimulationError(f"estimator must be known or hindsight for the policy frontier, got {estimator!r}.")
    if policy == "posterior" and estimator not in (None, "posterior", _DATED, *_GIVEN):
        raise SimulationError(
            f"estimator must be posterior, last_modified, known or hindsight for the policy {policy}, which needs a "
            f"distribution of rates and not one number, got {estimator!r}; --policy greedy takes every estimator."
        )


def _setting(
    history: History, window: Window, bandwidth: float, policy: str, used: str | None, seed: int, signal_delay: float
) -> ArmSetting:
    begins, ends = history.lives(window)
    duration = window.end - window.start
    # The mean number of pages that are there; at least one, so that the rate is finite.
    n_there = max(float(np.maximum(ends - begins, 0.0).sum()) / duration, 1.0)
    even_rate = bandwidth / n_there
    n_pages = history.page.size
    recall = false = None
    known: FloatArray | None = None
    learned: LearnedRates | PosteriorRates | None = None
    if used == "known":
        if history.change_rate is None:
            raise SimulationError("estimator known needs the column change_rate (per second) in the file of pages.")
        known = history.change_rate
        recall = history.recall if history.recall is not None else np.zeros(n_pages)
        false = history.false_signal_rate if history.false_signal_rate is not None else np.zeros(n_pages)
    elif used == "hindsight":
        known = history.hindsight_rates(window)
        recall = false = np.zeros(n_pages)
    elif used == "posterior" and policy in DIVISIONS:
        learned = PosteriorRates(n_pages, even_rate, duration)
    elif used in POINT_ESTIMATORS and policy != "posterior":
        learned = LearnedRates(used, n_pages, even_rate)
    heard = history.signal_rows is not None
    importance = history.importance
    return ArmSetting(
        importance, bandwidth, window, even_rate, known, learned, recall, false, heard, seed, signal_delay
    )
