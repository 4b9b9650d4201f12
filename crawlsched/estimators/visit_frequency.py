"""How often to visit a page in order to learn its change rate, and how far off the estimate then is."""

import math

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray

__all__ = [
    "BEST_FREQUENCY_RATIO",
    "best_frequency_ratio",
    "best_visit_interval",
    "bias_reduced_moments",
    "bias_reducing_addend",
    "naive_moments",
]

#: Changes per visit at which a visit teaches most, "r ≈ 1.5" (Cho and Garcia-Molina 2003, section 4.2, Figure 7).
BEST_FREQUENCY_RATIO = 1.5

# The root of r e^r = 2 (e^r - 1).
_MOST_TELLING = 1.5936242600400401


def naive_moments(frequency_ratio: npt.ArrayLike, n_visits: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of X/n, the naive estimate of the changes between two visits.

    Parameters
    ----------
    frequency_ratio : array_like
        True changes between two regular visits (r, the paper's λ/f).
    n_visits : int
        Number of visits.

    Returns
    -------
    mean, deviation : ndarray
        1 - e^{-r} and sqrt(e^{-r} (1 - e^{-r}) / n).

    Notes
    -----
    Theorem 4.1 and Corollary 4.2 of Cho and Garcia-Molina (2003); their Figures 3 and 4 show mean/r and deviation/r.

    Examples
    --------
    The paper's Example 3: visited every two weeks, a page that changes weekly comes out 57 % too slow.

    >>> mean, _ = naive_moments(2.0, 10)
    >>> round(float(1 - mean / 2.0), 2)
    0.57
    """
    found = -np.expm1(-np.asarray(frequency_ratio, dtype=np.float64))
    return found, np.sqrt((1 - found) * found / n_visits)


def bias_reduced_moments(frequency_ratio: npt.ArrayLike, n_visits: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of -log((n - X + 0.5) / (n + 0.5)), the bias-reduced estimate of the same.

    Parameters
    ----------
    frequency_ratio : array_like
        True changes between two regular visits (r).
    n_visits : int
        Number of visits.

    Returns
    -------
    mean, deviation : ndarray
        Equation (1) of Cho and Garcia-Molina (2003), and the root of the like for the square.

    Notes
    -----
    Their Figures 5 and 7 show mean/r and deviation/r.

    Examples
    --------
    >>> mean, deviation = bias_reduced_moments(1.5, 10)
    >>> round(float(mean / 1.5), 3), round(float(deviation / 1.5), 2)
    (0.997, 0.4)
    """
    ratio = np.asarray(frequency_ratio, dtype=np.float64)
    kept = np.arange(n_visits + 1)
    # log of the binomial coefficients, in a form that does not overflow
    choose = np.array([math.lgamma(n_visits + 1) - math.lgamma(k + 1) - math.lgamma(n_visits - k + 1) for k in kept])
    found = np.maximum(-np.expm1(-ratio), 1e-300)[..., np.newaxis]
    chances = np.exp(choose + (n_visits - kept) * np.log(found) - kept * ratio[..., np.newaxis])
    estimates = -np.log((kept + 0.5) / (n_visits + 0.5))
    mean = (chances * estimates).sum(axis=-1)
    return mean, np.sqrt((chances * (estimates - mean[..., np.newaxis]) ** 2).sum(axis=-1))


def best_frequency_ratio(n_visits: int) -> float:
    """Return the changes between two visits at which the bias-reduced estimate is most precise.

    Parameters
    ----------
    n_visits : int
        Number of visits, at least 2.

    Returns
    -------
    float
        From 18 visits on where deviation/r has its first minimum, within 0.001; for ever more visits that comes to the
        root of r e^r = 2 (e^r - 1), which is 1.594. For fewer it is this root.

    Notes
    -----
    Below 18 visits deviation/r has no minimum: it falls as r grows, because ever more often all visits find a change
    and the estimate is the same, log(2n + 1), whatever r. That is precise and wrong. What a visit tells of log r, its
    Fisher information r² e^{-r} / (1 - e^{-r}), is greatest at the root for any number of visits.

    Examples
    --------
    "When n = 20, σ/r is minimum when r ≈ 1.35", and at r ≈ 1.5 for other n:

    >>> round(best_frequency_ratio(20), 2), round(best_frequency_ratio(80), 2), round(best_frequency_ratio(5), 3)
    (1.35, 1.52, 1.594)
    """
    if n_visits < 2:
        raise ValueError(f"n_visits must be at least 2, got {n_visits!r}.")
    ratios = np.arange(0.05, 3.0, 0.001)
    variation = bias_reduced_moments(ratios, n_visits)[1] / ratios
    rising = np.flatnonzero(np.diff(variation) > 0)
    return float(ratios[rising[0]]) if rising.size else _MOST_TELLING


def bias_reducing_addend(n_visits: npt.ArrayLike) -> FloatArray:
    """Return the a for which -log((n - X + a) / (n + a)) is unbiased where changes are rare; 0.5 in the end.

    Parameters
    ----------
    n_visits : array_like
        Number of visits, at least 1.

    Returns
    -------
    ndarray
        The solution of n log((n + a) / (n - 1 + a)) = 1: 1 / (e^{1/n} - 1) - (n - 1).

    Notes
    -----
    Figure 19 of Cho and Garcia-Molina (2003), from which `BiasReduced` has its 0.5.

    Examples
    --------
    >>> bias_reducing_addend([1, 2, 10, 100]).round(3)
    array([0.582, 0.541, 0.508, 0.501])
    """
    n = np.asarray(n_visits, dtype=np.float64)
    addend: FloatArray = 1.0 / np.expm1(1.0 / n) - (n - 1.0)
    return addend


def best_visit_interval(change_rate: npt.ArrayLike, frequency_ratio: float = BEST_FREQUENCY_RATIO) -> FloatArray:
    """Return how long to wait between visits in order to learn a change rate with as few of them as possible.

    Parameters
    ----------
    change_rate : array_like
        Changes per second, as guessed beforehand; positive.
    frequency_ratio : float, default 1.5
        Changes between two visits.

    Returns
    -------
    ndarray
        Seconds.

    Examples
    --------
    The paper's Example 4: a page thought to change weekly is to be visited every ten days.

    >>> week = 604_800.0
    >>> float(best_visit_interval(1 / week)) / 86_400
    10.5
    """
    rates = np.asarray(change_rate, dtype=np.float64)
    if not ((rates > 0) & (rates < np.inf)).all():
        raise ValueError(f"change_rate must be changes per second above 0 and finite, got {change_rate!r}.")
    interval: FloatArray = frequency_ratio / rates
    return interval
