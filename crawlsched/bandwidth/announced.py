"""Refresh rates with signals: the best plan where ChangeSignals announce some of the changes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawlsched.bandwidth.allocation import SignalAllocation
from crawlsched.bandwidth.arguments import not_negative, page_arrays, positive_number
from crawlsched.bandwidth.crawl_interval import doubt_at_interval, mean_interval
from crawlsched.bandwidth.division import blocks, divide
from crawlsched.bandwidth.gain import Pages
from crawlsched.bandwidth.limits import Limits
from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import elapsed_at_value, noisy_value
from crawlsched.crawl_value.inverse import LARGEST_SHARE, inverse_residual_one
from crawlsched.crawl_value.rules import natural_parameters

__all__ = ["AnnouncedGain", "refresh_rates_with_signals"]

# exp(-1000) is 0: a doubt, or a weight of an announcement, that is as good as infinite.
_CERTAIN = 1000.0


def refresh_rates_with_signals(
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    minimum_rate: ArrayLike = 0.0,
    maximum_rate: ArrayLike = np.inf,
    hosts: ArrayLike | None = None,
    host_caps: ArrayLike | None = None,
) -> SignalAllocation:
    """Divide a bandwidth so that freshness is as large as it can be with ChangeSignals of known quality.

    Parameters
    ----------
    change_rate : array_like of shape (n_pages,)
        Changes per second.
    recall : array_like of shape (n_pages,) or float
        Probability that a change is announced.
    false_signal_rate : array_like of shape (n_pages,) or float
        Announcements per second without a change.
    importance : array_like of shape (n_pages,) or float
        Weight of a fresh copy.
    bandwidth : float
        Crawls per second, positive; a mean over time, because announcements come at random.
    minimum_rate, maximum_rate : array_like of shape (n_pages,) or float
        Least and greatest crawls per second of each page.
    hosts : array_like of int, shape (n_pages,), optional
        Number of each page's host, an index into `host_caps`.
    host_caps : array_like of shape (n_hosts,), optional
        Greatest crawls per second of each host; ``inf`` for no cap.

    Returns
    -------
    SignalAllocation
        The rates, the threshold, and each page's threshold in effective elapsed time.

    Raises
    ------
    ValueError
        If an argument is wrong, or if the least rates need more than the bandwidth or a host's cap.

    Notes
    -----
    Problem (4) of Busa-Fekete et al., solved by Theorem 1: page i is crawled when its effective elapsed time reaches
    the ι with V(ι) = Λ, and so 1/ψ(ι) times a second on average (Lemma 4). With y = α ι, the objective is
    o = μ exp(-y) + V(y)/ψ(y), and what is left of it after the price of the crawls is μ exp(-y).

    Where all changes are announced (recall is 1) a page's freshness falls only with announcements, and its threshold
    is a number of them: crawled at every n-th, its rate is γ/n and its crawl value V(n). Rates between γ/(n+1)
    and γ/n are those of a mixture, and the objective is a straight line of the slope V(n) between them; the same
    holds between 0 and γ where nothing false is announced. The demand curve has steps there. Such pages cannot
    use more than γ crawls per second. (The proof of Theorem 1 lacks a factor f in w'/f'; its result is right.)

    References
    ----------
    R. Busa-Fekete, J. Zimmert, A. György, L. Qiu, T. Sung, H. Shen, H. Choi, S. Subramaniam, L. Xiao (2025).
    A scalable crawling algorithm utilizing noisy change-indicating signals.

    Examples
    --------
    Two pages, the changes of one of which are announced well:

    >>> from crawlsched.bandwidth import refresh_rates_with_signals
    >>> allocation = refresh_rates_with_signals([1.0, 1.0], [0.0, 0.9], [0.0, 0.1], 1.0, bandwidth=1.0)
    >>> allocation.rates
    array([0.3144..., 0.6855...])
    >>> allocation.effective_elapsed
    array([ 3.1799..., 24.5757...])
    """
    gain = AnnouncedGain.checked(change_rate, recall, false_signal_rate, importance)
    limits = Limits.checked(gain.change_rate.size, minimum_rate, maximum_rate, hosts, host_caps)
    found = divide(gain, limits, positive_number("bandwidth", bandwidth, "crawls per second"))
    elapsed, freshness = np.empty_like(found.rates), np.empty_like(found.rates)
    for pages in blocks(found.rates.size):
        price: FloatArray | float = found.threshold
        if found.host_thresholds is not None and limits.hosts is not None:
            price = np.maximum(found.threshold, found.host_thresholds[limits.hosts[pages]])
        elapsed[pages], freshness[pages] = gain.of(pages).policy(found.rates[pages], price)
    return SignalAllocation(
        rates=found.rates,
        threshold=found.threshold,
        duality_gap=found.duality_gap,
        host_thresholds=found.host_thresholds,
        effective_elapsed=elapsed,
        least_freshness=freshness,
    )


def _probability(name: str, array: FloatArray) -> None:
    if array.size and not (array.min() >= 0.0 and array.max() <= 1.0):
        page = int(np.argmax(~((array >= 0.0) & (array <= 1.0))))
        raise ValueError(f"{name}[{page}] is {float(array[page])!r}; every {name} must be between 0 and 1.")


@dataclass(frozen=True)
class AnnouncedGain:
    """Gain of the mean rate at which a page is crawled by the best threshold on its effective elapsed time.

    The threshold is used as y = α ι, minus the log-probability of freshness, which also makes sense at α = 0.
    """

    change_rate: FloatArray
    importance: FloatArray
    recall: FloatArray
    false_signal_rate: FloatArray

    @classmethod
    def checked(
        cls, change_rate: ArrayLike, recall: ArrayLike, false_signal_rate: ArrayLike, importance: ArrayLike
    ) -> Self:
        """Make the gain from a caller's arguments, or say which of them is wrong."""
        change, caught, false, weight = page_arrays(
            change_rate=change_rate, recall=recall, false_signal_rate=false_signal_rate, importance=importance
        )
        not_negative("change_rate", change)
        not_negative("importance", weight)
        _probability("recall", caught)
        not_negative("false_signal_rate", false)
        return cls(change, weight, caught, false)

    def of(self, pages: Pages) -> Self:
        """Give the gain of some of the pages."""
        return type(self)(
            self.change_rate[pages], self.importance[pages], self.recall[pages], self.false_signal_rate[pages]
        )

    def rates(self, threshold: FloatArray | float) -> FloatArray:
        """Give 1/ψ at the threshold of each page."""
        return self._rates_at(self.doubt(threshold))

    def total(self, rates: FloatArray) -> FloatArray:
        """Give o = μ exp(-y) + V(y) times the rate, where y is the doubt at which a page is crawled at this rate.

        This is μ w/ψ because V = μ (w - exp(-y) ψ), and a straight line where y does not change with the rate.
        """
        doubt = self.doubt_of(rates)
        return np.asarray(self.importance * np.exp(-doubt) + self._value(doubt) * rates)

    def surplus(self, threshold: FloatArray | float) -> FloatArray:
        """Give the largest o - Λ rate: μ exp(-y) + (V(y) - Λ) rate, whose second part is 0 except at steps."""
        doubt = self.doubt(threshold)
        reached = self._stepped & np.isfinite(doubt)
        excess_value = np.where(reached, self._value(doubt) - threshold, 0.0)
        rates = np.where(reached, self._rates_at(doubt), 0.0)
        return np.asarray(self.importance * np.exp(-doubt) + excess_value * rates)

    def slope(self, rates: FloatArray) -> FloatArray:
        """Give μ/Δ, the largest slope there is."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(self.change_rate > 0.0, self.importance / self.change_rate, 0.0)

    def doubt(self, threshold: FloatArray | float) -> FloatArray:
        """Give the y at which the crawl value reaches the threshold, ``inf`` if it never does."""
        alpha, _, kappa = self._parameters
        elapsed = np.asarray(
            elapsed_at_value(threshold, self.change_rate, self.recall, self.false_signal_rate, self.importance)
        )
        reached = np.isfinite(elapsed)
        doubt = np.where(reached, alpha * np.where(reached, elapsed, 0.0), np.inf)
        if self._stepped.any():
            at = np.flatnonzero(self._stepped)
            n = self.of(at)._announcements(np.broadcast_to(threshold, doubt.shape)[at])
            doubt[at] = n * kappa[at]
        # A page that does not matter is never crawled, and the copy of one that never changes is never in doubt.
        return np.where(self.change_rate > 0.0, np.where(self.importance > 0.0, doubt, np.inf), 0.0)

    def doubt_of(self, rates: FloatArray, threshold: FloatArray | float | None = None) -> FloatArray:
        """Give the y at which a page is to be crawled so that its mean rate is this.

        Where nearly all changes are announced, many y have nearly the same rate; the one whose crawl value is the
        threshold is then given, if the threshold is.
        """
        alpha, gamma, kappa = self._parameters
        moving = np.flatnonzero((alpha > 0.0) & (self.change_rate > 0.0))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            doubt = np.where(self._stepped, np.floor(gamma / rates) * kappa, 0.0)
            parameters = alpha[moving], gamma[moving], kappa[moving]
            doubt[moving] = doubt_at_interval(1.0 / rates[moving], *parameters)
        if threshold is None:
            return doubt
        wanted = self.doubt(threshold)
        same = (alpha > 0.0) & (np.abs(self._rates_at(wanted) - rates) <= 1e-9 * rates)
        return np.where(same, wanted, doubt)

    def policy(self, rates: FloatArray, threshold: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Give each page's threshold in effective elapsed time, and the freshness at which it is crawled."""
        alpha, _, _ = self._parameters
        doubt = self.doubt_of(rates, threshold)
        with np.errstate(divide="ignore", invalid="ignore"):
            elapsed = np.where((alpha > 0.0) & (doubt < _CERTAIN), doubt / alpha, np.inf)
            # A page that never changes is crawled for its least rate only, at even intervals.
            return np.where(self.change_rate > 0.0, elapsed, 1.0 / rates), np.exp(-doubt)

    @cached_property
    def _parameters(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        with np.errstate(over="ignore", under="ignore"):
            alpha, gamma, kappa = natural_parameters(self.change_rate, self.recall, self.false_signal_rate)
        # An announcement that is surely true makes the copy surely stale; so does one of a large enough weight, and a
        # finite one leaves "never" (y infinite) apart from "at an announcement".
        return np.asarray(alpha), np.asarray(gamma), np.minimum(kappa, _CERTAIN)

    @cached_property
    def _stepped(self) -> NDArray[np.bool_]:
        """Whether freshness falls with announcements only."""
        return np.asarray((self.recall >= 1.0) & (self.change_rate > 0.0))

    def _rates_at(self, doubt: FloatArray) -> FloatArray:
        alpha, gamma, kappa = self._parameters
        moving = np.flatnonzero(alpha > 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rates = np.where(self._stepped, gamma / np.maximum(np.rint(doubt / kappa), 1.0), 0.0)
            rates[moving] = 1.0 / mean_interval(doubt[moving], alpha[moving], gamma[moving], kappa[moving])
        return np.where(self.importance * self.change_rate > 0.0, rates, 0.0)

    def _value(self, doubt: FloatArray) -> FloatArray:
        alpha, gamma, kappa = self._parameters
        value = noisy_value(0.0, doubt, alpha, gamma, kappa, self.importance)
        return np.where(self.change_rate > 0.0, value, 0.0)

    def _announcements(self, threshold: FloatArray) -> FloatArray:
        """Give the least n with V(n) ≥ Λ, for pages whose freshness falls with announcements only, by halving."""
        _, _, kappa = self._parameters
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = np.where(self.importance > 0.0, threshold * self.change_rate / self.importance, np.inf)
        # V(n) = μ/Δ (1 - (1 + n p) exp(-κ n)) with 0 < p = 1 - exp(-κ) ≤ κ: so κ n = z with R^1(z) = share
        share = np.minimum(share, 1.0)
        below_one = np.minimum(share, LARGEST_SHARE)
        # is enough, and n below that with exp(-κ n) = 1 - share is too little.
        most = np.ceil(inverse_residual_one(below_one) / kappa) + 1.0
        least = np.maximum(np.floor(-np.log1p(-below_one) / kappa * (1.0 - 1e-12)) - 1.0, 0.0)
        while (most - least > np.maximum(1.0, 4.0 * np.finfo(float).eps * most)).any():
            middle = np.floor((least + most) / 2.0)
            enough = (self._value(middle * kappa) >= threshold) & (middle > 0.0)
            least, most = np.where(enough, least, middle), np.where(enough, middle, most)
        return np.where(share < 1.0, most, np.inf)
