"""What the online estimators of Avrachenkov et al. are given: crawl rates, and step sizes checked by the theorems."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.observations import check_positive, per_page
from crawlsched.estimators.visit_counts import ratio

__all__ = [
    "OutsideTheorem",
    "check_crawl_rate",
    "check_initial",
    "check_momentum_steps",
    "check_steps",
    "crawl_rates",
    "step_size",
]


class OutsideTheorem(UserWarning):
    """Step sizes that are allowed and may work well, but for which convergence is not proved."""


def step_size(visits: FloatArray, exponent: float) -> FloatArray:
    """Return (k + 1)^-exponent for k visits before this one."""
    sizes: FloatArray = (visits + 1.0) ** -exponent
    return sizes


def check_steps(eta: float) -> float:
    """Return the exponent of η_k = (k + 1)^-eta, checked against Theorem 2 of Avrachenkov et al.

    Steps that do not shrink, or that stop the estimate on the way, raise ValueError; steps for which only convergence
    in the mean is proved give an `OutsideTheorem` warning.
    """
    exponent = check_positive(eta, "eta", "an exponent")
    if exponent > 1:
        raise ValueError(
            f"eta must be above 0 and at most 1, got {eta!r}: with a finite sum of steps the estimate stops on the way."
        )
    if exponent <= 0.5:
        _warn(
            f"eta = {eta:g} is at most 0.5, so that the sum of squared steps is infinite: Theorem 2 gives convergence "
            "in the mean only, at rate k^(-eta/2)."
        )
    return exponent


def check_momentum_steps(eta: float, beta: float, omega: float) -> tuple[float, float, float]:
    """Return eta, beta and omega of (10), checked against Theorem 3 of Avrachenkov et al.

    Steps that cannot converge raise ValueError. An `OutsideTheorem` warning says that neither case of the theorem
    holds: 1/2 < beta <= 1 with eta = 2 beta, or with beta + 1/2 < eta < 2 beta.
    """
    eta, beta = check_positive(eta, "eta", "an exponent"), check_positive(beta, "beta", "an exponent")
    omega = check_positive(omega, "omega", "a factor")
    if omega > 2:
        raise ValueError(f"omega must be above 0 and at most 2, got {omega!r}: the first steps would overshoot.")
    if beta > 1:
        raise ValueError(f"beta must be above 0 and at most 1, got {beta!r}: the estimate would stop on the way.")
    if not beta <= eta <= beta + 1:
        raise ValueError(
            f"eta must lie between beta and beta + 1 ({beta:g} and {beta + 1:g}), got {eta!r}: "
            "the steps eta_k / beta_k must neither grow nor have a finite sum."
        )
    if eta == beta and omega == 1:
        check_steps(eta)  # without momentum: plain stochastic approximation
    elif eta > 2 * beta:
        _warn(f"eta = {eta:g} is above 2 beta = {2 * beta:g}: Theorem 3 says nothing about it.")
    elif beta <= 0.5 or (eta <= beta + 0.5 and eta != 2 * beta):
        _warn(
            f"eta = {eta:g}, beta = {beta:g} lie outside Theorem 3 (1/2 < beta <= 1 and beta + 1/2 < eta <= 2 beta): "
            "that they converge is a conjecture of the paper's, for beta < eta."
        )
    return eta, beta, omega


def check_initial(initial_change_rate: float) -> float:
    """Return where an online estimator starts, or raise `ValueError`."""
    rate = float(initial_change_rate)
    if not 0 <= rate < np.inf:
        raise ValueError(
            f"initial_change_rate must be changes per second, 0 or above and finite, got {initial_change_rate!r}."
        )
    return rate


def _warn(message: str) -> None:
    warnings.warn(message, OutsideTheorem, stacklevel=4)


def check_crawl_rate(crawl_rate: npt.ArrayLike | None, n: int) -> FloatArray:
    """Return one crawl rate per page, NaN where it is learned, or raise `ValueError`."""
    rates = per_page(np.nan if crawl_rate is None else crawl_rate, n, "crawl_rate")
    wrong = ~(np.isnan(rates) | ((rates > 0) & (rates < np.inf)))
    if wrong.any():
        raise ValueError(f"crawl_rate must be crawls per second above 0 and finite, got {rates[wrong][0]}.")
    return rates


def crawl_rates(columns: Mapping[str, npt.NDArray[Any]], pages: IndexArray) -> FloatArray:
    """Return crawl rates of pages: the known one, or visits by time where that is NaN; 0 before the first visit."""
    known = columns["known_crawl_rate"][pages]
    learned = ratio(columns["visits"][pages], columns["time"][pages])
    return np.where(np.isnan(known), learned, known)
