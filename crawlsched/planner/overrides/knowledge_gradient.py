"""The knowledge gradient: what a visit is expected to teach of change rates, in freshness of the plan after it."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import FloatArray

__all__ = ["KnowledgeGradient"]


# Intervals that a plan may crawl a page at: this many, from a thousandth to a thousand times what all would get alike.
_INTERVALS = 56
_WIDEST = 1e3


class KnowledgeGradient:
    """What visits are expected to teach, for pages whose change rates are known as probabilities on a grid.

    Parameters
    ----------
    rates : ndarray, shape (K,)
        The grid of change rates, per second.
    even_interval : float
        Seconds between two crawls of a page if all got the same.

    Notes
    -----
    Let a crawl cost λ, the crawl value at the threshold. The best that can be planned for a page of importance 1 with
    probabilities p of its rates is to crawl it every τ seconds (or never), which gives, per second,

        G(p) = max over τ of Σ p_k (1 - e^(-r_k τ)) / (r_k τ) - λ/τ,    or 0.

    A visit finds the page changed or not, and p becomes another one each time. As a maximum of linear functions G is
    convex, so what is planned after the visit is better on the average, by

        P(changed) G(p | changed) + P(not) G(p | not) - G(p) >= 0:

    the knowledge gradient. It is 0 where the rate is certain, where what the visit finds makes no difference to the
    plan, and where it can be foretold: a page that must have changed by now teaches nothing.

    References
    ----------
    S. S. Gupta and K. J. Miescke (1996). Bayesian look ahead one-stage sampling allocations for selection of the best
    population. Journal of Statistical Planning and Inference 54.
    P. I. Frazier, W. B. Powell and S. Dayanik (2008). A knowledge-gradient policy for sequential information
    collection. SIAM Journal on Control and Optimization 47.

    Examples
    --------
    A page that changes once a minute is not worth a crawl at this price, one that changes once an hour is. After a
    second nothing can be learned, after ten minutes a visit tells which of the two it is, after a week nothing again:

    >>> gradient = KnowledgeGradient(np.array([1 / 3600, 1 / 60]), even_interval=1800.0)
    >>> elapsed = np.array([1.0, 600.0, 604_800.0])
    >>> gradient(np.full((3, 2), 0.5), elapsed[:, np.newaxis] * gradient.rates, np.full(3, 600.0)).round(4).tolist()
    [0.001, 0.0446, 0.0]
    """

    def __init__(self, rates: FloatArray, even_interval: float) -> None:
        self.rates = rates
        self.even_interval = even_interval
        self._intervals = even_interval * np.geomspace(1 / _WIDEST, _WIDEST, _INTERVALS)
        changes = rates[:, np.newaxis] * self._intervals
        self._fresh = -np.expm1(-changes) / changes

    def __call__(self, weights: FloatArray, stale: FloatArray, cost: FloatArray) -> FloatArray:
        """Return what a visit now is expected to add to the freshness of each page; O(K) a page and interval.

        Parameters
        ----------
        weights : ndarray, shape (n, K)
            Probability of each rate.
        stale : ndarray, shape (n, K)
            -log of the probability that the page has not changed, for each rate: r τ, and what else speaks for it.
        cost : ndarray, shape (n,)
            What a crawl costs, importance times seconds, by the page's importance: λ/μ.

        Returns
        -------
        ndarray, shape (n,)
            Share of the time that the page is fresh, 0 or more.
        """
        unchanged = np.exp(-stale)
        unchanged *= weights
        share = np.add.reduce(unchanged, axis=1, keepdims=True)
        price = cost[:, np.newaxis] / self._intervals
        # What is planned if the page is found unchanged, if it is found changed, and without a visit. G(s p) = s G(p):
        # neither probability need be divided by, and they may be 0.
        gains = np.empty((3, *price.shape))
        if_unchanged, if_changed, without = gains
        fresh, before = unchanged @ self._fresh, weights @ self._fresh
        np.subtract(fresh, share * price, out=if_unchanged)
        np.subtract(before, fresh, out=if_changed)
        if_changed -= (1.0 - share) * price
        np.subtract(before, price, out=without)
        # Or that of no crawl, 0.
        best = np.maximum.reduce(gains, axis=2, initial=0.0)
        taught: FloatArray = np.maximum(best[0] + best[1] - best[2], 0.0)
        return taught
