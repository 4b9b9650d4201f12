"""Policies by name, and which estimators each can be asked to use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crawlsched.simulation.arm import Arm, Setting
from crawlsched.simulation.history import History, ReplayError, Window
from crawlsched.simulation.plan_arms import DIVISIONS, AtRandom, LowDiscrepancy, MostOverdue, Order, PlannedRates
from crawlsched.simulation.planner_arm import PlannerArm
from crawlsched.simulation.rates import ESTIMATORS, GivenRates, Rates, learned_rates
from crawlsched.simulation.simple_arms import (
    AdaptiveIntervals,
    RoundRobin,
    nutch_interval,
    same_interval,
    stormcrawler_interval,
)

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
)
#: What `estimator` may be: an estimator, ``known`` (the history's columns) or ``hindsight`` (changes by life).
ESTIMATOR_NAMES = (*ESTIMATORS, "known", "hindsight")

_WITHOUT_RATES = ("round_robin", "uniform", "nutch", "stormcrawler")
_INTERVALS = {"uniform": same_interval, "nutch": nutch_interval, "stormcrawler": stormcrawler_interval}
_ORDERS: dict[str, Callable[[Setting], Order]] = {"lds": LowDiscrepancy, "poisson": AtRandom}
_OF_PAPERS = tuple(name for name in POLICIES if name.startswith("greedy"))
_GIVEN = ("known", "hindsight")
# For the policy posterior: its own posterior, told at each visit when the page was modified.
_DATED = "last_modified"


def default_estimator(policy: str) -> str | None:
    """Return the estimator that a policy uses if none is named; None for those that need no rates.

    Examples
    --------
    >>> default_estimator("posterior"), default_estimator("harmonic"), default_estimator("round_robin")
    ('posterior', 'gamma_posterior', None)
    """
    if policy in _WITHOUT_RATES:
        return None
    return "posterior" if policy in (*_OF_PAPERS, "posterior") else "gamma_posterior"


def make_arm(
    history: History,
    window: Window,
    bandwidth: float,
    policy: str,
    estimator: str | None,
    seed: int,
    signal_delay: float = 0.0,
) -> tuple[Arm, str | None]:
    """Return the arm for a policy, and the estimator that it does use."""
    _check(policy, estimator)
    used = None if policy in _WITHOUT_RATES else estimator or default_estimator(policy)
    is_dated = policy == "posterior" and used == _DATED
    by_itself = is_dated or (used == "posterior" and policy not in DIVISIONS)
    setting = _setting(history, window, bandwidth, used, seed, by_itself)
    if policy == "round_robin":
        return RoundRobin(setting), used
    if policy in _INTERVALS:
        return AdaptiveIntervals(setting, _INTERVALS[policy]), used
    if policy in DIVISIONS and setting.rates is not None:
        order = _ORDERS.get(policy, MostOverdue)(setting)
        return PlannedRates(setting, DIVISIONS[policy], order, setting.rates), used
    # A posterior without any uncertainty left is the noisy-signals rule with known rates.
    rule = "greedy_ncis" if policy == "posterior" and used in _GIVEN else policy
    return PlannerArm(setting, rule, signal_delay, is_dated=is_dated), used


def _check(policy: str, estimator: str | None) -> None:
    if policy not in POLICIES:
        raise ReplayError(f"policy must be one of {', '.join(POLICIES)}, got {policy!r}.")
    if estimator is not None and estimator not in ESTIMATOR_NAMES:
        raise ReplayError(f"estimator must be one of {', '.join(ESTIMATOR_NAMES)}, got {estimator!r}.")
    if policy == "posterior" and estimator not in (None, "posterior", _DATED, *_GIVEN):
        raise ReplayError(
            f"estimator must be posterior, last_modified, known or hindsight for the policy {policy}, which needs what "
            f"is still possible and not one number, got {estimator!r}; --policy greedy takes every estimator."
        )


def _setting(
    history: History, window: Window, bandwidth: float, used: str | None, seed: int, by_itself: bool
) -> Setting:
    begins, ends = history.lives(window)
    duration = window.end - window.start
    # Pages there on average; at least one, so that there is a rate.
    n_there = max(float(np.maximum(ends - begins, 0.0).sum()) / duration, 1.0)
    even_rate = bandwidth / n_there
    n_pages = history.page.size
    recall = false = None
    rates: Rates | None = None
    if used == "known":
        if history.change_rate is None:
            raise ReplayError("estimator known needs the column change_rate (per second) in the file of pages.")
        rates = GivenRates(history.change_rate)
        recall = history.recall if history.recall is not None else np.zeros(n_pages)
        false = history.false_signal_rate if history.false_signal_rate is not None else np.zeros(n_pages)
    elif used == "hindsight":
        rates = GivenRates(history.hindsight_rates(window))
        recall = false = np.zeros(n_pages)
    elif used is not None and not by_itself:
        rates = learned_rates(used, n_pages, even_rate, duration)
    has_signals = history.signal_rows is not None
    return Setting(history.importance, bandwidth, window, even_rate, rates, recall, false, has_signals, seed)
