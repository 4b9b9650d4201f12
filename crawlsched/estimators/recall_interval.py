"""The interval of recall: between which bounds the share of changes that a source announces lies."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from crawlsched.estimators.signal_likelihood import MAX_SIGNAL_WEIGHT, Evidence, regularized
from crawlsched.estimators.signal_quality import SignalQuality

__all__ = ["recall_interval"]

# Half the 95 % quantile of the chi-squared distribution with one degree of freedom, and that of the normal one.
_DROP_95 = 1.9207294103470494
_NORMAL_95 = 1.959963984540054
_GOLDEN = (5**0.5 - 1) / 2
_STEPS = 36
_ALMOST = 1e-6


def recall_interval(
    elapsed: npt.ArrayLike, n_signals: npt.ArrayLike, changed: npt.ArrayLike
) -> tuple[float, float, float]:
    """Return the recall of greatest likelihood, and its 95 % interval.

    Parameters
    ----------
    elapsed : array_like, shape (n,)
        Seconds between two visits of a page.
    n_signals : array_like, shape (n,)
        Announcements in between.
    changed : array_like of bool, shape (n,)
        Whether the second visit found a change.

    Returns
    -------
    recall, low, high : float
        0, 0 and 1 where nothing was announced.

    Notes
    -----
    With the rate of announcements γ, recall is r = γ (1 - e^-κ) / (α + γ (1 - e^-κ)), so that a recall and a signal
    weight κ determine α = γ (1 - e^-κ) (1 - r) / r, and the profile likelihood of r is found by maximizing over κ. γ is
    a count divided by a time, independent of what the visits found; its error, of the relative variance 1 / count, is
    added on the scale of log(r / (1 - r)), where it is a shift.

    References
    ----------
    .. [1] Busa-Fekete et al. (2025), "Scalable crawling with noisy change-indicating signals", appendix E.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> elapsed = rng.exponential(10.0, 4000)
    >>> n_signals = rng.poisson(0.05 * elapsed)
    >>> changed = rng.random(4000) < 1 - np.exp(-(0.02 * elapsed + 1.2 * n_signals))
    >>> recall, low, high = recall_interval(elapsed, n_signals, changed)
    >>> true = 0.05 * (1 - np.exp(-1.2))
    >>> bool(low < true / (0.02 + true) < high), round(high - low, 1)
    (True, 0.1)
    """
    times, counts = np.asarray(elapsed, np.float64), np.asarray(n_signals, np.float64)
    found = np.asarray(changed, bool)
    fit = SignalQuality.fit(times, counts, found, interval=False)
    signals, time = float(counts.sum()), float(times.sum())
    if signals == 0:
        return 0.0, 0.0, 1.0
    evidence = regularized(
        Evidence(
            times[found],
            counts[found],
            np.ones(int(found.sum())),
            float(times[~found].sum()),
            float(counts[~found].sum()),
        )
    )
    best = evidence.log_likelihood(fit.unsignalled_change_rate, fit.signal_weight)
    recall = min(max(fit.recall, _ALMOST), 1 - _ALMOST)

    def is_out(r: float) -> bool:
        return best - _profile(evidence, signals / time, r) > _DROP_95

    low, high = _edge(is_out, recall, 0.0), _edge(is_out, recall, 1.0)
    return fit.recall, _widened(recall, low, signals), _widened(recall, high, signals)


def _profile(evidence: Evidence, signal_rate: float, recall: float) -> float:
    """Return the greatest log-likelihood with this recall, by golden section over the logarithm of κ."""

    def likelihood(log_weight: float) -> float:
        weight = float(np.exp(log_weight))
        rate = -signal_rate * float(np.expm1(-weight)) * (1.0 - recall) / recall
        return evidence.log_likelihood(rate, weight)

    left, right = np.log(1e-5), np.log(MAX_SIGNAL_WEIGHT)
    inner, outer = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    at_inner, at_outer = likelihood(inner), likelihood(outer)
    for _ in range(_STEPS):
        if at_inner > at_outer:
            right, outer, at_outer = outer, inner, at_inner
            inner = right - _GOLDEN * (right - left)
            at_inner = likelihood(inner)
        else:
            left, inner, at_inner = inner, outer, at_outer
            outer = left + _GOLDEN * (right - left)
            at_outer = likelihood(outer)
    return max(at_inner, at_outer)


def _edge(is_out: Callable[[float], bool], inside: float, end: float) -> float:
    """Return where the interval ends between a place inside it and an end of the scale; the end if that is inside."""
    outside = end + (_ALMOST if end == 0.0 else -_ALMOST)
    if not is_out(outside):
        return end
    for _ in range(16):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if is_out(middle) else (middle, outside)
    return outside


def _widened(recall: float, edge: float, signals: float) -> float:
    """Add the error of the announcements' rate to the distance of an edge, on the logistic scale."""
    if edge in (0.0, 1.0):
        return edge
    center, place = (float(np.log(share / (1.0 - share))) for share in (recall, edge))
    distance = float(np.hypot(place - center, _NORMAL_95 / np.sqrt(signals)))
    place = center + (distance if place > center else -distance)
    return float(1.0 / (1.0 + np.exp(-place)))
