"""Crawl values of pages as things stand: the one place where what is known of a page becomes what it is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.crawl_value.terms import noisy_terms
from crawlsched.estimators import Posterior
from crawlsched.frontier import CrawlValues
from crawlsched.pages import Pages
from crawlsched.planner.evidence.announcements import Announcements
from crawlsched.planner.parameters.in_force import InForce
from crawlsched.planner.values.reaching import Grid, gain, tangent_wait

__all__ = ["PosteriorValues"]

# So many pages at once: their rates stay in the cache.
_BLOCK = 1024


class PosteriorValues(CrawlValues):
    """The posterior crawl value (design, section 4): the expectation of the crawl value over what is still possible.

    Parameters
    ----------
    pages : Pages
    posterior : Posterior
        A row per page.
    in_force : InForce
    announcements : Announcements
    """

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
        """Return the posterior probabilities of the rates that pages have at present, shape (n, K)."""
        return self._weighted(pages, "priors")

    def value_weights(self, pages: IndexArray) -> FloatArray:
        """Return what each rate counts for in the crawl values of pages, shape (n, K)."""
        return self._weighted(pages, "value_priors")

    def _weighted(self, pages: IndexArray, name: str) -> FloatArray:
        weights = np.empty((pages.size, self._grid.rates.size))
        for parameters, part in self.in_force.by_parameters(pages):
            rows = pages if part is None else pages[part]
            groups = parameters.groups(self._pages.host[rows])
            found = self._posterior.weights_many(rows, getattr(parameters, name), groups, parameters.learning_rate)
            if part is None:
                return found
            weights[part] = found
        return weights

    def fresh(self, pages: IndexArray, now: float) -> FloatArray:
        """Return the probability that each page's copy is fresh, 0 where there is none: E[exp(-α τ - evidence)]."""
        crawled_at = self._pages.crawled_at[pages]
        elapsed = np.maximum(now - crawled_at, 0.0)
        by_age = np.vecdot(self.weights(pages), np.exp(-self._grid.rates * elapsed[:, np.newaxis]))
        found: FloatArray = by_age * np.exp(-self.announcements.evidence(pages))
        return found

    # -- what a page is worth

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at a time, or each at its own; O(K) a page."""
        return self._values(pages, self._pages.crawled_at[pages], self.announcements.gathered(pages), now)

    def supposing(
        self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any], now: float
    ) -> FloatArray:
        """Return the crawl values of pages if they had last been crawled then, and announced so often since."""
        rate, weight = self.announcements.signals(pages)
        return self._values(pages, crawled_at, np.stack([rate, weight, weight * n_signals]), now)

    def reaches(self, pages: IndexArray, level: float | FloatArray, now: float) -> FloatArray:
        """Return about when crawl values reach a level; too early for pages with announcements, but never too late."""
        crawled_at, importance = self._pages.crawled_at[pages], self._pages.importance[pages].astype(np.float64)
        levels = np.broadcast_to(np.asarray(level, np.float64), pages.shape)
        times = np.where(levels > 0.0, np.inf, now)
        never = np.flatnonzero(crawled_at == -np.inf)
        times[never[self._new_values(pages[never]) * importance[never] >= levels[never]]] = now
        grows = np.flatnonzero((crawled_at > -np.inf) & (importance > 0.0) & (levels > 0.0))
        if not grows.size:
            return times
        # As if nothing were to be announced any more: announcements to come only lower a value.
        pages, aim = pages[grows], levels[grows] / importance[grows]
        signals, weights = self.announcements.gathered(pages), self.value_weights(pages)
        found = np.maximum(crawled_at[grows] + self._grid.elapsed_at(weights, aim), now)
        rate, weight, evidence = signals
        elapsed = np.maximum(now - crawled_at[grows], 0.0)
        noisy = (rate > 0.0) & (weight > 0.0)
        announced = np.flatnonzero(noisy & (evidence > 0.0))
        if announced.size:
            likely_stale = elapsed[announced, np.newaxis] * self._grid.rates + evidence[announced, np.newaxis]
            value, slope, curvature = self._announced(weights[announced], likely_stale)
            found[announced] = now + tangent_wait(aim[announced] - value, slope, curvature)
        close = np.flatnonzero(noisy & (found <= now))
        if close.size:
            value, slope, curvature = self._noisy(weights[close], elapsed[close], signals[:, close])
            found[close] = now + tangent_wait(aim[close] - value, slope, curvature)
        times[grows] = found
        return times

    def _values(
        self, pages: IndexArray, crawled_at: FloatArray, signals: FloatArray, now: float | FloatArray
    ) -> FloatArray:
        never, values = crawled_at == -np.inf, np.empty(pages.size)
        elapsed = np.maximum(now - np.where(never, now, crawled_at), 0.0)
        rate, weight, _ = signals
        noisy = (rate > 0.0) & (weight > 0.0) & ~never
        for start in range(0, pages.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            weights, heard = self.value_weights(pages[part]), np.flatnonzero(noisy[part])
            # One dot product a page and not a matrix product, whose rounding depends on how many pages there are.
            values[part] = np.vecdot(weights, gain(elapsed[part, np.newaxis], self._grid.rates))
            if heard.size:
                at = start + heard
                values[at] = self._noisy(weights[heard], elapsed[at], signals[:, at])[0]
        values[never] = self._new_values(pages[never])
        values *= self._pages.importance[pages]
        positive: FloatArray = np.maximum(values, 0.0)
        return positive

    def _announced(self, weights: FloatArray, stale: FloatArray) -> FloatArray:
        """Return the same as `_noisy`, as if nothing were to be announced any more: each is as high or higher."""
        rates, lasts = self._grid.rates, np.exp(-stale)
        lost = stale * lasts
        return np.stack(
            [
                np.vecdot(weights, (1.0 - lasts - lost) / rates),
                np.vecdot(weights, lost),
                np.vecdot(weights, lasts * rates),
            ]
        )

    def _noisy(self, weights: FloatArray, elapsed: FloatArray, signals: FloatArray) -> FloatArray:
        """Return crawl values of importance 1, their slopes, and bounds on the slopes' slopes; shape (3, n)."""
        rates, (rate, weight, evidence) = self._grid.rates, signals
        found, stale = np.empty((3, elapsed.size)), elapsed[:, np.newaxis] * rates + evidence[:, np.newaxis]
        alpha = np.broadcast_to(rates, stale.shape).ravel()
        value, slope = noisy_terms(stale.ravel(), alpha, rate.repeat(rates.size), weight.repeat(rates.size))
        found[0] = np.vecdot(weights, value.reshape(stale.shape))
        found[1] = np.vecdot(weights, slope.reshape(stale.shape) * rates)
        found[2] = np.vecdot(weights, np.exp(-stale) * rates)
        return found

    def _new_values(self, pages: IndexArray) -> FloatArray:
        """Return what pages of importance 1 are worth of which there is no copy."""
        values = np.zeros(pages.size)
        for parameters, part in self.in_force.by_parameters(pages):
            rows = slice(None) if part is None else part
            values[rows] = parameters.new_values[parameters.groups(self._pages.host[pages[rows]])]
        return values
