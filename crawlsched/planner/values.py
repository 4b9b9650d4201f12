"""Crawl values of pages: only this module turns what is known of a page into its crawl value."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.bandwidth.division import WantedRates, divide
from crawlsched.bandwidth.unannounced import even_rates, harmonic_wanted, poisson_wanted
from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.blocks import blocks
from crawlsched.columns.growing import grown
from crawlsched.crawl_value.inverse import LARGEST_SHARE, inverse_residual_one
from crawlsched.crawl_value.reaching import HIGHEST, Grid, gain, growth, tangent_wait
from crawlsched.crawl_value.rules import Rule
from crawlsched.crawl_value.terms import noisy_terms
from crawlsched.estimators import Posterior
from crawlsched.frontier import CrawlValues
from crawlsched.pages import Pages
from crawlsched.planner.evidence.announcements import Announcements
from crawlsched.planner.plans.in_force import InForce
from crawlsched.planner.plans.plan import DEMAND_SAMPLE

__all__ = ["POLICIES", "PlannedValues", "PointValues", "PosteriorValues"]


class PosteriorValues(CrawlValues):
    """The posterior crawl value: the expectation of the crawl value over the change rates that are still possible."""

    def __init__(
        self,
        pages: Pages,
        posterior: Posterior,
        in_force: InForce,
        announcements: Announcements,
    ) -> None:
        self._pages = pages
        self.in_force = in_force
        self.announcements = announcements
        self._posterior = posterior
        self._grid = Grid(posterior.rates)

    # -- what is known of a page

    def weights(self, pages: IndexArray) -> FloatArray:
        """Return the posterior probabilities of the current rates of pages, shape (n, K)."""
        return self._weighted(pages, "priors")

    def value_weights(self, pages: IndexArray) -> FloatArray:
        """Return the weight of each rate in the crawl values of pages, shape (n, K)."""
        return self._weighted(pages, "value_priors")

    def _weighted(self, pages: IndexArray, name: str) -> FloatArray:
        parameters = self.in_force.parameters
        groups = parameters.groups(self._pages.host[pages])
        return self._posterior.weights_many(pages, getattr(parameters, name), groups, parameters.learning_rate)

    def fresh(self, pages: IndexArray, now: float) -> FloatArray:
        """Return the probability that the copy of each page is fresh, E[exp(-α τ - evidence)]; 0: no copy."""
        crawled_at = self._pages.crawled_at[pages]
        elapsed = np.maximum(now - crawled_at, 0.0)
        by_age = np.vecdot(self.weights(pages), np.exp(-self._grid.rates * elapsed[:, np.newaxis]))
        found: FloatArray = by_age * np.exp(-self.announcements.evidence(pages))
        return found

    # -- what a page is worth

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at one time, or at a time for each page; O(K) a page."""
        return self._terms((gain,), pages, self._pages.crawled_at[pages], self.announcements.gathered(pages), now)[0]

    def values_and_slopes(self, pages: IndexArray, now: float) -> tuple[FloatArray, FloatArray]:
        """Return the crawl values of pages, and by how much they grow in a second; shapes (n,)."""
        crawled_at, signals = self._pages.crawled_at[pages], self.announcements.gathered(pages)
        value, slope = self._terms((gain, growth), pages, crawled_at, signals, now)
        return value, slope

    def supposing(
        self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any], now: float
    ) -> FloatArray:
        """Return the crawl values that pages would have after the given last crawls and numbers of announcements."""
        rate, weight = self.announcements.signals(pages)
        return self._terms((gain,), pages, crawled_at, np.stack([rate, weight, weight * n_signals]), now)[0]

    def reaches(self, pages: IndexArray, levels: FloatArray, now: float) -> FloatArray:
        """Estimate when crawl values of pages with a copy reach levels; for announced pages the times are too early."""
        times, importance = np.where(levels > 0.0, np.inf, now), self._pages.importance[pages].astype(np.float64)
        grows = np.flatnonzero(importance > 0.0)
        if not grows.size:
            return times
        # The times are computed without further announcements, because the prospect of announcements only lowers a
        # value.
        pages, aims = pages[grows], levels[:, grows] / importance[grows]
        crawled_at, weights = self._pages.crawled_at[pages], self.value_weights(pages)
        rate, weight, evidence = signals = self.announcements.gathered(pages)
        elapsed, noisy = np.maximum(now - crawled_at, 0.0), (rate > 0.0) & (weight > 0.0)
        found = np.fmax(crawled_at + self._grid.elapsed_at(weights, aims, elapsed), now)
        found[:, noisy & (evidence > 0.0)] = now  # the product does not know of announcements since the crawl
        # Exact values are computed only for pages that may have reached the last level.
        for values, reached in ((self._grid.noisy_bounds, found), (self._grid.noisy, found[-1:])):
            some = np.flatnonzero(noisy & (reached <= now).any(axis=0))
            if some.size:
                value, slope, curvature = values(weights[some], elapsed[some], signals[:, some])
                wait = tangent_wait(aims[:, some] - value, slope, curvature)
                found[:, some] = np.fmax(found[:, some], now + wait)
        times[:, grows] = np.where(aims > 0.0, found, now)
        return times

    def _terms(
        self,
        terms: tuple[Callable[[FloatArray, FloatArray], FloatArray], ...],
        pages: IndexArray,
        crawled_at: FloatArray,
        signals: FloatArray,
        now: float | FloatArray,
    ) -> list[FloatArray]:
        """Return the crawl values of pages, and their slopes if `terms` has `growth` after `gain`."""
        # If a page was never crawled, the time since its crawl is infinite, and its value is the limit for long times.
        found, elapsed = np.empty((len(terms), pages.size)), np.maximum(now - crawled_at, 0.0)
        rate, weight, _ = signals
        noisy = (rate > 0.0) & (weight > 0.0) & (elapsed < np.inf)
        for part in blocks(pages.size, self._grid.rates.size):
            weights, heard = self.value_weights(pages[part]), np.flatnonzero(noisy[part])
            # Each page has a dot product of its own, because the rounding of a matrix product depends on the number of
            # pages.
            for row, term in zip(found, terms, strict=True):
                row[part] = np.vecdot(weights, term(elapsed[part, np.newaxis], self._grid.rates))
            if heard.size:
                at = part.start + heard
                found[:, at] = self._grid.noisy(weights[heard], elapsed[at], signals[:, at])[: len(terms)]
        found *= self._pages.importance[pages]
        return [*np.maximum(found, 0.0)]


