"""Threshold search: the crawl value at which pages want exactly what there is.

Demand falls as the threshold rises, but it can be flat, vertical or stepped: it is 0 above the largest crawl value,
has a vertical tangent there, and jumps for pages whose every change is announced. So the search brackets, in the
logarithm of the threshold, and ends with a bracket that is 1e-13 wide and not with a point.
Any number of searches (one per host) run together.
"""

from collections.abc import Callable
from itertools import count

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["bracket_thresholds", "narrowed"]

# Width of the final bracket: relative, in the threshold.
_TOLERANCE = 1e-13
_LARGEST_LOG = 700.0
# Interpolation has long ended by then; if rounding has kept it from ending, only halving is left.
_PATIENCE = 60

Function = Callable[[FloatArray, IndexArray], FloatArray]


def bracket_thresholds(
    demand: Function, target: FloatArray, start: FloatArray, tolerance: float = _TOLERANCE
) -> tuple[FloatArray, FloatArray]:
    """Give thresholds just below and just above the one at which each demand equals its target.

    Parameters
    ----------
    demand : callable
        Takes thresholds and the numbers of the searches they belong to; gives the total rates wanted, each of
        which falls as its threshold rises.
    target : ndarray
        Rates that there are, positive; below the demand at threshold 0.
    start : ndarray
        First guesses, positive.
    tolerance : float
        Relative width of the bracket.

    Returns
    -------
    below, above : ndarray
        Thresholds with ``demand(below) >= target >= demand(above)``.

    Raises
    ------
    ValueError
        If a target is so large that the threshold cannot be told from 0.

    Notes
    -----
    Chandrupatla's method (a new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function,
    Advances in Engineering Software 28, 1997): inverse quadratic interpolation where it can be trusted, else halving.
    """

    def surplus(log_threshold: FloatArray, which: IndexArray) -> FloatArray:
        # (demand - target) / (demand + target): -1 at no demand, 1 at infinite demand, and close to half
        # the logarithm of demand/target in between, which is nearly linear in the logarithm of the threshold.
        return 1.0 - 2.0 * target[which] / (demand(np.exp(log_threshold), which) + target[which])

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        nearest, other = narrowed(surplus, *_bracket(surplus, np.log(start)), tolerance, near=0.0)
    return np.exp(np.minimum(nearest, other)), np.exp(np.maximum(nearest, other))


def _bracket(surplus: Function, start: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Walk from each start, doubling the step, until the sign changes."""
    near = np.clip(start, -_LARGEST_LOG, _LARGEST_LOG)
    walking = np.arange(near.size)
    f_near = surplus(near, walking)
    far, f_far = near.copy(), f_near.copy()
    upwards = f_near >= 0.0
    # Rates go roughly with threshold**-0.5, so the logarithm of the threshold is off by about 4 f; a bit more crosses.
    step = np.where(upwards, 1.0, -1.0) * np.maximum(4.4 * np.abs(f_near), _TOLERANCE)
    while walking.size:
        if (near[walking] <= -_LARGEST_LOG).any() and not upwards[walking].all():
            raise ValueError(
                "bandwidth, or a host's cap, is so large for these change rates and importances that the threshold "
                "cannot be told from 0; lower it, or give every page a maximum_rate."
            )
        far[walking] = np.clip(near[walking] + step[walking], -_LARGEST_LOG, _LARGEST_LOG)
        f_far[walking] = surplus(far[walking], walking)
        walking = walking[(f_far[walking] >= 0.0) == upwards[walking]]
        near[walking], f_near[walking] = far[walking], f_far[walking]
        step *= 2.0
    return near, f_near, far, f_far


def narrowed(
    function: Function, x2: FloatArray, f2: FloatArray, x1: FloatArray, f1: FloatArray, tolerance: float, near: float
) -> tuple[FloatArray, FloatArray]:
    """Narrow brackets at whose ends functions have different signs.

    Parameters
    ----------
    function : callable
        Takes arguments and the indices of the brackets they belong to.
    x2, f2, x1, f1 : ndarray
        The ends of the brackets, in any order, and the functions there.
    tolerance : float
        Width of a bracket that is narrow enough; where rounding allows no less, a few steps of the last digit are.
    near : float
        Largest function, in absolute value, that counts as zero.

    Returns
    -------
    nearest, other : ndarray
        The end that was found last, and the other one; they are the same where the function is zero.
    """
    x1, f1, x2, f2 = (np.array(part) for part in (x1, f1, x2, f2))
    t = f1 / (f1 - f2)
    for step in count():
        smallest = np.maximum(tolerance, 4.0 * np.finfo(float).eps * np.maximum(np.abs(x1), np.abs(x2)))
        width = np.abs(x2 - x1)
        active = np.flatnonzero((width > 2.0 * smallest) & (np.abs(f1) > near))
        if not active.size:
            break
        # Never closer to an end than the tolerance: so the bracket closes from both sides.
        margin = smallest[active] / width[active]
        t = np.where(np.isfinite(t) & (step < _PATIENCE), t, 0.5)
        t[active] = np.clip(t[active], margin, 1.0 - margin)
        a1, g1, a2, g2 = x1[active], f1[active], x2[active], f2[active]
        x = a1 + t[active] * (a2 - a1)
        f = function(x, active)
        same = (f >= 0.0) == (g1 >= 0.0)
        x3, f3 = np.where(same, a1, a2), np.where(same, g1, g2)
        x2[active], f2[active] = np.where(same, a2, a1), np.where(same, g2, g1)
        x1[active], f1[active] = x, f
        t[active] = _next_fraction(x, f, x2[active], f2[active], x3, f3)
    return x1, np.where(np.abs(f1) <= near, x1, x2)


def _next_fraction(
    x1: FloatArray, f1: FloatArray, x2: FloatArray, f2: FloatArray, x3: FloatArray, f3: FloatArray
) -> FloatArray:
    """Where between x1 and x2 to look next: by inverse quadratic interpolation if it is safe, else in the middle."""
    xi = (x1 - x2) / (x3 - x2)
    phi = (f1 - f2) / (f3 - f2)
    interpolated = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
    safe = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi) & np.isfinite(interpolated)
    return np.where(safe, interpolated, 0.5)
