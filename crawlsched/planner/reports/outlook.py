"""An outlook: how fresh pages would be at any bandwidth, by what is known of them now."""

from __future__ import annotations

from functools import cache

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.planner.planner import Planner

__all__ = ["Outlook"]


# Crawl values at which sums are kept: of any importance, and from a moment after a crawl to years.
_LEVELS: FloatArray = np.geomspace(1e-12, 1e15, 27 * 16 + 1)
_LOG_LEVELS: FloatArray = np.log(_LEVELS)
# Elapsed times that are looked at, in mean intervals between two crawls of a page, and how many per factor of 10.
_SHORTEST, _LONGEST, _PER_DECADE = 1e-3, 1e4, 8
# So many announcements are counted one by one; more come in such numbers that five stand for all.
_COUNTED = 24
_MANY = 9.0
_LEAST_PROBABILITY = 1e-5
# Cells whose values are asked for at once: some megabytes.
_CELLS_AT_ONCE = 16_384


class Outlook:
    """Add up, page by page, what each threshold of the crawl value costs and gives.

    Parameters
    ----------
    mean_interval : float
        About how many seconds lie between two crawls of a page at the bandwidths that will be asked about; it may be a
        hundred times too long or too short.

    Notes
    -----
    A page is crawled when its crawl value V(τ, n) reaches the threshold Λ, τ seconds and n ChangeSignals after its last
    crawl. V never falls while a page waits, so it still waits at τ if and only if V(τ, N(τ)) < Λ. With signals coming
    at random, γ a second, one cycle takes C = ∫ P(V(τ, N(τ)) < Λ) dτ seconds on average, and its copy is fresh for
    F = ∫ E[exp(-α τ - κ N(τ)); V(τ, N(τ)) < Λ] dτ of them, the expectation being over the rates α that are still
    possible, too. The page is crawled 1/C times a second, and F/C is its freshness: the renewal argument by which the
    noisy-signals paper derives Lemma 4, without knowing the rates. Both integrals are sums over cells (τ, n), and
    sorting the cells by value gives them for all thresholds at once.

    What is known stays as it is: a crawl that goes on learning does a little better, and announcements within
    `signal_delay` of a crawl count as if they had been taken. Hosts' limits are left out.

    Examples
    --------
    >>> from crawlsched.planner import Planner
    >>> planner = Planner(bandwidth=1 / 60)
    >>> pages = planner.add(host=0, now=0.0, n=100)
    >>> outlook = Outlook(mean_interval=6000.0)
    >>> outlook.add(planner, pages, now=0.0)
    >>> round(outlook.freshness(1 / 60), 2), round(outlook.freshness(1 / 30), 2)
    (0.58, 0.62)
    """

    def __init__(self, mean_interval: float) -> None:
        if not 0 < mean_interval < np.inf:
            raise ValueError(f"mean_interval must be seconds above 0 and finite, got {mean_interval!r}.")
        decades = round(np.log10(_LONGEST / _SHORTEST))
        times = np.geomspace(_SHORTEST * mean_interval, _LONGEST * mean_interval, decades * _PER_DECADE + 1)
        self._edges: FloatArray = np.concatenate([[0.0], times])
        self._importance = 0.0
        self._pages = 0.0
        self._wanted = np.zeros(_LEVELS.size + 1)
        self._fresh = np.zeros(_LEVELS.size + 1)
        self._fresh_in_turn = np.zeros(self._edges.size)

    def add(self, planner: Planner, pages: IndexArray, now: float, each: float = 1.0) -> None:
        """Add pages.

        Parameters
        ----------
        planner : Planner
            It knows them; nothing of it is changed.
        pages : ndarray of int
        now : float
            POSIX seconds.
        each : float
            How many pages each of them stands for, where they are a sample.
        """
        _, signal_weight = planner.values.signals(pages)
        edges = self._edges
        all_limits = (planner.intervals.general, *planner.intervals.rules)
        floors = [seconds for limits in all_limits for seconds in limits if 0.0 < seconds < np.inf]
        edges = np.union1d(edges, np.minimum(floors, edges[-1])) if floors else edges
        for signalled in (False, True):
            chosen = pages[(signal_weight > 0) == signalled]
            at_once = max(1, _CELLS_AT_ONCE // (edges.size * (6 if signalled else 1)))
            for start in range(0, chosen.size, at_once):
                self._add(planner, chosen[start : start + at_once], now, each, edges)

    def _add(self, planner: Planner, pages: IndexArray, now: float, each: float, edges: FloatArray) -> None:
        cells = _Cells(planner, pages, edges)
        importance = planner.pages.importance[pages].astype(np.float64)
        self._importance += each * float(importance.sum())
        self._pages += each * pages.size
        self._fresh_in_turn += each * (importance @ cells.fresh_in_turn(self._edges))
        entry = np.where(np.isneginf(planner.pages.crawled_at[pages]), planner.crawl_values.many(pages).at(now), np.inf)
        for row in range(pages.size):
            cycle, fresh = cells.by_level(row)
            # A first crawl comes when the value of one reaches the threshold, or when the page is overdue, or never.
            late = np.append(entry[row] < _LEVELS, entry[row] < np.inf)
            overdue = cells.until[row] < np.inf
            cycle[late], fresh[late] = (cycle[-1], fresh[-1]) if overdue else (np.inf, 0.0)
            self._wanted += each / cycle
            self._fresh += each * importance[row] * fresh / cycle

    @property
    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Bandwidths, increasing, and the freshness at each."""
        return self._wanted[::-1], self._fresh[::-1] / self._importance

    @property
    def largest_bandwidth(self) -> float:
        """What can be put to use, or the most that can be told about; crawls per second."""
        return float(self._wanted[0])

    def freshness(self, bandwidth: float) -> float:
        """Return the freshness that a bandwidth gives, 0 to 1; more than can be put to use changes nothing."""
        wanted, fresh = self.curve
        if bandwidth < wanted[0]:
            # The longest crawl interval asks for more than there is, and who waits longest goes first.
            return self.freshness_in_turn(bandwidth)
        return float(np.interp(bandwidth, wanted, fresh))

    def freshness_in_turn(self, bandwidth: float) -> float:
        """Return the freshness if the same bandwidth crawled all pages in turn."""
        return float(np.interp(self._pages / bandwidth, self._edges, self._fresh_in_turn / self._importance))

    def bandwidth(self, freshness: float) -> float:
        """Return the least bandwidth that gives a freshness, crawls per second; inf where none does."""
        wanted, fresh = self.curve
        fresh = np.maximum.accumulate(fresh)
        if freshness > fresh[-1]:
            return float(np.inf)
        at = int(fresh.searchsorted(freshness))
        if at == 0:
            # Less than what the longest interval asks for: see `freshness`.
            in_turn = self._fresh_in_turn[::-1] / self._importance
            return float(min(wanted[0], self._pages / max(np.interp(freshness, in_turn, self._edges[::-1]), 1e-300)))
        share = (freshness - fresh[at - 1]) / (fresh[at] - fresh[at - 1])
        return float(wanted[at - 1] + share * (wanted[at] - wanted[at - 1]))


class _Cells:
    """What happens to pages after a crawl, cell by cell: so much time passed, so many signals came.

    Attributes
    ----------
    values : ndarray, shape (n,)
        Crawl value of each cell.
    time, fresh : ndarray, shape (n,)
        Seconds that a page spends in the cell if it is not crawled before, and how many of them its copy is fresh.
    """

    def __init__(self, planner: Planner, pages: IndexArray, edges: FloatArray) -> None:
        rate, weight = planner.values.signals(pages)
        rows, times, counts, probability = _cells_of(rate * (weight > 0), edges)
        elapsed = (edges[times] + edges[times + 1]) / 2
        values = planner.crawl_values.supposing(pages[rows], -elapsed, counts).at(0.0)
        shortest = np.broadcast_to(planner.intervals.shortest(pages), pages.shape)
        values[elapsed < shortest[rows]] = 0.0
        rates = planner.posterior.rates
        # How long a copy is fresh until a time, if nothing were announced: the mean of (1 - exp(-α τ))/α.
        halves = np.interp(np.arange(2 * edges.size - 1) / 2, np.arange(edges.size), edges)
        fresh_until = planner.values.weights(pages) @ (-np.expm1(-np.outer(rates, halves)) / rates[:, np.newaxis])
        each, later = np.diff(fresh_until[:, ::2]), fresh_until[:, 2::2] - fresh_until[:, 1::2]
        unannounced = probability * np.exp(-weight[rows] * counts)
        self.time = np.diff(edges)[times] * probability
        self.fresh, self._fresh_later = each[rows, times] * unannounced, later[rows, times] * unannounced
        self.values, self._times, self._edges = values, times, edges
        self._starts = np.searchsorted(rows, np.arange(pages.size + 1))
        self.until = np.broadcast_to(planner.intervals.longest(pages), pages.shape)

    def by_level(self, row: int) -> tuple[FloatArray, FloatArray]:
        """Return, for a threshold at each level and for one never reached, a cycle's seconds and those of freshness."""
        part = slice(self._starts[row], self._starts[row + 1])
        waits = self._edges[self._times[part]] < self.until[row]
        order = np.argsort(self.values[part][waits], kind="stable")
        values = np.log(np.maximum(self.values[part][waits][order], _LEVELS[0] ** 2))
        found = []
        for column, later in ((self.time, self.time / 2), (self.fresh, self._fresh_later)):
            until = np.cumsum(column[part][waits][order])
            # A cell has the value of its middle. Between two both grow like powers of the value.
            logs = np.log(until - later[part][waits][order])
            middle = np.exp(np.interp(_LOG_LEVELS, values, logs, right=np.log(until[-1])))
            found.append(np.append(middle, until[-1]))
        return found[0], found[1]

    def fresh_in_turn(self, edges: FloatArray) -> FloatArray:
        """Return for each page the share of fresh time if it is crawled every so many seconds, shape (n, edges)."""
        shares = np.ones((self._starts.size - 1, edges.size))
        for row in range(shares.shape[0]):
            part = slice(self._starts[row], self._starts[row + 1])
            by_time = np.bincount(self._times[part], self.fresh[part], self._edges.size - 1)
            until = np.concatenate([[0.0], np.cumsum(by_time)])
            shares[row, 1:] = np.interp(edges[1:], self._edges, until) / edges[1:]
        return shares


def _cells_of(signal_rate: FloatArray, edges: FloatArray) -> tuple[IndexArray, IndexArray, FloatArray, FloatArray]:
    """Return row, time, number of signals and its probability of every cell that matters, by rows and then times."""
    expected = signal_rate[:, np.newaxis] * ((edges[:-1] + edges[1:]) / 2)
    counts, probability = _poisson(expected.ravel())
    matters = np.flatnonzero(probability.ravel() > _LEAST_PROBABILITY)
    cell = matters // counts.shape[1]
    return cell // (edges.size - 1), cell % (edges.size - 1), counts.ravel()[matters], probability.ravel()[matters]


def _poisson(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return numbers and their probabilities, a row for each mean: Poisson, or five nodes of a normal distribution."""
    counts = np.tile(np.arange(_COUNTED + 1.0), (mean.size, 1))
    few = np.minimum(mean, _MANY)[:, np.newaxis]
    with np.errstate(divide="ignore"):
        logs = np.log(few)
    powers = np.where(counts == 0, 0.0, counts * np.where(np.isfinite(logs), logs, -1e300))
    probability = np.exp(powers - few - _log_factorials())
    probability[probability <= _LEAST_PROBABILITY] = 0.0
    many = mean > _MANY
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    probability[many] = np.pad(weights, (0, _COUNTED + 1 - nodes.size))
    counts[many, : nodes.size] = np.maximum(mean[many, np.newaxis] + np.sqrt(mean[many, np.newaxis]) * nodes, 0.0)
    return counts, probability / probability.sum(axis=1, keepdims=True)


@cache
def _log_factorials() -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, _COUNTED + 1)))])
