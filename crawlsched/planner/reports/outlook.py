"""An outlook: how fresh pages would be at any bandwidth, from what is known of them now."""

from __future__ import annotations

from sys import float_info
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.blocks import blocks
from crawlsched.estimators.observations import check_positive
from crawlsched.freshness import page_freshness
from crawlsched.pages import ERROR, LIVE, NEW, REFUSED
from crawlsched.planner.planner import Planner

__all__ = ["MOST_COUNTED", "Outlook", "known_fresh", "wanted"]

# In these states a page should have a fresh copy. A page that is gone or moved needs no copy.
_WANTED = (NEW, LIVE, ERROR)


def wanted(planner: Planner, rows: Any) -> Any:
    """Return the pages that should be fresh, including pages that had a copy and fail now."""
    pages = planner.pages
    state = pages.state[rows]
    had_one = (state == REFUSED) & (pages.n_crawls[rows] > 0)
    return rows[np.isin(state, _WANTED) | had_one | pages.failing(rows)]


def known_fresh(planner: Planner, rows: Any, now: float) -> FloatArray:
    """Return the probability that pages are fresh; 0 if they fail or have no copy."""
    fresh: FloatArray = np.where(planner.pages.state[rows] == LIVE, planner.values.fresh(rows, now), 0.0)
    return fresh


# Sums are computed for thresholds at these crawl values. These levels cover every importance and waits from a moment to
# years.
_LEVELS: FloatArray = np.geomspace(1e-12, 1e20, 32 * 16 + 1)
_LOG_LEVELS: FloatArray = np.log(_LEVELS)
# Values are computed for these elapsed times, eight per factor of 10. The unit is the mean interval between two crawls
# of a page.
_ELAPSED: FloatArray = np.geomspace(1e-3, 1e4, 7 * 8 + 1)


