"""Readable: what a planner knows of pages in plain numbers, for people who look into the database."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.estimators.probabilities import rate_quantile
from crawlsched.planner.planner import Planner

__all__ = ["INTERVAL", "interval", "readable"]

#: Quantiles of the change rate between which it is with 90 % probability.
INTERVAL = (0.05, 0.95)


def readable(planner: Planner, pages: npt.ArrayLike, now: float) -> dict[str, FloatArray]:
    """Return what is known of pages, nan where nothing is.

    Parameters
    ----------
    planner : Planner
    pages : array_like of int, shape (n,)
        Row numbers.
    now : float
        POSIX seconds.

    Returns
    -------
    dict of ndarray, shape (n,)
        ``change_rate`` (changes per second, announced or not) and the bounds ``change_rate_low`` and
        ``change_rate_high`` of a 90 % interval, nan before the first crawl; ``expected_freshness``, the probability
        that the copy equals the page now; ``precision`` and ``recall`` of its announcements, nan where there were none.
        Rates are those of the estimator, if the planner has one; the interval is the posterior's.

    Examples
    --------
    >>> planner = Planner(bandwidth=1.0)
    >>> pages = planner.add(host=0, now=0.0, n=2)
    >>> _ = planner.crawled(0, 1.0, changed=None)
    >>> _ = planner.crawled(0, 3601.0, changed=True)
    >>> found = readable(planner, pages, 3601.0)
    >>> found["expected_freshness"].tolist(), bool(found["change_rate"][0] > 1 / 7200)
    ([1.0, nan], True)
    """
    rows = np.asarray(pages, np.intp)
    names = ("change_rate", "change_rate_low", "change_rate_high", "expected_freshness", "precision", "recall")
    found = {name: np.full(rows.size, np.nan) for name in names}
    columns = planner.pages
    crawled_at = columns.crawled_at[rows]
    known = np.flatnonzero(crawled_at > -np.inf)
    if not known.size:
        return found
    of, rates = rows[known], planner.posterior.rates
    weights = planner.values.weights(of)
    signal_rate, signal_weight = planner.announcements.signals(of)
    announced = signal_rate * -np.expm1(-signal_weight)
    unsignalled = (weights * rates).sum(axis=1)
    fresh = planner.values.fresh(of, now)
    if planner.learned is not None:
        unsignalled = np.maximum(planner.change_rates(of) - announced, 0.0)
        by_age = np.exp(-unsignalled * np.maximum(now - crawled_at[known], 0.0))
        fresh = by_age * np.exp(-planner.announcements.evidence(of))
    change_rate = unsignalled + announced
    found["change_rate"][known] = change_rate
    found["change_rate_low"][known], found["change_rate_high"][known] = interval(weights, rates) + announced
    found["expected_freshness"][known] = fresh
    told = (columns.n_signals_total[of] > 0) | (columns.further[of] > 0)
    found["precision"][known[told]] = -np.expm1(-signal_weight[told])
    found["recall"][known[told]] = announced[told] / change_rate[told]
    return found


def interval(weights: FloatArray, rates: FloatArray) -> FloatArray:
    """Return between which rates pages' unannounced change rates are with 90 % probability, shape (2, n)."""
    return np.stack([rate_quantile(weights, rates, q) for q in INTERVAL])
