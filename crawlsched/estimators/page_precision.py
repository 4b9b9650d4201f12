"""How far announcements of one page's changes can be trusted: a Beta variable, and what visits teach of it."""

from __future__ import annotations

from math import log

import numpy as np

from crawlsched.columns.array_types import FloatArray

__all__ = ["expected_evidence", "expected_evidences", "judged"]


# So many announcements are taken factor by factor, further ones by Stirling's series, good to 1e-10 from there on.
_FACTORS = 32
# Up to so many pages plain Python is faster than numpy.
_FEW = 8
# Nothing is known better than by so many announcements: beyond, a variance would be lost to rounding.
_MOST = 1e6
_LEAST_CHANCE = 1e-12


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
    before = np.arange(min(n_signals.max(initial=0.0), _FACTORS))[:, np.newaxis]
    factors = (false + before) / (true + false + before)
    factors[before >= n_signals] = 1.0
    # Row by row, in the order of one page.
    evidence: FloatArray = -np.log(np.multiply.reduce(factors, axis=0))
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
