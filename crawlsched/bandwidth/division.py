"""Division: a bandwidth divided among pages so that no crawl would be worth more elsewhere.

The best rates of a sum of concave gains, given their sum, have one slope in common, the threshold Λ; each page by
itself then wants the rate at which its own gain has that slope, within its limits (the Karush-Kuhn-Tucker conditions,
which Busa-Fekete et al. write out in Appendix A). So one number is searched for. A host's cap adds one number per
host: its pages are crawled at the larger of the two thresholds, which is the same as a lower greatest rate for each.

Everything is done in blocks of pages, so that ten million of them need little more memory than their arrays.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from crawlsched.bandwidth.allocation import Allocation
from crawlsched.bandwidth.gain import Gain
from crawlsched.bandwidth.limits import Limits
from crawlsched.bandwidth.threshold_search import bracket_thresholds
from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["blocks", "divide", "host_limited", "relative_duality_gap", "total_rate", "within"]

# Pages in a block: its arrays stay in the processor's cache.
_BLOCK = 1 << 14
# Above this many pages the search starts from the threshold of an evenly spaced sample.
_SAMPLE = 1 << 15


def blocks(n_pages: int) -> Iterator[slice]:
    """Slices that together cover all pages."""
    for start in range(0, n_pages, _BLOCK):
        yield slice(start, min(start + _BLOCK, n_pages))


def within(minimum_rate: FloatArray, maximum_rate: FloatArray, excess: FloatArray) -> FloatArray:
    """Add what pages get above their least rates to these, and meet the greatest rates to the last digit."""
    full = excess >= maximum_rate - minimum_rate
    return np.where(full, maximum_rate, np.minimum(minimum_rate + excess, maximum_rate))


def divide(gain: Gain, limits: Limits, bandwidth: float) -> Allocation:
    """Give the best division of the bandwidth among the pages, within the limits."""
    limits.check_bandwidth(bandwidth)
    maximum_rate, host_thresholds = host_limited(gain, limits)
    division = _Division(gain, limits.minimum_rate, maximum_rate, np.array([bandwidth]))
    rates, thresholds = division.best()
    threshold = float(thresholds[0])
    gap = relative_duality_gap(gain, limits, bandwidth, rates, threshold, host_thresholds)
    return Allocation(rates=rates, threshold=threshold, duality_gap=gap, host_thresholds=host_thresholds)


def host_limited(gain: Gain, limits: Limits) -> tuple[FloatArray, FloatArray | None]:
    """Express the caps of hosts as greatest rates of their pages; give the threshold at each cap too."""
    if limits.hosts is None or limits.host_caps is None:
        return limits.maximum_rate, None
    is_capped = np.isfinite(limits.host_caps)
    pages = np.flatnonzero(is_capped[limits.hosts])
    budgets = np.where(is_capped, limits.host_caps, 0.0)
    rates, thresholds = _Division(
        gain.of(pages), limits.minimum_rate[pages], limits.maximum_rate[pages], budgets, limits.hosts[pages]
    ).best()
    maximum_rate = np.array(limits.maximum_rate)
    # Where the cap does not bind, the division gave each page all that it can use.
    maximum_rate[pages] = rates
    return maximum_rate, np.where(is_capped, thresholds, 0.0)


def total_rate(gain: Gain, minimum_rate: FloatArray, maximum_rate: FloatArray, threshold: float) -> float:
    """Add up the rates that the pages want at the threshold, within their limits."""
    division = _Division(gain, minimum_rate, maximum_rate, np.zeros(1))
    return float(fsum([*division.minimum_sums, *division.excess(np.array([threshold]))]))


def relative_duality_gap(
    gain: Gain,
    limits: Limits,
    bandwidth: float,
    rates: FloatArray,
    threshold: float,
    host_thresholds: FloatArray | None,
) -> float:
    """Give (dual - primal) / max(abs(dual), abs(primal)): the share of the objective that could be missing at most.

    The primal value comes from the rates alone, the dual value from the thresholds alone: for any thresholds, the
    sum of each page's largest surplus, plus the thresholds times what they are the price of, is an upper bound.
    """
    if not np.isfinite(threshold):
        return 0.0  # the least rates use up the bandwidth: nothing else is possible
    primal, dual = [], [threshold * bandwidth]
    if host_thresholds is not None and limits.host_caps is not None:
        extra = np.where(np.isfinite(limits.host_caps), np.maximum(host_thresholds - threshold, 0.0), 0.0)
        binding = (extra > 0.0) & np.isfinite(extra)
        dual.append(float(np.sum(extra[binding] * limits.host_caps[binding])))
    for pages in blocks(rates.size):
        part, least, most = gain.of(pages), limits.minimum_rate[pages], limits.maximum_rate[pages]
        price: FloatArray | float = threshold
        if host_thresholds is not None and limits.hosts is not None:
            price = np.maximum(threshold, host_thresholds[limits.hosts[pages]])
        primal.append(_sum_of_finite(part.total(rates[pages])))
        dual.append(_sum_of_finite(_largest_surplus(part, price, least, most)))
    best, found = fsum(dual), fsum(primal)
    largest = max(abs(best), abs(found))
    return (best - found) / largest if largest > 0.0 else 0.0


def _largest_surplus(part: Gain, price: FloatArray | float, least: FloatArray, most: FloatArray) -> FloatArray:
    """Give the largest value of gain - price * rate that each page can have within its limits."""
    wanted = part.rates(price)
    surplus = part.surplus(price)
    bound = np.flatnonzero((wanted <= least) | (wanted >= most))
    if bound.size:
        rates = np.clip(wanted, least, most)[bound]
        surplus[bound] = part.of(bound).total(rates) - np.broadcast_to(price, wanted.shape)[bound] * rates
    return surplus


def _sum_of_finite(values: FloatArray) -> float:
    # Never crawled and harmonic: an infinite loss that nobody can help, so it has no say in the gap.
    return float(np.sum(values, where=values > -np.inf))


@dataclass(frozen=True)
class _Division:
    """Pages in groups, each group with a budget of its own; `groups` is None if there is one group only."""

    gain: Gain
    minimum_rate: FloatArray
    maximum_rate: FloatArray
    budgets: FloatArray
    groups: IndexArray | None = None

    def best(self) -> tuple[FloatArray, FloatArray]:
        """Give the best rates, and the threshold of each group."""
        spare = self.budgets - self.minimum_sums
        useful = self.excess(np.zeros_like(spare))
        searched = (spare > 0.0) & (useful > spare)
        # A budget that leaves nothing to decide has the steepest slope as threshold; one beyond all use has 0.
        thresholds = np.where(spare > 0.0, 0.0, self._steepest_slopes())
        # Nobody gets more than the least rate where there is no more.
        below = np.where(spare > 0.0, thresholds, np.finfo(np.float64).max)
        above = below.copy()
        if searched.any():
            below[searched], above[searched] = self._search(searched, spare)
        rates, share = self._interpolated(below, above, np.where(searched, spare, np.inf))
        thresholds[searched] = (above + share * (below - above))[searched]
        return rates, thresholds

    @property
    def minimum_sums(self) -> FloatArray:
        """Least rates, added up in each group."""
        return self._sums(lambda pages: self.minimum_rate[pages])

    def excess(self, thresholds: FloatArray) -> FloatArray:
        """Give what the groups want at their thresholds beyond the least rates.

        Kept apart from the least rates, which could otherwise drown it.
        """
        return self._sums(lambda pages: self._wanted_excess(thresholds, pages))

    def _wanted_excess(self, thresholds: FloatArray, pages: slice) -> FloatArray:
        threshold = thresholds[0] if self.groups is None else thresholds[self.groups[pages]]
        wanted = self.gain.of(pages).rates(threshold)
        least = self.minimum_rate[pages]
        return np.clip(wanted, least, self.maximum_rate[pages]) - least

    def _sums(self, values: Callable[[slice], FloatArray]) -> FloatArray:
        n_pages = self.minimum_rate.size
        if self.groups is None:
            return np.array([fsum(float(np.sum(values(pages))) for pages in blocks(n_pages))])
        sums = np.zeros(self.budgets.size)
        for pages in blocks(n_pages):
            sums += np.bincount(self.groups[pages], weights=values(pages), minlength=sums.size)
        return sums

    def _steepest_slopes(self) -> FloatArray:
        slopes = np.zeros(self.budgets.size)
        for pages in blocks(self.minimum_rate.size):
            slope = self.gain.of(pages).slope(self.minimum_rate[pages])
            if self.groups is None:
                slopes[0] = slope.max(initial=slopes[0])
            else:
                np.maximum.at(slopes, self.groups[pages], slope)
        return slopes

    def _search(self, searched: NDArray[np.bool_], spare: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bracket the thresholds of the groups to be searched."""
        groups = np.flatnonzero(searched)

        def demand(some: FloatArray, which: IndexArray) -> FloatArray:
            thresholds = np.full(spare.size, np.finfo(np.float64).max)  # nothing wanted by the others
            thresholds[groups[which]] = some
            return self.excess(thresholds)[groups[which]]

        return bracket_thresholds(demand, spare[groups], self._start(spare)[groups])

    def _start(self, spare: FloatArray) -> FloatArray:
        """Guess the thresholds: from a sample of the pages if there are many, else as if all were crawled often."""
        n_pages = self.minimum_rate.size
        if self.groups is None and n_pages > _SAMPLE:
            sample = slice(None, None, -(-n_pages // _SAMPLE))
            few = _Division(self.gain.of(sample), self.minimum_rate[sample], self.maximum_rate[sample], self.budgets)
            scaled = spare * (few.minimum_rate.size / n_pages)
            if few.excess(np.zeros(1))[0] > scaled[0]:
                return bracket_thresholds(lambda some, which: few.excess(some), scaled, few._start(scaled), 1e-4)[0]
        # Rates are close to sqrt(importance * change_rate / threshold) in all gains, up to a factor.
        roots = self._sums(lambda pages: np.sqrt(self.gain.of(pages).importance * self.gain.of(pages).change_rate))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            guess = (roots / spare) ** 2
        return np.where((guess > 0.0) & np.isfinite(guess), guess, 1.0)

    def _interpolated(self, below: FloatArray, above: FloatArray, spare: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give rates between those at the two ends of each bracket, so that they add up exactly.

        Only where demand is so steep that no threshold meets the budget does this move a rate by more than rounding;
        every rate in between is then as good as any other, because the slopes differ by less than 1e-13.
        """
        n_pages = self.minimum_rate.size
        rates, rates_above = np.empty(n_pages), np.empty(n_pages)
        for pages in blocks(n_pages):
            rates[pages] = self._wanted_excess(below, pages)
            rates_above[pages] = self._wanted_excess(above, pages)
        sums_above = self._sums(lambda pages: rates_above[pages])
        steps = self._sums(lambda pages: rates[pages] - rates_above[pages])
        share = np.divide(spare - sums_above, steps, out=np.ones_like(steps), where=steps > 0.0)
        share = np.clip(share, 0.0, 1.0)
        for pages in blocks(n_pages):
            part = share[0] if self.groups is None else share[self.groups[pages]]
            excess = rates_above[pages] + part * (rates[pages] - rates_above[pages])
            rates[pages] = within(self.minimum_rate[pages], self.maximum_rate[pages], excess)
        return rates, share
