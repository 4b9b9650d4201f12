"""The elapsed time at which a page's value reaches a level, if nothing is announced until then."""

import math
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray
from crawlsched.columns.blocks import blocks
from crawlsched.columns.numerics import CONVERGED, ROUNDS
from crawlsched.crawl_value import arguments
from crawlsched.crawl_value.rules import evidence_of, natural_parameters
from crawlsched.crawl_value.terms import LARGEST_EXPONENT, noisy_terms, polynomial

_NOISE = 16.0 * float_info.epsilon  # a value equals the target if the relative difference is smaller
LARGEST_SHARE = math.nextafter(1.0, 0.0)

# z = sum_k coefficient_k root^(k+1) is the expansion of Lambert's W around its branch point.
_SERIES = [1.0, 1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010, -139 / 5443200]


def elapsed_at_value(
    value: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_signal_rate: ArrayLike = 0.0,
    importance: ArrayLike = 1.0,
    n_signals: ArrayLike = 0,
) -> Any:
    """Return the elapsed time at which `greedy_ncis` reaches a value, if nothing further is announced.

    Parameters
    ----------
    value : array_like
        Crawl value to reach, in importance times seconds, 0 or more.
    recall : array_like, optional
        Probability that a change is announced. If it is 0, announcements are ignored and the rule is GREEDY.
    false_signal_rate : array_like, optional
        Announcements per second without a change.
    n_signals : array_like, optional
        Announcements since the last crawl.

    Returns
    -------
    array_like of float64
        Seconds since the last crawl. It is 0 if the announcements alone reach the value, and infinity if the value is
        never reached. A value of importance / change_rate or more is never reached. The value of a page that cannot
        change without an announcement does not grow with time.

    Notes
    -----
    Lemma 2 of [1]_: the value rises with the elapsed time, so there is one solution. With y for minus the
    log-probability of freshness, Newton's method solves z(V(y)) = z(value). Here z is the inverse of the crawl value
    without announcements, which has a closed form. So z(V(y)) is nearly a straight line. Where it has kinks, bisection
    takes over.

    References
    ----------
    .. [1] Busa-Fekete et al. (2025), "A scalable crawling algorithm utilizing noisy change-indicating signals".

    Examples
    --------
    >>> from crawlsched.crawl_value import greedy
    >>> day = 86400.0
    >>> float(elapsed_at_value(greedy(3 * day, 1 / day), 1 / day) / day)
    3.0
    >>> elapsed_at_value([0.0, 0.5, 2.0], change_rate=0.5, recall=0.8, false_signal_rate=0.2).round(4)
    array([0.    , 5.8054,    inf])
    """
    target = arguments.value("value", value)
    mu = arguments.weight("importance", importance)
    n = arguments.count("n_signals", n_signals)
    delta = arguments.rate("change_rate", change_rate)
    with np.errstate(under="ignore", over="ignore"):
        alpha, gamma, kappa = natural_parameters(
            delta,
            arguments.probability("recall", recall),
            arguments.rate("false_signal_rate", false_signal_rate),
        )
        parts = np.broadcast_arrays(target, mu, delta, evidence_of(n, kappa), alpha, gamma, kappa)
        flat = np.stack([np.ravel(part) for part in parts])
        elapsed = np.empty(flat[0].shape)
        for part in blocks(elapsed.size, 16):
            target, mu, *pages = flat[:, part]
            elapsed[part] = _elapsed(target, mu, np.stack(pages))
        return elapsed.reshape(parts[0].shape)[()]


def _elapsed(target: FloatArray, mu: FloatArray, pages: FloatArray) -> FloatArray:
    """Solve for pages. The rows of `pages` are change rate, evidence, alpha, gamma and kappa; shape (5, n)."""
    delta, evidence, _, gamma, kappa = pages
    elapsed = np.where(target > 0.0, np.inf, 0.0)
    # The target's share of the limit mu / delta. A share of 1 is never reached. If the limit is 0 / 0, no value is
    # reached.
    limit = np.where(delta > 0.0, mu, 0.0)
    within = np.flatnonzero((target > 0.0) & (target * delta < limit))
    share = np.minimum(target[within] / mu[within] * delta[within], LARGEST_SHARE)
    alone = (gamma[within] <= 0.0) | (kappa[within] <= 0.0)
    plain, noisy = within[alone], within[~alone]
    elapsed[plain] = np.maximum(inverse_residual_one(share[alone]) - evidence[plain], 0.0) / delta[plain]
    if noisy.size:
        elapsed[noisy] = _noisy_elapsed(share[~alone], pages[:, noisy])
    return elapsed


