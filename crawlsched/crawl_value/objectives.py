"""Crawl values of two other objectives than freshness: how old copies grow, and how long changes wait to be seen.

Whatever a copy costs a second, c(τ), τ seconds after its crawl, the crawl value by which pages are crawled at one
threshold is V(τ) = τ c(τ) - ∫₀^τ c = ∫₀^τ s dc(s): what a crawl now saves against the page's mean cost so far.

- `freshness`: c = 1 - exp(-Δτ), the probability that the copy is stale, gives `crawlsched.crawl_value.greedy`.
- `age`: c = τ - (1 - exp(-Δτ))/Δ, the mean time since the first change that the copy does not have.
- `delay`: c = Δτ, the mean number of changes that wait to be seen.

An announcement, or a change of pages around it, counts through the probability that the copy is fresh: with evidence e
(nats) since the crawl the page is by q = 1 - exp(-e) of a change further on, x = ατ + q in the place of Δτ.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import arguments

__all__ = ["OBJECTIVES", "Objective", "age_value", "delay_value", "value_of_rate"]

# Below this the closed form of the age's value loses digits, and its series has all of them.
_SMALL = 0.5
_SERIES = tuple((-1.0) ** (k + 1) / (float(np.prod(range(1, k + 1))) * (k + 2)) for k in range(1, 15))


class Objective(NamedTuple):
    """A crawl value as a function of x, the changes expected since the crawl: V = f(x) / Δ^power.

    Attributes
    ----------
    power : int
    worth, slope : callable
        f and its derivative, which rises with x.
    steepest : callable
        ``steepest(low, high)``: what the second derivative of f does not exceed between two x.
    loss : callable
        ``loss(seconds)``: what a copy costs a second that has been stale for about that time at most.
    """

    power: int
    worth: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    steepest: Callable[[FloatArray, FloatArray], FloatArray]
    loss: Callable[[FloatArray], FloatArray]


def _age(x: FloatArray) -> FloatArray:
    """Return x²/2 + x exp(-x) - (1 - exp(-x))."""
    small = np.minimum(x, _SMALL)
    series = np.zeros_like(small)
    for factor in reversed(_SERIES):
        series = series * small + factor
    lost = np.expm1(-x)
    value: FloatArray = np.where(x < _SMALL, series * small**3, x * (0.5 * x + 1.0 + lost) + lost)
    return value


def _age_steepest(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the largest 1 - exp(-x) + x exp(-x) between two x: it rises until 2, and falls from there."""
    x = np.clip(2.0, low, high)
    most: FloatArray = 1.0 + (x - 1.0) * np.exp(-x)
    return most


#: The objectives beside freshness by name. Ages have no bound, so their values have none: no page is given up.
OBJECTIVES: dict[str, Objective] = {
    "age": Objective(2, _age, lambda x: -x * np.expm1(-x), _age_steepest, lambda seconds: seconds / 2.0),
    "delay": Objective(
        1,
        lambda x: 0.5 * x * x,
        lambda x: x,
        lambda low, high: np.ones_like(low),
        lambda seconds: np.ones_like(seconds),
    ),
}


def age_value(elapsed: ArrayLike, change_rate: ArrayLike, importance: ArrayLike = 1.0) -> Any:
    """Crawl value where the mean age of copies is to be small: mu (tau²/2 + tau exp(-x)/Delta - (1 - exp(-x))/Delta²).

    Parameters
    ----------
    elapsed : array_like
        Seconds since the last crawl, finite.
    change_rate : array_like
        Changes per second, 0 or more; x = Delta tau.
    importance : array_like, optional
        Weight of the page.

    Returns
    -------
    array_like of float64
        Crawl value, in importance times seconds squared.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Age is the time since the first change that a copy does not have, as of Cho and Garcia-Molina, "Effective page
    refresh policies for Web crawlers", TODS 28 (2003).

    Examples
    --------
    >>> round(float(age_value(elapsed=2.0, change_rate=1000.0)), 6), round(float(age_value(3.0, 1.0)), 6)
    (1.999999, 3.699148)
    """
    return _value("age", elapsed, change_rate, importance)


def delay_value(elapsed: ArrayLike, change_rate: ArrayLike, importance: ArrayLike = 1.0) -> Any:
    """Crawl value where changes are to be seen soon: mu Delta tau²/2.

    Parameters
    ----------
    elapsed, change_rate, importance
        As for `age_value`.

    Returns
    -------
    array_like of float64
        Crawl value, in importance times changes times seconds.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Every change counts, and each from when it came: Sia, Cho and Cho, "Efficient monitoring algorithm for fast news
    alerts", TKDE 19 (2007). At one threshold pages are crawled at rates in proportion to the square roots of theirs.

    Examples
    --------
    >>> float(delay_value(elapsed=10.0, change_rate=0.5, importance=2.0))
    50.0
    """
    return _value("delay", elapsed, change_rate, importance)


def value_of_rate(objective: Objective, elapsed: FloatArray, change_rate: FloatArray) -> FloatArray:
    """Return f(Delta tau) / Delta^power of arrays that are not checked; 0 where nothing changes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = objective.worth(change_rate * elapsed) / change_rate**objective.power
    values: FloatArray = np.where(change_rate > 0.0, found, 0.0)
    return values


def _value(name: str, elapsed: ArrayLike, change_rate: ArrayLike, importance: ArrayLike) -> Any:
    seconds = np.asarray(arguments.weight("elapsed", elapsed), np.float64)
    rate = np.asarray(arguments.rate("change_rate", change_rate), np.float64)
    return value_of_rate(OBJECTIVES[name], seconds, rate) * arguments.weight("importance", importance)
