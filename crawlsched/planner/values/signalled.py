"""The posterior crawl value of pages, as the frontier asks for it: now, its bounds, and when it reaches a level."""

from __future__ import annotations

from functools import lru_cache
from math import inf, sqrt
from typing import Any

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.compiling import Compilable
from crawlsched.crawl_value.evaluation import COMPILED_FROM, ELEMENTS
from crawlsched.crawl_value.terms import noisy_terms
from crawlsched.frontier import PageValue, PageValues
from crawlsched.planner.values import posterior_loops
from crawlsched.planner.values.plug_in_loops import tangent_wait

__all__ = [
    "DOUBT",
    "Grid",
    "GrowingValue",
    "GrowingValues",
    "SignalledValue",
    "SignalledValues",
    "SteadyValue",
    "highest_gain",
    "shortfalls",
]


# Values are sums with an error of some units in the last place of (elapsed * importance); bounds stay clear of that.
SLACK = 1.0 + 1e-10
SLACK_PER_SECOND = 1e-14
_SLACK_BELOW = 4e-10
#: Compiled values with signals agree with numpy's to about 1e-14 of themselves.
DOUBT = 1e-12

# (1 - (1 + x) exp(-x)) / x is nowhere more than 0.2985: no rate makes a page worth more in so short a time.
_STEEPEST = 0.3

#: `crawlsched.planner.values.posterior_loops`: what decides picks, and all that compiled code can do faster.
LOOPS = Compilable(posterior_loops, uses=(ELEMENTS,))


class Grid:
    """A grid of change rates, with what makes crossing times quick: crawl values on a grid of elapsed times.

    Parameters
    ----------
    rates : ndarray, shape (K,)
        Changes per second, increasing.

    Attributes
    ----------
    elapsed : ndarray, shape (T,)
        Seconds, in equal ratios, from far below a second to far beyond any crawl.
    gain : ndarray, shape (T, K)
        Crawl value after that time of a page of importance 1 and that rate: (1 - (1 + r τ) exp(-r τ)) / r.
    slope : ndarray, shape (T, K)
        Its derivative by τ²/2: r exp(-r τ), which falls as τ grows.
    """

    def __init__(self, rates: FloatArray) -> None:
        self.rates: FloatArray = np.array(rates)  # never read-only: numba would compile everything once more for that
        self._rates_as_list: list[float] = rates.tolist()
        self.elapsed: FloatArray = np.geomspace(1e-3, 1e11, 384)
        self.gain = gain(self.elapsed[:, np.newaxis], rates)
        self.slope: FloatArray = rates * np.exp(-rates * self.elapsed[:, np.newaxis])

    def beside(self, weights: FloatArray) -> tuple[Any, Any]:
        """Return weights and rates as `LOOPS` takes them: lists of plain floats are faster, unless it is compiled."""
        return (weights, self.rates) if LOOPS.compiled else (weights.tolist(), self._rates_as_list)


def gain(elapsed: FloatArray | float, rates: FloatArray) -> FloatArray:
    """Return the GREEDY crawl value of importance 1, (1 - (1 + x) exp(-x)) / r with x = r τ.

    Its rounding error is below 1e-15 τ, whatever the rate.
    """
    return gain_and_slope(elapsed, rates)[0]


