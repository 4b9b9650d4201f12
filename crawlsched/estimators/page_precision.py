"""How far announcements of one page's changes can be trusted: a Beta variable, and what visits teach of it."""

from __future__ import annotations

from math import log

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray

__all__ = ["expected_evidence", "expected_evidences", "fit_strength", "judged"]


# So many announcements are taken factor by factor, further ones by Stirling's series, good to 1e-10 from there on.
_FACTORS = 32
# Up to so many pages plain Python is faster than numpy.
_FEW = 8
# Nothing is known better than by so many announcements: beyond, a variance would be lost to rounding.
_MOST = 1e6
_LEAST_CHANCE = 1e-12
# Strengths that are looked at, in announcements; before pages have shown anything their logarithm is normal.
_STRENGTHS: FloatArray = np.geomspace(0.5, 512.0, 21)
_USUAL_STRENGTH, _SPREAD_OF_STRENGTHS = 4.0, 1.5


def expected_evidence(true: float, false: float, n_signals: float) -> float:
    """Return what announcements take off the log-probability of freshness: -log E[(1 - p)^n] for p ~ Beta(true, false).

    Parameters
    ----------
    true, false : float
        The page's announcements so far, and those that its source counts for; above 0.
    n_signals : float
        Announcements now, a whole number.

    Returns
    -------
    float
        Nats. n announcements are worth less than n times one: if the first was false, the next one is likely to be.

    Examples
    --------
    >>> [round(expected_evidence(1.0, 1.0, n), 3) for n in (1, 2, 10)]
    [0.693, 1.099, 2.398]
    """
    both, fresh = true + false, 1.0
    for i in range(int(min(n_signals, _FACTORS))):
        fresh *= (false + i) / (both + i)
    # numpy's logarithm here too, so that one page and many agree to the last bit.
    evidence = -float(np.log(fresh))
    return evidence + _of_further(true, false, n_signals) if n_signals > _FACTORS else evidence


def expected_evidences(true: FloatArray, false: FloatArray, n_signals: FloatArray) -> FloatArray:
    """Return what `expected_evidence` returns, to the last bit, for many pages."""
    if true.size <= _FEW:
        columns = true.tolist(), false.tolist(), n_signals.tolist()
        return np.array([expected_evidence(*of_one) for of_one in zip(*columns, strict=True)])
    both, fresh = true + false, np.ones(true.size)
    for i in range(int(min(n_signals.max(initial=0.0), _FACTORS))):
        np.multiply(fresh, (false + i) / (both + i), out=fresh, where=n_signals > i)
    evidence: FloatArray = -np.log(fresh)
    for row in np.flatnonzero(n_signals > _FACTORS).tolist():
        evidence[row] += _of_further(true.item(row), false.item(row), n_signals.item(row))
    return evidence


def _of_further(true: float, false: float, n_signals: float) -> float:
    """Return what the announcements beyond the first 32 add to `expected_evidence`."""
    both = true + false
    first = _stirling(false + _FACTORS) - _stirling(both + _FACTORS)
    # Of hundreds of millions only rounding would be left.
    return max(first - _stirling(false + n_signals) + _stirling(both + n_signals), 0.0)


def _stirling(x: float) -> float:
    """Return the logarithm of the Gamma function, but for a constant."""
    return (x - 0.5) * log(x) - x + (1.0 - 1.0 / (30.0 * x * x)) / (12.0 * x)