def inverse_residual_one(share: FloatArray) -> FloatArray:
    """Solve 1 - (1 + z) exp(-z) = share for z, with 0 <= share < 1."""
    # Solve z - log(1 + z) = s. If s is small, begin with a power series in sqrt(2 s), the series of Lambert's W at its
    # branch point. If s is large, begin with two steps of z = s + log(1 + z). Two steps of Halley's method follow,
    # unless the series is exact.
    s = -np.log1p(-share)
    root = np.sqrt(2.0 * s)
    z = np.where(root < 2.0, root * polynomial(root, _SERIES), s + np.log1p(s + np.log1p(s)))
    for _ in range(2):
        gap = z - np.log1p(z) - s
        ratio = gap * (1.0 + z) / np.maximum(z, 1e-300)
        z = np.where(root < 0.03, z, z - ratio / (1.0 - 0.5 * ratio / np.maximum(z * (1.0 + z), 1e-300)))
    return z


def _noisy_elapsed(share: FloatArray, pages: FloatArray) -> FloatArray:
    delta, evidence, alpha, _, _ = pages
    elapsed = np.full(share.shape, np.inf)
    announced = np.flatnonzero(evidence > 0.0)
    now, _ = noisy_terms(*pages[1:, announced])
    reached = np.zeros(share.shape, dtype=bool)
    reached[announced] = now * delta[announced] >= share[announced]
    elapsed[reached] = 0.0
    # With alpha = 0, the value does not grow with time.
    rest = np.flatnonzero(~reached & (alpha > 0.0))
    elapsed[rest] = np.maximum(_staleness_at(share[rest], pages[:, rest]) - evidence[rest], 0.0) / alpha[rest]
    return elapsed


def _staleness_at(share: FloatArray, pages: FloatArray) -> FloatArray:
    """Solve V(y) = share / delta for y = alpha tau + kappa n, where y lies between the evidence and 40."""
    goal = inverse_residual_one(share)
    low, high = pages[1].copy(), np.full(share.shape, LARGEST_EXPONENT)
    y = _first_guess(share, goal, pages)
    y = np.where((y > low) & (y < high), y, 0.5 * (low + high))
    active = np.arange(share.size)
    for _ in range(ROUNDS):
        delta, _, *signals = pages[:, active]
        value, slope = noisy_terms(y[active], *signals)
        reached = np.minimum(value * delta, LARGEST_SHARE)
        below = reached < share[active]
        far = np.abs(reached - share[active]) > _NOISE * share[active]
        low[active[below]], high[active[~below]] = y[active[below]], y[active[~below]]
        after = _newton_step(y[active], reached, slope * delta, goal[active], low[active], high[active])
        change = np.abs(after - y[active])
        y[active] = np.where(far, after, y[active])
        active = active[(change > CONVERGED * after) & far]
        if not active.size:
            break
    return y


def _first_guess(share: FloatArray, goal: FloatArray, pages: FloatArray) -> FloatArray:
    # Without announcements y = goal. If a single announcement is enough to reach the goal, V is about its first term,
    # mu / gamma (1 - exp(-y)). That holds for y above alpha / gamma, where announcements are likely to have come.
    delta, _, alpha, gamma, kappa = pages
    first = -np.log1p(-np.minimum(share * (gamma / delta), LARGEST_SHARE))
    return np.where(first < kappa, first + np.minimum(alpha / gamma, goal), goal)


def _newton_step(
    y: FloatArray, reached: FloatArray, slope: FloatArray, goal: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    # The step is taken in log y and log z(V): just after a crawl V is about a power of y, and V is always about the
    # square of z.
    z = inverse_residual_one(reached)
    steepness = slope * y / np.maximum(z * z * np.exp(-z), 1e-300)
    exponent = np.log(goal / np.maximum(z, 1e-300)) / np.maximum(steepness, 1e-300)
    after = y * np.exp(np.clip(exponent, -700.0, 700.0))
    # A step that leaves the bracket only by rounding ends on the bracket's edge. Bisection replaces all other steps
    # that leave it.
    outside = ~((after >= low * (1.0 - CONVERGED)) & (after <= high * (1.0 + CONVERGED)))
    middle = np.where(low > 0.0, np.sqrt(low * high), 0.5 * high)
    return np.where(outside, middle, np.clip(after, low, high))