def gain_and_slope(elapsed: FloatArray | float, rates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return `gain`, and exp(-x) - 1: the slope by τ²/2 is r exp(-x)."""
    # Beyond x = 40 nothing is left of exp(-x), and x itself would only add its rounding.
    minus_x = np.maximum(rates * -elapsed, -40.0)
    lost = np.expm1(minus_x)
    # 1 - (1 + x) e^-x = -(e^-x - 1) - x (e^-x - 1) - x; no exponential is subtracted from 1.
    value = lost * minus_x
    value -= lost
    value += minus_x
    value /= rates
    return value, lost


def _with_slack(
    values: FloatArray, slope: FloatArray, curvature: FloatArray, weighted_elapsed: FloatArray
) -> FloatArray:
    """Return value, slope and half curvature of parabolas that rounding cannot lift a crawl value above."""
    found = np.empty((3, values.size))
    np.multiply(values, SLACK, out=found[0])
    found[0] += weighted_elapsed * SLACK_PER_SECOND
    np.multiply(slope, SLACK, out=found[1])
    np.multiply(curvature, 0.5 * SLACK, out=found[2])
    return found


def shortfalls(
    value: FloatArray,
    slope: FloatArray,
    bending: FloatArray,
    lasting: float,
    weighted_elapsed: FloatArray | float = 0.0,
) -> FloatArray:
    """Return how far crawl values may be below their parabolas; see `crawlsched.frontier.PageValues`.

    Parameters
    ----------
    value, slope : ndarray, shape (n,)
        Crawl value, and its slope in time, when the parabolas begin.
    bending : ndarray, shape (n,)
        By how much the slope's slope is below that of the parabola at most, the same for all of that time.
    lasting : float
        Seconds for which the parabolas hold.
    weighted_elapsed : ndarray, shape (n,), optional
        As for their slack.
    """
    found = np.empty((2, value.size))
    # The slack is added to parabolas, and as much may be missing from the values.
    np.multiply(slope, lasting, out=found[0])
    found[0] += value
    found[0] *= _SLACK_BELOW
    found[0] += 4.0 * SLACK_PER_SECOND * weighted_elapsed
    np.multiply(bending, 0.5 * SLACK, out=found[1])
    return found


def highest_gain(elapsed: float, fastest: float = inf) -> float:
    """Return what no crawl value of importance 1 exceeds if nothing was announced since the crawl.

    Whatever the rates, or whatever those up to the fastest: (1 - (1 + r τ) exp(-r τ)) / r is at most r τ²/2. The value
    of a page with announcements to come is at most that of one without, of the same unsignalled change rate.
    """
    return min(_STEEPEST, 0.5 * fastest * elapsed) * elapsed if elapsed > 0.0 else 0.0


class SteadyValue(PageValue):
    """A crawl value that does not depend on time: of a page never crawled, or of no importance."""

    __slots__ = ("_value",)
    steady = True

    def __init__(self, value: float) -> None:
        self._value = value

    def at(self, now: float) -> float:
        """Return the crawl value."""
        return self._value

    def bound(self, until: float, rough: bool = False) -> float:
        """Return the crawl value."""
        return self._value

    def parabola(self, after: float, until: float) -> tuple[float, float, float]:
        """Return the crawl value, and 0 twice."""
        return self._value, 0.0, 0.0

    def crossing(self, value: float, after: float) -> float:
        """Return inf."""
        return inf


def _growing(grid: Grid, weights: FloatArray, elapsed: float, importance: float) -> float:
    """Return the crawl value of one page without ChangeSignals, to the last bit the same compiled or not."""
    value: float = LOOPS.growing_value(*grid.beside(weights), elapsed) * importance if elapsed > 0.0 else 0.0
    return value if value > 0.0 else 0.0


class GrowingValue(PageValue):
    """The posterior crawl value of one page without ChangeSignals, V(τ) = μ Σ w_k (1 - (1 + r_k τ) exp(-r_k τ)) / r_k.

    Parameters
    ----------
    grid : Grid
    weights : ndarray, shape (K,)
        Posterior probability of each rate.
    crawled_at : float
        POSIX seconds.
    importance : float
        Above 0.
    """

    __slots__ = ("_crawled_at", "_grid", "_importance", "_weights")
    steady = False

    def __init__(self, grid: Grid, weights: FloatArray, crawled_at: float, importance: float) -> None:
        self._grid = grid
        self._weights = weights
        self._crawled_at = crawled_at
        self._importance = importance

    def at(self, now: float) -> float:
        """Return the crawl value."""
        return _growing(self._grid, self._weights, now - self._crawled_at, self._importance)

    def bound(self, until: float, rough: bool = False) -> float:
        """Return what the crawl value does not exceed until then."""
        return self.at(until) * SLACK + self._importance * max(until - self._crawled_at, 0.0) * SLACK_PER_SECOND

    def parabola(self, after: float, until: float) -> tuple[float, float, float]:
        """Return value, slope and half curvature of a parabola that the crawl value does not exceed."""
        elapsed = max(after - self._crawled_at, 0.0)
        value, curvature = LOOPS.growing_terms(*self._grid.beside(self._weights), elapsed)
        slack = self._importance * max(until - self._crawled_at, 0.0) * SLACK_PER_SECOND
        value, curvature = value * self._importance * SLACK + slack, curvature * self._importance * SLACK
        return value, curvature * elapsed, 0.5 * curvature

    def crossing(self, value: float, after: float) -> float:
        """Return a time before which the crawl value is below `value`; O(T K), compiled O(K log T)."""
        grid, weights, aim = self._grid, self._weights, value / self._importance
        if LOOPS.compiled:
            table, since = (grid.elapsed, grid.gain, grid.slope), float(after - self._crawled_at)
            wait: float = LOOPS.growing_crossing(weights, grid.rates, *table, aim, since)
            return max(after, self._crawled_at + wait)
        # As `posterior_loops.growing_crossing`: by a tangent to V as a function of τ²/2.
        values = grid.gain @ weights
        cell = int(values.searchsorted(aim))
        if cell == 0:
            return after
        if cell == values.size:
            return inf
        below = grid.elapsed.item(cell - 1)
        rise = 2.0 * (aim - values.item(cell - 1)) / float(grid.slope[cell - 1].dot(weights))
        elapsed = sqrt(below * below + rise)
        # A second tangent, where the first one reaches the level: among ten million pages the per mille that the table
        # is off would be a thousand ticks, in each of which the page would be looked at again.
        reached, lost = gain_and_slope(elapsed, grid.rates)
        lost += 1.0
        lost *= grid.rates
        missing, slope = aim - float(np.vecdot(weights, reached)), float(np.vecdot(weights, lost))
        if missing > 0.0 < slope:
            elapsed = sqrt(elapsed * elapsed + 2.0 * missing / slope)
        return max(after, self._crawled_at + elapsed * (1 - 1e-9))


class GrowingValues(PageValues):
    """`GrowingValue` for many pages at once.

    Parameters
    ----------
    grid : Grid
    weights : ndarray, shape (n, K)
    crawled_at, importance : ndarray, shape (n,)
    """

    def __init__(self, grid: Grid, weights: FloatArray, crawled_at: FloatArray, importance: FloatArray) -> None:
        self._grid = grid
        self._weights = weights
        self._crawled_at = crawled_at
        self._importance = importance
        self.steady: BoolArray = np.zeros(crawled_at.size, bool)
        # Of the last parabolas: when they begin, `_terms` there, and until when they hold.
        self._known: tuple[float, FloatArray, FloatArray, FloatArray] | None = None
        self._until = -inf

    def at(self, now: float) -> FloatArray:
        """Return the crawl values."""
        elapsed = np.maximum(now - self._crawled_at, 0.0)
        # One dot product per page and not a matrix product, whose rounding depends on how many pages there are.
        values = np.vecdot(self._weights, gain(elapsed[:, np.newaxis], self._grid.rates)) * self._importance
        positive: FloatArray = np.maximum(values, 0.0)
        return positive

    def one(self, row: int) -> GrowingValue:
        """Return the crawl value of one of the pages."""
        return GrowingValue(self._grid, self._weights[row], self._crawled_at.item(row), self._importance.item(row))

    def one_at(self, row: int, now: float) -> tuple[float, float]:
        """Return what `one(row).at(now)` gives, and no doubt."""
        return _growing(
            self._grid, self._weights[row], now - self._crawled_at.item(row), self._importance.item(row)
        ), 0.0

    def some(self, rows: IndexArray) -> GrowingValues:
        """Return the crawl values of some of the pages."""
        return GrowingValues(self._grid, self._weights[rows], self._crawled_at[rows], self._importance[rows])

    def parabolas(self, after: float, until: float) -> FloatArray:
        """Return value, slope and half curvature of parabolas that no crawl value exceeds, shape (3, n)."""
        # The tangent of V as a function of τ²/2, in which it is concave.
        elapsed = np.maximum(after - self._crawled_at, 0.0)
        self._known, self._until = (after, *self._terms(after)), until
        _, value, curvature, _ = self._known
        curvature = curvature * self._importance
        return _with_slack(
            value * self._importance, curvature * elapsed, curvature, self._importance * (until - self._crawled_at)
        )

    def _terms(self, now: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return crawl values, and their slopes by τ²/2, per unit of importance; and r exp(-r τ)."""
        rates, elapsed = self._grid.rates, np.maximum(now - self._crawled_at, 0.0)
        values, lost = gain_and_slope(elapsed[:, np.newaxis], rates)
        lost += 1.0
        lost *= rates
        return np.vecdot(self._weights, values), np.vecdot(self._weights, lost), lost

    def shortfalls(self, rows: IndexArray) -> FloatArray | None:
        """Return how far some crawl values may be below the last parabolas; O(K) a page."""
        if self._known is None:
            return None
        after, value, curvature, fading = self._known
        crawled_at, importance = self._crawled_at[rows], self._importance[rows]
        elapsed = np.maximum(after - crawled_at, 0.0)
        # The slope at τ + u is Σ w r exp(-r τ - r u) (τ + u), at least Σ w r exp(-r τ) (1 - r u) (τ + u): after d
        # seconds what the second part of 1 - r u takes away is Σ w r² exp(-r τ) (τ d²/2 + d³/3).
        lasting = self._until - after
        fading = np.vecdot(self._weights[rows], fading[rows] * self._grid.rates) * importance
        terms = value[rows] * importance, curvature[rows] * importance * elapsed, fading * (elapsed + lasting / 1.5)
        return shortfalls(*terms, lasting, importance * (self._until - crawled_at))

    def crossings(self, values: FloatArray, after: float, where: BoolArray) -> FloatArray:
        """Return times before which the crawl values of some pages are below `values`; O(1) a page after parabolas."""
        start, aim = self._crawled_at[where], values / self._importance[where]
        # A tangent to V as a function of τ²/2 where the value is known reaches the level too early, and never too late.
        # To come closer takes another evaluation, which in numpy costs more than the looks that it saves.
        at, value, curvature, _ = self._known or (after, *self._terms(after))
        elapsed = np.maximum(at - start, 0.0)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            missing = aim - value[where] - elapsed * SLACK_PER_SECOND
            elapsed = np.sqrt(elapsed * elapsed + 2.0 * np.where(missing > 0, missing / curvature[where], 0.0))
        time: FloatArray = np.maximum(start + elapsed * (1 - 1e-9), after)
        return time


class SignalledValue(PageValue):
    """The posterior crawl value of one page with ChangeSignals; the grid is one of unsignalled change rates α.

    Parameters
    ----------
    grid : Grid
    weights : ndarray, shape (K,)
        Posterior probability of each rate.
    crawled_at : float
        POSIX seconds.
    importance : float
        Above 0.
    evidence : float
        Signal weight times the number of signals since the last crawl, nats.
    signal_rate : float
        Signals per second, above 0.
    signal_weight : float
        Nats, above 0.
    """

    __slots__ = ("_crawled_at", "_importance", "_natural", "_of_time", "_plain", "_terms_of_time")
    steady = False

    def __init__(
        self,
        grid: Grid,
        weights: FloatArray,
        crawled_at: float,
        importance: float,
        evidence: float,
        signal_rate: float,
        signal_weight: float,
    ) -> None:
        # As if no signal were ever to come; without one so far the value is at most that.
        self._plain = GrowingValue(grid, weights, crawled_at, importance)
        self._crawled_at = crawled_at
        self._importance = importance
        self._natural = evidence, signal_rate, signal_weight
        self._of_time = -inf
        self._terms_of_time = 0.0, 0.0, 0.0

    @property
    def doubt(self) -> float:
        """How far `at` may be from `exact`, as a share of it; 0 if it is the same."""
        return DOUBT if LOOPS.compiled else 0.0

    def _terms(self, now: float) -> tuple[float, float, float]:
        """Return crawl value, its slope in time, and a bound on the slope's slope."""
        if now != self._of_time:
            if LOOPS.compiled:
                grid, weights, importance = self._plain._grid, self._plain._weights, self._importance
                elapsed = max(now - self._crawled_at, 0.0)
                value, slope, curvature = LOOPS.signalled_terms(weights, grid.rates, elapsed, *self._natural)
                self._terms_of_time = max(value, 0.0) * importance, slope * importance, curvature * importance
            else:
                self._terms_of_time = self._exact_terms(now)
            self._of_time = now
        return self._terms_of_time

    def _exact_terms(self, now: float) -> tuple[float, float, float]:
        weights = self._plain._weights.tobytes()
        return _by_numpy(self._plain._grid, weights, now, self._crawled_at, self._importance, *self._natural)

    def at(self, now: float) -> float:
        """Return the crawl value."""
        return self._terms(now)[0]

    def exact(self, now: float) -> float:
        """Return the crawl value as it is without compiled code."""
        return self._exact_terms(now)[0]

    def bound(self, until: float, rough: bool = False) -> float:
        """Return what the crawl value does not exceed until then; a rough bound costs little."""
        if rough and not self._natural[0]:
            return self._plain.bound(until)
        return self.at(until) * SLACK + self._importance * max(until - self._crawled_at, 0.0) * SLACK_PER_SECOND

    def parabola(self, after: float, until: float) -> tuple[float, float, float]:
        """Return value, slope and half curvature of a parabola that the crawl value does not exceed."""
        value, slope, curvature = self._terms(after)
        slack = self._importance * max(until - self._crawled_at, 0.0) * SLACK_PER_SECOND
        return value * SLACK + slack, slope * SLACK, curvature * (0.5 * SLACK)

    def crossing(self, value: float, after: float) -> float:
        """Return a time before which the crawl value is below `value`; as `GrowingValue` before the first signal."""
        if not self._natural[0]:
            return self._plain.crossing(value, after)
        return after + tangent_wait(value, *self._terms(after))


@lru_cache(maxsize=256)
def _by_numpy(grid: Grid, weights: bytes, now: float, *columns: float) -> tuple[float, float, float]:
    """Return the terms of one `SignalledValue`; pages of which the same is known are often compared by the thousand."""
    arrays = (np.array([x]) for x in columns)
    one = SignalledValues(grid, np.frombuffer(weights)[np.newaxis], *arrays)
    terms = one.terms(now)
    value, slope, curvature = (float(term) for term in terms[:3, 0])
    return value, slope, curvature


class SignalledValues(PageValues):
    """`SignalledValue` for many pages at once; parameters are the same, one per page."""

    def __init__(
        self,
        grid: Grid,
        weights: FloatArray,
        crawled_at: FloatArray,
        importance: FloatArray,
        evidence: FloatArray,
        signal_rate: FloatArray,
        signal_weight: FloatArray,
    ) -> None:
        self._grid = grid
        self._weights = weights
        self._crawled_at = crawled_at
        self._importance = importance
        self._evidence = evidence
        self._signal_rate = signal_rate
        self._signal_weight = signal_weight
        self.steady: BoolArray = np.zeros(crawled_at.size, bool)
        # Of the last parabolas: when they begin, `_terms` there, and until when they hold.
        self._known: tuple[float, FloatArray] | None = None
        self._until = -inf

    def at(self, now: float) -> FloatArray:
        """Return the crawl values."""
        values: FloatArray = self.terms(now)[0]
        return values

    def one(self, row: int) -> SignalledValue:
        """Return the crawl value of one of the pages."""
        columns = self._crawled_at, self._importance, self._evidence, self._signal_rate, self._signal_weight
        return SignalledValue(self._grid, self._weights[row], *(column.item(row) for column in columns))

    def some(self, rows: IndexArray) -> SignalledValues:
        """Return the crawl values of some of the pages."""
        columns = self._crawled_at, self._importance, self._evidence, self._signal_rate, self._signal_weight
        return SignalledValues(self._grid, self._weights[rows], *(column[rows] for column in columns))

    def parabolas(self, after: float, until: float) -> FloatArray:
        """Return value, slope and half curvature of parabolas that no crawl value exceeds, shape (3, n)."""
        terms = self.terms(after)
        self._known, self._until = (after, terms), until
        return _with_slack(terms[0], terms[1], terms[2], self._importance * (until - self._crawled_at))

    def shortfalls(self, rows: IndexArray) -> FloatArray | None:
        """Return how far some crawl values may be below the last parabolas."""
        if self._known is None:
            return None
        after, terms = self._known
        value, slope, curvature, sinking = terms.take(rows, axis=1)
        lasting, weighted_elapsed = self._until - after, self._importance[rows] * (self._until - self._crawled_at[rows])
        return shortfalls(value, slope, curvature + sinking, lasting, weighted_elapsed)

    def crossings(self, values: FloatArray, after: float, where: BoolArray) -> FloatArray:
        """Return times before which the crawl values of some pages are below `values`; O(1) a page after parabolas."""
        # The slope of V is μ Σ w α exp(-α ι) ψ(ι) (Lemma 4 of the noisy-signals paper), and ψ grows by at most one
        # second a second: after d seconds V has grown by at most slope d + curvature d²/2, curvature μ Σ w α exp(-α ι).
        # So it is from where they are known already, too.
        start, terms = self._known or (inf, None)
        if terms is None or start > after:
            start, terms = after, self.terms(after)
        value, slope, curvature = terms[:3, where]
        missing = np.maximum(values - value, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            wait = 2.0 * missing / (slope + np.sqrt(slope * slope + 2.0 * curvature * missing))
        time: FloatArray = np.maximum(start + np.where(missing > 0, wait, 0.0) * (1 - 1e-9), after)
        return time

    def terms(self, now: float) -> FloatArray:
        """Return crawl values, slopes, bounds on the slopes' slopes, and how fast the slopes may fall; shape (4, n)."""
        rates, size = self._grid.rates, self._grid.rates.size
        found: FloatArray = np.empty((4, self._crawled_at.size))
        # Always few enough for the same code, so that a page's value does not depend on how many are asked for.
        block = (COMPILED_FROM - 1) // size
        for start in range(0, self._crawled_at.size, block):
            part = slice(start, start + block)
            elapsed = np.maximum(now - self._crawled_at[part], 0.0)
            stale = elapsed[:, np.newaxis] * rates
            stale += self._evidence[part, np.newaxis]
            alpha = np.broadcast_to(rates, stale.shape).ravel()
            gamma, kappa = self._signal_rate[part].repeat(size), self._signal_weight[part].repeat(size)
            value, slope = noisy_terms(stale.ravel(), alpha, gamma, kappa)
            weights, shape, sums = self._weights[part], stale.shape, found[:, part]
            np.maximum(np.vecdot(weights, value.reshape(shape)), 0.0, out=sums[0])
            slope = slope.reshape(shape)
            slope *= rates
            sums[1] = np.vecdot(weights, slope)
            np.negative(stale, out=stale)
            fading = np.exp(stale, out=stale)
            fading *= rates
            sums[2] = np.vecdot(weights, fading)
            # ψ never falls, so that after d seconds w α exp(-α ι) ψ(ι) is at least 1 - α d times what it was.
            slope *= rates
            sums[3] = np.vecdot(weights, slope)
        found *= self._importance
        return found