class PointValues(CrawlValues):
    """Crawl values by one of the papers' rules, with known rates, or with estimates by `change_rates`."""

    def __init__(
        self,
        pages: Pages,
        announcements: Announcements,
        rule: Rule,
        change_rates: Callable[[IndexArray], FloatArray],
    ) -> None:
        self._pages = pages
        self._announcements = announcements
        self._rule = rule
        self._change_rates = change_rates
        # For each page, the result of `Rule.heard`, and whether the rates are known.
        self._known: FloatArray = np.zeros((0, 6))
        self._is_known: npt.NDArray[np.bool_] = np.zeros(0, bool)

    def know(self, pages: IndexArray, **rates: npt.ArrayLike) -> None:
        """Set the known rates of distinct pages: ``change_rate``, ``recall`` and ``false_signal_rate``."""
        columns = np.array([np.broadcast_to(np.asarray(rate, np.float64), pages.shape) for rate in rates.values()])
        for name, column, most in zip(rates, columns, (HIGHEST, 1.0, HIGHEST), strict=True):
            if not ((column >= 0) & (column <= most)).all():
                wrong = column[~((column >= 0) & (column <= most))][0]
                raise ValueError(f"{name} must be between 0 and {most:g}, got {wrong!r}.")
        if self._is_known.size < self._pages.n:
            self._known = grown(self._known, self._pages.capacity)
            self._is_known = grown(self._is_known, self._pages.capacity)
        self._known[pages], self._is_known[pages] = self._rule.heard(columns).T, True

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at one time, or at a time for each page."""
        # In these rules each announcement has its full weight, estimated or known. So n announcements have n times that
        # weight.
        return self._terms(pages, self._pages.crawled_at[pages], self._announcements.counted(pages), now)[0]

    def values_and_slopes(self, pages: IndexArray, now: float) -> tuple[FloatArray, FloatArray]:
        """Return the crawl values of pages, and by how much they grow in a second; shapes (n,)."""
        return self._terms(pages, self._pages.crawled_at[pages], self._announcements.counted(pages), now)[:2]

    def supposing(
        self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any], now: float
    ) -> FloatArray:
        """Return the crawl values that pages would have after the given last crawls and numbers of announcements."""
        return self._terms(pages, crawled_at, n_signals, now)[0]

    def reaches(self, pages: IndexArray, levels: FloatArray, now: float) -> FloatArray:
        """Estimate when crawl values reach levels; for announced pages the times may be early, but never late."""
        crawled_at, n_signals = self._pages.crawled_at[pages], self._announcements.counted(pages)
        value, slope, curvature = self._terms(pages, crawled_at, n_signals, now)
        times = now + tangent_wait(levels - value, slope, curvature)
        # The times are computed without announcements, because the prospect of announcements only lowers a value.
        alpha, importance = self.rates_of(pages)[3], self._pages.importance[pages]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(alpha > 0.0, levels * alpha / importance, 0.0)
            plain = crawled_at + inverse_residual_one(np.clip(share, 0.0, LARGEST_SHARE)) / alpha
        known = (n_signals == 0.0) & (alpha > 0.0) & (share < 1.0) & (times > now)
        found: FloatArray = np.where(known, np.fmax(times, plain), times)
        return found

    def _terms(
        self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any], now: float | FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the crawl value, its derivative in time, and a bound on the second derivative."""
        change_rate, _, _, alpha, gamma, kappa = self.rates_of(pages)
        importance = self._pages.importance[pages].astype(np.float64)
        never = crawled_at == -np.inf
        elapsed = np.maximum(now - np.where(never, now, crawled_at), 0.0)
        with np.errstate(under="ignore", over="ignore", invalid="ignore", divide="ignore"):
            stale = alpha * elapsed + np.where(n_signals > 0.0, kappa, 0.0) * n_signals
            value, slope = noisy_terms(stale, alpha, gamma, kappa, self._rule.max_terms)
            value = np.where(never, 1.0 / change_rate, value)
            value = np.where(importance > 0.0, np.minimum(value * importance, HIGHEST), 0.0)
            grows = np.where(never, 0.0, alpha * importance)
            return value, np.where(grows > 0.0, slope, 0.0) * grows, np.exp(-stale) * grows

    def rates_of(self, pages: IndexArray) -> FloatArray:
        """Return the known or estimated rates of pages, in the form of `Rule.heard`; shape (6, n)."""
        seen, inside = np.empty((6, pages.size)), pages < self._is_known.size
        is_known = inside.copy()
        is_known[inside] = self._is_known[pages[inside]]
        seen[:, is_known] = self._known[pages[is_known]].T
        if not is_known.all():
            seen[:, ~is_known] = self._rule.heard(self._estimated(pages[~is_known]))
        return seen

    def _estimated(self, pages: IndexArray) -> FloatArray:
        signal_rate, signal_weight = self._announcements.signals(pages)
        signal_rate[self._pages.crawled_at[pages] == -np.inf] = 0.0
        false, change_rate = signal_rate * np.exp(-signal_weight), self._change_rates(pages)
        # The number of announced changes is at most the number of changes.
        return np.stack([change_rate, np.minimum((signal_rate - false) / change_rate, 1.0), false])