class Outlook:
    """Add up, page by page, the crawls and the freshness that result from each threshold of the crawl value.

    Parameters
    ----------
    seen_within : float, optional
        `seen` counts the changes that are seen within this number of seconds.

    Notes
    -----
    A page is crawled when its crawl value V(τ, n) reaches the threshold Λ, τ seconds and n ChangeSignals after its last
    crawl. V does not fall while a page waits, so the page still waits at τ if and only if V(τ, N(τ)) < Λ. Signals come
    at random, γ a second. So a cycle from one crawl to the next takes C = ∫ P(V(τ, N(τ)) < Λ) dτ seconds on average.
    The copy is fresh for F = ∫ E[exp(-α τ - κ N(τ)); V(τ, N(τ)) < Λ] dτ of these seconds. The expectation is also over
    the rates α that are still possible. The page is crawled 1/C times a second, and its freshness is F/C. This is the
    renewal argument of Lemma 4 in the noisy-signals paper, for unknown rates. Both integrals are sums over cells
    (τ, n). If the cells are sorted by value, the sums for all thresholds are computed together.

    An unannounced change at τ is seen within X if V(τ + X, N(τ)) ≥ Λ. An announced change is seen within X if
    V(τ + X, N(τ) + 1) ≥ Λ. Announcements in the X seconds after the change are left out, so in truth a few more changes
    are seen in time. Changes are spread evenly over time. So the number of a cycle's changes that are seen in time is
    the rate of changes times C - ∫ P(V(τ + X, N(τ)) < Λ) dτ.

    Pages without a copy count as if they had a copy, since first copies have their own share of the slots. The
    posterior stays as it is now; a real crawl goes on learning and does a little better. Announcements within
    `signal_delay` of a crawl count here, although they are discarded in a crawl. Hosts' limits are left out.

    Examples
    --------
    >>> from crawlsched.planner import Planner
    >>> planner = Planner(bandwidth=1 / 60)
    >>> pages = planner.add(host=0, now=0.0, n=100)
    >>> outlook = Outlook(mean_interval=6000.0)
    >>> outlook.add(planner, pages)
    >>> round(outlook.freshness(1 / 60), 2), round(outlook.freshness(1 / 30), 2)
    (0.58, 0.62)
    """

    def __init__(self, mean_interval: float, seen_within: float | None = None) -> None:
        mean_interval = check_positive(mean_interval, "mean_interval", "seconds")
        self._edges: FloatArray = np.concatenate([[0.0], _ELAPSED * mean_interval])
        self._importance = 0.0
        self._pages = 0.0
        self._wanted = np.zeros(_LEVELS.size + 1)
        self._fresh = np.zeros(_LEVELS.size + 1)
        self._fresh_in_turn = np.zeros(self._edges.size)
        self._within = seen_within
        self._changes = 0.0
        self._seen = np.zeros(_LEVELS.size + 1)

    def add(self, planner: Planner, pages: IndexArray, each: float = 1.0) -> None:
        """Add pages; if they are a sample, every page stands for `each` pages."""
        _, signal_weight = planner.announcements.signals(pages)
        edges = self._edges
        all_limits = planner.intervals.limits
        floors = [seconds for limits in all_limits for seconds in limits if 0.0 < seconds < np.inf]
        edges = np.union1d(edges, np.minimum(floors, edges[-1])) if floors else edges
        for signalled in (False, True):
            chosen = pages[(signal_weight > 0) == signalled]
            n_cells = edges.size * (6 if signalled else 1)
            for part in blocks(chosen.size, 8 * n_cells):
                self._add(planner, chosen[part], each, edges)

    def _add(self, planner: Planner, pages: IndexArray, each: float, edges: FloatArray) -> None:
        cells = _Cells(planner, pages, edges, self._within)
        importance = planner.pages.importance[pages].astype(np.float64)
        self._importance += each * float(importance.sum())
        self._pages += each * pages.size
        # If pages are crawled in turn, it makes no difference whether a change is announced.
        change_rates = planner.posterior.rates[:, np.newaxis] + cells.change_rates[1][:, np.newaxis, np.newaxis]
        in_turn = page_freshness(1.0 / np.maximum(self._edges, 1e-9), change_rates)
        in_turn = (planner.values.weights(pages)[:, :, np.newaxis] * in_turn).sum(axis=1)
        self._fresh_in_turn += each * (importance @ in_turn)
        for row in range(pages.size):
            cycle, fresh = cells.by_level(row)
            if self._within is not None:
                self._changes += each * importance[row] * cells.change_rates[:, row].sum()
                self._seen += each * importance[row] * cells.seen_by_level(row) / cycle
            self._wanted += each / cycle
            self._fresh += each * importance[row] * fresh / cycle

    @property
    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Bandwidths, increasing, and the freshness at each bandwidth."""
        return self._wanted[::-1], self._fresh[::-1] / self._importance

    @property
    def largest_bandwidth(self) -> float:
        """The largest bandwidth that is useful, or the largest for which values are computed; crawls per second."""
        return float(self._wanted[0])

    def freshness(self, bandwidth: float) -> float:
        """Return the freshness at a bandwidth, 0 to 1; it is constant above the largest useful bandwidth."""
        wanted, fresh = self.curve
        if bandwidth < wanted[0]:
            # The longest crawl interval needs more than this bandwidth, so the page that has waited longest is crawled
            # first.
            return self.freshness_in_turn(bandwidth)
        return float(np.interp(bandwidth, wanted, fresh))

    def freshness_in_turn(self, bandwidth: float) -> float:
        """Return the freshness if all pages were crawled in turn at a bandwidth."""
        return float(np.interp(self._pages / bandwidth, self._edges, self._fresh_in_turn / self._importance))

    def bandwidth(self, freshness: float) -> float:
        """Return the smallest bandwidth that reaches a freshness, crawls per second; inf: there is none."""
        in_turn = self._fresh_in_turn[::-1] / self._importance
        slowest = self._pages / max(np.interp(freshness, in_turn, self._edges[::-1]), float_info.min)
        return self._least(self.curve[1], freshness, slowest)

    def _least(self, reached: FloatArray, aim: float, in_turn: float) -> float:
        """Return the smallest bandwidth that reaches an aim, from the curve or (below the curve) from `in_turn`."""
        wanted, reached = self._wanted[::-1], np.maximum.accumulate(reached)
        if aim > reached[-1]:
            return float(np.inf)
        at = int(reached.searchsorted(aim))
        if at == 0:
            # This bandwidth is less than the longest crawl interval needs: see `freshness`.
            return float(min(wanted[0], in_turn))
        share = (aim - reached[at - 1]) / (reached[at] - reached[at - 1])
        return float(wanted[at - 1] + share * (wanted[at] - wanted[at - 1]))

    def seen(self, bandwidth: float) -> float:
        """Return the share of changes, weighted by importance, that are seen within `seen_within` at a bandwidth."""
        assert self._within is not None
        if bandwidth < self._wanted[-1]:
            return min(self._within * bandwidth / self._pages, 1.0)
        return float(np.interp(bandwidth, self._wanted[::-1], self._seen[::-1] / self._changes))

    def bandwidth_to_see(self, share: float) -> float:
        """Return the smallest bandwidth at which a share of changes is seen in time, crawls per second; inf: none."""
        assert self._within is not None
        return self._least(self._seen[::-1] / self._changes, share, self._pages * share / self._within)


class _Cells:
    """What happens to pages after a crawl. Each cell is a range of elapsed time and a number of signals.

    Attributes
    ----------
    values : ndarray, shape (n,)
        Crawl value of each cell.
    time, fresh : ndarray, shape (n,)
        Mean seconds that a page spends in the cell if it is not crawled before, and the part of these seconds in which
        its copy is fresh.
    change_rates : ndarray, shape (2, n_pages)
        Unannounced changes per second, and announced changes per second.
    """

    def __init__(self, planner: Planner, pages: IndexArray, edges: FloatArray, within: float | None) -> None:
        rate, weight = planner.announcements.signals(pages)
        rows, times, counts, probability = _cells_of(rate * (weight > 0), edges)
        elapsed = (edges[times] + edges[times + 1]) / 2
        values = planner.crawl_values.supposing(pages[rows], -elapsed, counts, 0.0)
        shortest = planner.intervals.shortest(pages)
        values[elapsed < shortest[rows]] = 0.0
        rates, weights = planner.posterior.rates, planner.values.weights(pages)
        self.change_rates = np.stack([weights @ rates, rate * -np.expm1(-weight)])
        self._within, self._then = within, list[FloatArray]()
        if within is not None:
            later = elapsed + within
            for further in (0, 1):
                then = planner.crawl_values.supposing(pages[rows], -later, counts + further, 0.0)
                then[later < shortest[rows]] = 0.0
                self._then.append(then)
        # The mean of (1 - exp(-α τ))/α: for how long a copy is fresh in the first τ seconds, if nothing is announced.
        halves = np.interp(np.arange(2 * edges.size - 1) / 2, np.arange(edges.size), edges)
        fresh_until = weights @ (-np.expm1(-np.outer(rates, halves)) / rates[:, np.newaxis])
        each, later = np.diff(fresh_until[:, ::2]), fresh_until[:, 2::2] - fresh_until[:, 1::2]
        unannounced = probability * np.exp(-weight[rows] * counts)
        self.time = np.diff(edges)[times] * probability
        self.fresh, self._fresh_later = each[rows, times] * unannounced, later[rows, times] * unannounced
        self.values, self._times, self._edges = values, times, edges
        self._starts = np.searchsorted(rows, np.arange(pages.size + 1))
        self.until = planner.intervals.longest(pages)

    def by_level(self, row: int) -> tuple[FloatArray, FloatArray]:
        """Return seconds and fresh seconds of a cycle, for thresholds at all levels and an unreachable threshold."""
        time = self._below(row, self.values, self.time, self.time / 2)
        return time, self._below(row, self.values, self.fresh, self._fresh_later)

    def seen_by_level(self, row: int) -> FloatArray:
        """Return how many changes of a cycle are seen in time, for the same thresholds as `by_level`."""
        assert self._within is not None
        time, seen = self._below(row, self.values, self.time, self.time / 2), np.zeros(_LEVELS.size + 1)
        for rate, values in zip(self.change_rates[:, row].tolist(), self._then, strict=True):
            waiting = self._below(row, values, self.time, self.time / 2, self._within)
            seen += rate * np.maximum(time - waiting, 0.0)
        return seen

    def _below(
        self, row: int, values: FloatArray, column: FloatArray, later: FloatArray, sooner: float = 0.0
    ) -> FloatArray:
        """Return sums of `column` over a page's cells with values below each level, and over all its cells.

        `later` has the part of each number that belongs to the second half of its cell.
        """
        part = slice(self._starts[row], self._starts[row + 1])
        waits = self._edges[self._times[part]] < self.until[row] - sooner
        if not waits.any():
            return np.zeros(_LEVELS.size + 1)
        order = np.argsort(values[part][waits], kind="stable")
        until = np.cumsum(column[part][waits][order])
        # The value of a cell is the value at the cell's middle. Between two cells, sums grow like powers of the value.
        logs = np.log(until - later[part][waits][order])
        at = np.log(np.maximum(values[part][waits][order], _LEVELS[0] ** 2))
        left = -np.inf if sooner else None
        middle = np.exp(np.interp(_LOG_LEVELS, at, logs, left=left, right=np.log(until[-1])))
        return np.append(middle, until[-1])


def _cells_of(signal_rate: FloatArray, edges: FloatArray) -> tuple[IndexArray, IndexArray, FloatArray, FloatArray]:
    """Return the cells that matter, ordered by row and then by time.

    The arrays are: row, time, a number of signals, and the probability of this number.
    """
    expected = signal_rate[:, np.newaxis] * ((edges[:-1] + edges[1:]) / 2)
    counts, probability = counts_at_random(expected.ravel())
    matters = np.flatnonzero(probability.ravel() > 0.0)
    cell = matters // counts.shape[1]
    return cell // (edges.size - 1), cell % (edges.size - 1), counts.ravel()[matters], probability.ravel()[matters]


# Up to this mean number, signals are counted one by one. For larger means, five nodes represent the distribution.
_FEW = 9.0
#: The largest number that is counted: five standard deviations above that mean.
MOST_COUNTED = round(_FEW + 5.0 * _FEW**0.5)


def counts_at_random(mean: FloatArray, least_probability: float = 1e-5) -> tuple[FloatArray, FloatArray]:
    """Return numbers and their probabilities, one row per mean: Poisson, or five nodes of a normal distribution.

    Numbers with a probability of `least_probability` or less are left out.
    """
    counts = np.tile(np.arange(MOST_COUNTED + 1.0), (mean.size, 1))
    few = np.minimum(mean, _FEW)[:, np.newaxis]
    factorials = np.cumsum(np.log(np.maximum(np.arange(MOST_COUNTED + 1.0), 1.0)))
    probability = np.exp(counts * np.log(np.maximum(few, float_info.min)) - few - factorials)
    probability[probability <= least_probability] = 0.0
    many = mean > _FEW
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    probability[many] = np.pad(weights, (0, MOST_COUNTED + 1 - nodes.size))
    counts[many, : nodes.size] = np.maximum(mean[many, np.newaxis] + np.sqrt(mean[many, np.newaxis]) * nodes, 0.0)
    return counts, probability / probability.sum(axis=1, keepdims=True)