def judged(true: float, false: float, n_signals: float, known: float, fresh: float) -> tuple[float, float]:
    """Return the distribution of a page's precision after a visit.

    Parameters
    ----------
    true, false : float
        Before it the precision p was Beta(true, false); above 0.
    n_signals : float
        Announcements since the visit before, above 0.
    known, fresh : float
        What the visit found had the probability known + fresh (1 - p)^n: (0, f) for an unchanged page and (1, -f) for a
        changed one, if f is the probability that there was no change but what these announcements may tell of.

    Returns
    -------
    tuple of float
        (true, false) after it.

    Notes
    -----
    An unchanged page was announced n times without reason, and Bayes' rule gives Beta(true, false + n). After a change
    the posterior is no Beta distribution, since the change may be one that nobody announced; it is replaced by the one
    with the same mean and variance (assumed-density filtering [1]_). Both have closed forms, the moments of 1 - p being
    E[(1 - p)^j] = Π_{i<j} (false + i)/(true + false + i).

    References
    ----------
    .. [1] Maybeck (1982), "Stochastic models, estimation and control", volume 2, section 12.3; Opper (1998), "A
       Bayesian approach to on-line learning".

    Examples
    --------
    A change that nothing else explains has proved the announcement true; one that would have come anyway says nothing:

    >>> judged(1.0, 1.0, 1.0, known=1.0, fresh=-1.0)
    (2.0, 1.0)
    >>> judged(1.0, 1.0, 1.0, known=1.0, fresh=0.0)
    (1.0, 1.0)
    >>> judged(1.0, 1.0, 3.0, known=0.0, fresh=0.5)
    (1.0, 4.0)
    """
    if known == 0.0:
        return true, false + n_signals
    both = true + false
    if both > _MOST:
        return true, false
    none = float(np.exp(-expected_evidence(true, false, n_signals)))
    once = none * (false + n_signals) / (both + n_signals)
    twice = once * (false + n_signals + 1.0) / (both + n_signals + 1.0)
    chance = known + fresh * none
    if chance < _LEAST_CHANCE:
        return true, false
    mean = (known * false / both + fresh * once) / chance
    square = (known * false * (false + 1.0) / (both * (both + 1.0)) + fresh * twice) / chance
    variance = square - mean * mean
    if not (0.0 < mean < 1.0 and 0.0 < variance < mean * (1.0 - mean)):
        return true, false
    both = min(mean * (1.0 - mean) / variance - 1.0, _MOST)
    return both * (1.0 - mean), both * mean


def fit_strength(true: npt.ArrayLike, false: npt.ArrayLike, precision: npt.ArrayLike) -> float:
    """Return for how many announcements what is known of a source counts when its pages' precision is estimated.

    Parameters
    ----------
    true, false : array_like, shape (n,)
        Announcements of each page that visits judged, as `judged` adds them up.
    precision : array_like
        Mean precision of pages like each of them; between 0 and 1, neither included.

    Returns
    -------
    float
        From 0.5 to 512: many where the pages are alike, few where they differ.

    Notes
    -----
    With p ~ Beta(s m, s (1 - m)) the counts are beta-binomial, and the strength s is that of greatest posterior
    probability, its logarithm being normal around that of 4 with a deviation of 1.5 (empirical Bayes). Biased upwards
    where visits judged few announcements of each page: pages about which little is known look alike.

    Examples
    --------
    >>> fit_strength([10, 0, 10, 0], [0, 10, 0, 10], 0.5) < 1 < 100 < fit_strength([50] * 99, [50] * 99, 0.5)
    True
    """
    found, wrong = (np.asarray(column, np.float64)[np.newaxis] for column in (true, false))
    mean, strength = np.asarray(precision, np.float64)[np.newaxis], _STRENGTHS[:, np.newaxis]
    likelihood = log_gamma(found + strength * mean) - log_gamma(np.asarray(strength * mean))
    likelihood += log_gamma(wrong + strength * (1 - mean)) - log_gamma(np.asarray(strength * (1 - mean)))
    likelihood += log_gamma(strength) - log_gamma(found + wrong + strength)
    prior = -0.5 * (np.log(_STRENGTHS / _USUAL_STRENGTH) / _SPREAD_OF_STRENGTHS) ** 2
    return float(_STRENGTHS[int(np.argmax(likelihood.sum(axis=1) + prior))])


def log_gamma(x: FloatArray) -> FloatArray:
    """Return the logarithm of the Gamma function but for a constant, to about 1e-7; x above 0."""
    # Γ(x) = Γ(x + 4)/(x (x + 1) (x + 2) (x + 3)), and Stirling's series from 4 on.
    shifted = x + 4.0
    series = (1.0 - 1.0 / (30.0 * shifted * shifted)) / (12.0 * shifted)
    found: FloatArray = (shifted - 0.5) * np.log(shifted) - shifted + series
    found -= np.log(x * (x + 1.0) * (x + 2.0) * (x + 3.0))
    return found