# Policies that maximise a gain, and policies whose crawl rates are proportional to a function of the change rates.
_GAINS: dict[str, WantedRates] = {"harmonic": harmonic_wanted, "lds": even_rates, "poisson": poisson_wanted}
_SHARES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "round_robin": np.ones_like,
    "uniform": np.ones_like,
    "proportional": np.asarray,
    "square_root": np.sqrt,
}
#: The policies by name. Uniform intervals and round robin are the same here, since each page waits for all others.
POLICIES = (*_SHARES, *_GAINS)


class PlannedValues(CrawlValues):
    """Crawl values by one of `POLICIES`.

    Notes
    -----
    A page is worth the share of its interval that has passed. A plan decides only the threshold Λ at which the rates
    add up to the bandwidth. The rate of a page follows from Λ and the knowledge of the page, so no rates are stored.
    Until the first plan all pages are crawled at the same rate. A page that was never crawled is picked first. A page
    with the rate 0 is worth nothing, and is picked only if there are no other pages.
    """

    def __init__(self, pages: Pages, change_rates: Callable[[IndexArray], FloatArray], policy: str) -> None:
        self._pages = pages
        self._change_rates = change_rates
        self._gain, self._share = _GAINS.get(policy), _SHARES.get(policy, np.ones_like)
        self._threshold: float | None = None

    def divide(self, bandwidth: float) -> None:
        """Divide a bandwidth among all pages, by the present knowledge of an even sample; takes about 10 ms."""
        n = self._pages.n
        rows = np.arange(0, n, max(1, -(-n // DEMAND_SAMPLE)))
        rows = rows[self._pages.state[rows] != 0]
        importance = self._pages.importance[rows].astype(np.float64)
        if self._gain is not None and importance.any():
            columns = self._change_rates(rows), importance
            self._threshold = divide(self._gain, columns, bandwidth * rows.size / len(self._pages)).threshold

    def crawl_rates(self, pages: IndexArray) -> FloatArray:
        """Return crawls per second, shape (n,). Without a threshold, they may be off by a common factor."""
        if self._gain is None:
            return self._share(self._change_rates(pages))
        if self._threshold is None:
            return np.ones(pages.size)
        importance = self._pages.importance[pages].astype(np.float64)
        return self._gain(self._threshold, self._change_rates(pages), importance)

    # -- what the frontier asks

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at one time, or at a time for each page."""
        return self.supposing(pages, self._pages.crawled_at[pages], 0.0, now)

    def values_and_slopes(self, pages: IndexArray, now: float) -> tuple[FloatArray, FloatArray]:
        """Return the crawl values of pages, and by how much they grow in a second; shapes (n,)."""
        has_copy = self._pages.crawled_at[pages] > -inf
        return self.value_at(pages, now), np.where(has_copy, self.crawl_rates(pages), 0.0)

    def supposing(
        self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.ArrayLike, now: float | FloatArray
    ) -> FloatArray:
        """Return the crawl values that pages would have after the given last crawls; announcements do not count."""
        elapsed = np.maximum(now - np.where(crawled_at == -inf, now, crawled_at), 0.0)
        found: FloatArray = np.where(crawled_at == -inf, HIGHEST, self.crawl_rates(pages) * elapsed)
        return found

    def reaches(self, pages: IndexArray, levels: FloatArray, now: float) -> FloatArray:
        """Return when pages with a copy will have waited for the shares `levels` of their intervals."""
        with np.errstate(divide="ignore", invalid="ignore"):
            times = self._pages.crawled_at[pages] + levels / self.crawl_rates(pages)
        found: FloatArray = np.fmax(times, now)
        return found
