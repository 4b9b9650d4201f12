"""Refresh rates with signals: the best plan if ChangeSignals announce some of the changes."""

from dataclasses import dataclass
from functools import cached_property
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawlsched.bandwidth.division import SignalAllocation, checked, divide, not_negative, page_arrays, total_rate
from crawlsched.bandwidth.unannounced import even_rates
from crawlsched.columns.array_types import FloatArray
from crawlsched.columns.blocks import blocks
from crawlsched.columns.numerics import LARGEST_LOG
from crawlsched.crawl_value import elapsed_at_value, noisy_value
from crawlsched.crawl_value.inverse import LARGEST_SHARE, inverse_residual_one
from crawlsched.crawl_value.rules import natural_parameters
from crawlsched.crawl_value.terms import noisy_terms

__all__ = ["demand", "refresh_rates_with_signals"]

# From this value on, a doubt or the weight of an announcement is practically infinite: exp(-value) is 0.
_CERTAIN = 2.0 * LARGEST_LOG


def refresh_rates_with_signals(
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
) -> SignalAllocation:
    """Divide a bandwidth so that freshness is as high as possible with ChangeSignals of known quality.

    Parameters
    ----------
    recall : array_like of shape (n_pages,) or float
        Probability that a change is announced.
    false_signal_rate : array_like of shape (n_pages,) or float
        Announcements per second without a change.
    bandwidth : float
        Crawls per second, positive. It is a mean over time, because announcements come at random.

    Notes
    -----
    This is problem (4) of Busa-Fekete et al., solved by Theorem 1. Page i is crawled when its effective elapsed time
    reaches the ι with V(ι) = Λ. On average this happens 1/ψ(ι) times a second (Lemma 4). With y = α ι, the objective is
    o = μ exp(-y) + V(y)/ψ(y). The second term is the price of the crawls. Without it the objective is μ exp(-y).

    If all changes of a page are announced (recall is 1), its freshness falls only with announcements, and its threshold
    is a number of announcements. A page crawled at every n-th announcement has the rate γ/n and the crawl value V(n). A
    rate between γ/(n+1) and γ/n needs a mixture of n+1 and n. Between these rates the objective is a straight line of
    the slope V(n). It is also a straight line between 0 and γ if no announcement is false. The demand curve has a step
    at the slope of each straight line. Such pages cannot use more than γ crawls per second. (The proof of Theorem 1
    lacks a factor f in w'/f'; its result is right.)

    References
    ----------
    R. Busa-Fekete et al. (2025). A scalable crawling algorithm utilizing noisy change-indicating signals.

    Examples
    --------
    Two pages; most changes of the second page are announced:

    >>> from crawlsched.bandwidth import refresh_rates_with_signals
    >>> allocation = refresh_rates_with_signals([1.0, 1.0], [0.0, 0.9], [0.0, 0.1], 1.0, bandwidth=1.0)
    >>> allocation.rates
    array([0.3144..., 0.6855...])
    >>> allocation.effective_elapsed
    array([ 3.1799..., 24.5757...])
    """
    columns = _columns(change_rate, recall, false_signal_rate, importance)
    found = divide(_wanted, columns, bandwidth)
    elapsed, freshness = np.empty_like(found.rates), np.empty_like(found.rates)
    for pages in blocks(found.rates.size):
        some = _Announced(*(column[pages] for column in columns))
        elapsed[pages], freshness[pages] = some.policy(found.threshold)
    return SignalAllocation(
        rates=found.rates, threshold=found.threshold, effective_elapsed=elapsed, least_freshness=freshness
    )


def _probability(name: str, array: FloatArray) -> None:
    if array.size and not (array.min() >= 0.0 and array.max() <= 1.0):
        page = int(np.argmax(~((array >= 0.0) & (array <= 1.0))))
        raise ValueError(f"{name}[{page}] is {float(array[page])!r}; every {name} must be between 0 and 1.")


def _columns(
    change_rate: ArrayLike, recall: ArrayLike, false_signal_rate: ArrayLike, importance: ArrayLike
) -> list[FloatArray]:
    """Return the arguments as arrays, change rates and importances first; an error names the wrong argument."""
    change, caught, false, weight = page_arrays(
        change_rate=change_rate, recall=recall, false_signal_rate=false_signal_rate, importance=importance
    )
    change, weight = checked(change, weight)
    _probability("recall", caught)
    return [change, weight, caught, not_negative("false_signal_rate", false)]


def _wanted(threshold: float, *columns: FloatArray) -> FloatArray:
    return _Announced(*columns).rates(threshold)


