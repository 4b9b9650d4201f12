"""The 95 % interval of a source's recall, the share of changes that it announces."""

from sys import float_info

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.estimators.page_precision import EXTREME
from crawlsched.estimators.signal_fit import DROP_95, NORMAL_95, SignalFit
from crawlsched.estimators.signal_quality import SignalQuality

__all__ = ["recall_interval"]

# The grid of λ, a page's true announcements per second, in multiples of the mean rate of all announcements.
_RATES: FloatArray = np.geomspace(1e-3, 50.0, 32)
# The grid of φ, the unannounced changes for each announced change.
_ODDS: FloatArray = np.geomspace(1e-4, 1e3, 128)


def recall_interval(
    pages: npt.ArrayLike,
    elapsed: npt.ArrayLike,
    n_signals: npt.ArrayLike,
    changed: npt.ArrayLike,
    fit: SignalFit | None = None,
    iterations: int = 50,
) -> tuple[float, float, float] | None:
    """Return the recall of greatest likelihood and its 95 % interval, from visits of pages of one source.

    Return None if nothing was announced, or if an announcement preceded every visit. `fit` is `SignalQuality.fit` of
    these visits, if it has been computed already. `iterations` is the number of rounds of expectation-maximisation.

    Notes
    -----
    In the model, all pages of a source have the same recall, but their change rates differ. A page with true
    announcements at the rate λ then has unannounced changes at the rate φ λ, and recall is 1 / (1 + φ). Only visits
    that no announcement preceded are evidence of φ, since unannounced changes do not depend on announcements. A crawl
    that follows announcements makes few such visits to pages that change often, so each page's λ has to be estimated.
    The distribution of λ follows from the number of the page's announcements, which has a Poisson distribution. Its
    prior is the distribution over the source's pages (expectation-maximisation over a grid). False announcements come
    at one rate, which follows from the precision [1]_. The interval comes from the likelihood of φ. It is wider by the
    errors of two other estimates: the rate and the precision of announcements.

    References
    ----------
    .. [1] Busa-Fekete et al. (2025), "Scalable crawling with noisy change-indicating signals", appendix E.

    Examples
    --------
    Pages that change fast and slowly, visited as soon as a change is announced or after ten seconds:

    >>> rng = np.random.default_rng(1)
    >>> pages = rng.integers(0, 50, 4000)
    >>> rates = rng.lognormal(np.log(0.05), 1.0, 50)[pages]
    >>> told = rng.exponential(1 / (0.6 * rates))
    >>> elapsed = np.minimum(told, 10.0)
    >>> changed = (told < 10.0) | (rng.random(4000) < 1 - np.exp(-0.4 * rates * elapsed))
    >>> _, low, high = recall_interval(pages, elapsed, told < 10.0, changed)
    >>> bool(low < 0.6 < high), round(high - low, 1)
    (True, 0.1)
    """
    numbers, page = np.unique(np.asarray(pages), return_inverse=True)
    times, counts = np.asarray(elapsed, np.float64), np.asarray(n_signals, np.float64)
    found, silent = np.asarray(changed, bool), counts == 0
    if silent.all() or not silent.any():
        return None
    mean_rate = counts.sum() / times.sum()
    rates = mean_rate * _RATES
    fit = fit or SignalQuality.fit(times, counts, found)
    false_rate = mean_rate * (1.0 - fit.precision)
    announced, watched = (np.bincount(page, column, numbers.size).astype(np.float64) for column in (counts, times))
    weights = _distributions(announced, watched, rates, false_rate, iterations)
    seen, unseen = silent & found, silent & ~found
    quiet = np.bincount(page[unseen], times[unseen], numbers.size).astype(np.float64)
    likely = [_log_likelihood(odds * rates, weights, page[seen], times[seen], quiet) for odds in _ODDS.tolist()]
    best, missing = int(np.argmax(likely)), max(likely) - DROP_95 - np.array(likely)
    with np.errstate(divide="ignore"):
        below, above = np.abs(np.log(fit.precision_interval) - np.log(max(fit.precision, EXTREME)))
    counted = NORMAL_95 / np.sqrt(counts.sum())
    low = _edge(missing[best:], _ODDS[best:], float(np.hypot(counted, below)), np.inf)
    high = _edge(missing[best::-1], _ODDS[best::-1], float(np.hypot(counted, above)), 0.0)
    # At either end of the scale there is no evidence against a recall of 1, or of 0.
    odds = {0: 0.0, _ODDS.size - 1: np.inf}.get(best, float(_ODDS[best]))
    return 1.0 / (1.0 + odds), 1.0 / (1.0 + low), 1.0 / (1.0 + high)


def _distributions(
    announced: FloatArray, watched: FloatArray, rates: FloatArray, false_rate: float, iterations: int
) -> FloatArray:
    """Return how likely each rate of true announcements is for each page, shape (pages, rates)."""
    both = rates + false_rate
    log_likelihood = announced[:, np.newaxis] * np.log(both) - np.outer(watched, both)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    prior = np.full(rates.size, 1.0 / rates.size)
    for _ in range(iterations):
        weights: FloatArray = likelihood * prior
        weights /= weights.sum(axis=1, keepdims=True)
        prior = weights.mean(axis=0)
    return weights


def _log_likelihood(
    rates: FloatArray, weights: FloatArray, page: npt.NDArray[np.intp], changed_after: FloatArray, quiet: FloatArray
) -> float:
    """Return the log-likelihood of the findings of visits without announcements, by rates of unannounced changes."""
    found = -np.outer(quiet, rates)
    np.add.at(found, page, np.log(-np.expm1(-np.outer(changed_after, rates))))
    greatest = found.max(axis=1)
    mean = (weights * np.exp(found - greatest[:, np.newaxis])).sum(axis=1)
    return float((np.log(np.maximum(mean, float_info.min)) + greatest).sum())


def _edge(missing: FloatArray, odds: FloatArray, error: float, end: float) -> float:
    """Go from the best odds towards `end`; return the first odds whose likelihood is too low, or `end`.

    The distance from the best odds is increased by the error of the rate of true announcements, on the scale of
    log(odds).
    """
    out = int((missing > 0).argmax())
    if out == 0:
        return end
    places = np.log(odds)
    distance = float(np.interp(0.0, missing[out - 1 : out + 1], places[out - 1 : out + 1]) - places[0])
    return float(np.exp(places[0] + np.copysign(np.hypot(distance, error), distance)))
