"""Crawl values of pages as things stand: the one place where what is known of a page becomes what it is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.crawl_value.reaching import Grid, gain, tangent_wait
from crawlsched.estimators import Posterior
from crawlsched.frontier import CrawlValues
from crawlsched.pages import Pages
from crawlsched.planner.evidence.announcements import Announcements
from crawlsched.planner.plans.in_force import InForce

__all__ = ["PosteriorValues"]

# So many pages at once: their rates stay in the cache.
_BLOCK = 1024


class PosteriorValues(CrawlValues):
    """The posterior crawl value (design, section 4): the expectation of the crawl value over what is still possible."""

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
        parameters = self.in_force.parameters
        groups = parameters.groups(self._pages.host[pages])
        return self._posterior.weights_many(pages, getattr(parameters, name), groups, parameters.learning_rate)

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
        """Return about when crawl values of pages with a copy reach a level; early where there are announcements."""
        crawled_at, importance = self._pages.crawled_at[pages], self._pages.importance[pages].astype(np.float64)
        levels = np.broadcast_to(np.asarray(level, np.float64), pages.shape)
        times = np.where(levels > 0.0, np.inf, now)
        grows = np.flatnonzero((importance > 0.0) & (levels > 0.0))
        if not grows.size:
            return times
        # As if nothing were to be announced any more: announcements to come only lower a value.
        pages, aim = pages[grows], levels[grows] / importance[grows]
        signals, weights = self.announcements.gathered(pages), self.value_weights(pages)
        found = np.fmax(crawled_at[grows] + self._grid.elapsed_at(weights, aim), now)
        rate, weight, evidence = signals
        elapsed = np.maximum(now - crawled_at[grows], 0.0)
        noisy = (rate > 0.0) & (weight > 0.0)
        announced = np.flatnonzero(noisy & (evidence > 0.0))
        if announced.size:
            likely_stale = elapsed[announced, np.newaxis] * self._grid.rates + evidence[announced, np.newaxis]
            value, slope, curvature = self._grid.announced(weights[announced], likely_stale)
            found[announced] = now + tangent_wait(aim[announced] - value, slope, curvature)
        close = np.flatnonzero(noisy & (found <= now))
        if close.size:
            value, slope, curvature = self._grid.noisy(weights[close], elapsed[close], signals[:, close])
            found[close] = now + tangent_wait(aim[close] - value, slope, curvature)
        times[grows] = found
        return times

    def _values(
        self, pages: IndexArray, crawled_at: FloatArray, signals: FloatArray, now: float | FloatArray
    ) -> FloatArray:
        # Of a page never crawled the time since its crawl is infinite, and its value the limit of all values.
        values, elapsed = np.empty(pages.size), np.maximum(now - crawled_at, 0.0)
        rate, weight, _ = signals
        noisy = (rate > 0.0) & (weight > 0.0) & (elapsed < np.inf)
        for start in range(0, pages.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            weights, heard = self.value_weights(pages[part]), np.flatnonzero(noisy[part])
            # One dot product a page and not a matrix product, whose rounding depends on how many pages there are.
            values[part] = np.vecdot(weights, gain(elapsed[part, np.newaxis], self._grid.rates))
            if heard.size:
                at = start + heard
                values[at] = self._grid.noisy(weights[heard], elapsed[at], signals[:, at])[0]
        values *= self._pages.importance[pages]
        positive: FloatArray = np.maximum(values, 0.0)
        return positive