@dataclass(frozen=True)
class _Announced:
    """Pages with announced changes; each page is crawled by the best threshold on its effective elapsed time.

    The threshold is used as y = α ι, which is minus the log-probability of freshness and is also defined for α = 0.
    """

    change_rate: FloatArray
    importance: FloatArray
    recall: FloatArray
    false_signal_rate: FloatArray

    def rates(self, threshold: FloatArray | float) -> FloatArray:
        """Return the crawl rate 1/ψ of each page at a threshold."""
        doubt, (alpha, gamma, kappa) = self.doubt(threshold), self._parameters
        moving = np.flatnonzero(alpha > 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rates = np.where(self._stepped, gamma / np.maximum(np.rint(doubt / kappa), 1.0), 0.0)
            _, slope = noisy_terms(doubt[moving], alpha[moving], gamma[moving], kappa[moving])
            rates[moving] = np.exp(-doubt[moving]) / slope
            rates[np.isinf(doubt)] = 0.0
        return np.where(self.importance * self.change_rate > 0.0, rates, 0.0)

    def doubt(self, threshold: FloatArray | float) -> FloatArray:
        """Return the y at which the crawl value reaches the threshold; inf: never."""
        alpha, _, kappa = self._parameters
        elapsed = np.asarray(
            elapsed_at_value(threshold, self.change_rate, self.recall, self.false_signal_rate, self.importance)
        )
        reached = np.isfinite(elapsed)
        doubt = np.where(reached, alpha * np.where(reached, elapsed, 0.0), np.inf)
        if self._stepped.any():
            at = np.flatnonzero(self._stepped)
            columns = self.change_rate, self.importance, self.recall, self.false_signal_rate
            some = _Announced(*(column[at] for column in columns))
            n = some._announcements(np.broadcast_to(threshold, doubt.shape)[at])
            doubt[at] = n * kappa[at]
        # A page of no importance is never crawled, and the copy of a page that never changes is never in doubt.
        return np.where(self.change_rate > 0.0, np.where(self.importance > 0.0, doubt, np.inf), 0.0)

    def policy(self, threshold: float) -> tuple[FloatArray, FloatArray]:
        """Return each page's threshold in effective elapsed time, and the freshness at which it is crawled."""
        alpha, _, _ = self._parameters
        doubt = self.doubt(threshold)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((alpha > 0.0) & (doubt < _CERTAIN), doubt / alpha, np.inf), np.exp(-doubt)

    @cached_property
    def _parameters(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        with np.errstate(over="ignore", under="ignore"):
            alpha, gamma, kappa = natural_parameters(self.change_rate, self.recall, self.false_signal_rate)
        # A large weight makes the copy as certainly stale as an infinite weight. But with an infinite weight, a crawl
        # "at an announcement" would look like "never" (y infinite).
        return np.asarray(alpha), np.asarray(gamma), np.minimum(kappa, _CERTAIN)

    @cached_property
    def _stepped(self) -> NDArray[np.bool_]:
        """Whether freshness falls with announcements only."""
        return np.asarray((self.recall >= 1.0) & (self.change_rate > 0.0))

    def _value(self, doubt: FloatArray) -> FloatArray:
        alpha, gamma, kappa = self._parameters
        value = noisy_value(0.0, doubt, alpha, gamma, kappa, self.importance)
        return np.where(self.change_rate > 0.0, value, 0.0)

    def _announcements(self, threshold: FloatArray) -> FloatArray:
        """Find the least n with V(n) ≥ Λ by halving."""
        _, _, kappa = self._parameters
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = np.where(self.importance > 0.0, threshold * self.change_rate / self.importance, np.inf)
        # V(n) = μ/Δ (1 - (1 + n p) exp(-κ n)) with 0 < p = 1 - exp(-κ) ≤ κ. So n is large enough if κ n = z with
        # R^1(z) = share.
        share = np.minimum(share, 1.0)
        below_one = np.minimum(share, LARGEST_SHARE)
        # Where exp(-κ n) is more than 1 - share, n is too small.
        most = np.ceil(inverse_residual_one(below_one) / kappa) + 1.0
        least = np.maximum(np.floor(-np.log1p(-below_one) / kappa * (1.0 - 1e-12)) - 1.0, 0.0)
        while (most - least > np.maximum(1.0, 4.0 * float_info.epsilon * most)).any():
            middle = np.floor((least + most) / 2.0)
            enough = (self._value(middle * kappa) >= threshold) & (middle > 0.0)
            least, most = np.where(enough, least, middle), np.where(enough, middle, most)
        return np.where(share < 1.0, most, np.inf)


def demand(
    threshold: ArrayLike,
    change_rate: ArrayLike,
    importance: ArrayLike = 1.0,
    recall: ArrayLike = 0.0,
    false_signal_rate: ArrayLike = 0.0,
) -> Any:
    """Return the total rate of crawls if every crawl worth at least the threshold is made.

    Parameters
    ----------
    threshold : array_like
        Crawl values, in importance times seconds, 0 or more.

    Returns
    -------
    array_like of the shape of `threshold`
        Crawls per second. It falls as the threshold rises. At a threshold of 0 it is ``inf``, unless every change is
        announced.

    Notes
    -----
    This is Σ f(ι*(Λ)) of Theorem 1 in Busa-Fekete et al. The inverse function gives the `threshold` of `refresh_rates`
    and `refresh_rates_with_signals`. `demand` shows what a larger bandwidth would gain: the threshold is the importance
    gained per additional crawl per second.

    References
    ----------
    R. Busa-Fekete et al. (2025). A scalable crawling algorithm utilizing noisy change-indicating signals.

    Examples
    --------
    >>> from crawlsched.bandwidth import demand, refresh_rates
    >>> demand([0.1, 0.3, 1.0, 2.0], change_rate=[1.0, 2.0])
    array([4.3064..., 1.9002..., 0.        , 0.        ])
    >>> float(demand(refresh_rates([1.0, 2.0], 1.0, bandwidth=3.0).threshold, [1.0, 2.0]))
    3.0
    """
    thresholds = np.asarray(threshold, dtype=np.float64)
    if not (thresholds >= 0.0).all():
        raise ValueError(f"threshold contains {float(np.min(thresholds))!r}; every threshold must be 0 or more.")
    columns = _columns(change_rate, recall, false_signal_rate, importance)
    if np.any(recall):
        totals = [total_rate(_wanted, columns, float(each)) for each in thresholds.ravel()]
    else:  # without recall, announcements make no difference
        totals = [total_rate(even_rates, columns[:2], float(each)) for each in thresholds.ravel()]
    return np.array(totals).reshape(thresholds.shape)[()]
