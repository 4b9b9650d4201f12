"""Readable: what a planner knows of pages in plain numbers, for people who look into the database."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.probabilities import rate_quantile
from crawlsched.planner.planner import Planner

__all__ = ["COLUMNS", "estimates", "readable"]

# Quantiles of the change rate between which it is with 90 % probability.
_QUANTILES = (0.05, 0.95)
#: The columns of `readable`.
COLUMNS = ("change_rate", "change_rate_low", "change_rate_high", "expected_freshness", "precision", "recall")


def readable(planner: Planner, pages: npt.ArrayLike, now: float) -> dict[str, FloatArray]:
    """Return what is known of pages, nan where nothing is.

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
    known = np.flatnonzero(planner.pages.crawled_at[rows] > -np.inf)
    found = {}
    announced = (planner.pages.n_signals_total[rows[known]] > 0) | (planner.pages.further[rows[known]] > 0)
    for name, column in estimates(planner, rows[known], now).items():
        if name in COLUMNS:
            found[name] = np.full(rows.size, np.nan)
            found[name][known] = np.where(announced, column, np.nan) if name in ("precision", "recall") else column
    return found


def estimates(planner: Planner, rows: IndexArray, now: float) -> dict[str, FloatArray]:
    """Return what is known of pages: `COLUMNS`, and ``unsignalled``, ``signal_rate``, ``signal_weight``."""
    weights, rates = planner.values.weights(rows), planner.posterior.rates
    signal_rate, signal_weight = planner.announcements.signals(rows)
    announced = signal_rate * -np.expm1(-signal_weight)
    unsignalled, fresh = (weights * rates).sum(axis=1), planner.values.fresh(rows, now)
    if planner.learned is not None:
        unsignalled = np.maximum(planner.change_rates(rows) - announced, 0.0)
        elapsed = np.maximum(now - planner.pages.crawled_at[rows], 0.0)
        stale = unsignalled * elapsed + planner.announcements.evidence(rows)
        fresh = np.where(elapsed < np.inf, np.exp(-stale), 0.0)
    low, high = (rate_quantile(weights, rates, q) + announced for q in _QUANTILES)
    change_rate = unsignalled + announced
    precision, recall = -np.expm1(-signal_weight), announced / change_rate
    columns = change_rate, low, high, fresh, precision, recall, unsignalled, signal_rate, signal_weight
    return dict(zip((*COLUMNS, "unsignalled", "signal_rate", "signal_weight"), columns, strict=True))
