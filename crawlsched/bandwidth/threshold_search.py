"""Threshold search: the crawl value at which pages want exactly what there is.

Demand falls as the threshold rises, but it can be flat, vertical or stepped: it is 0 above the largest crawl value,
has a vertical tangent there, and jumps for pages whose every change is announced. So the search brackets, in the
logarithm of the threshold, and ends with a bracket that is 1e-13 wide and not with a point.
Any number of searches (one per host) run together.
"""

from collections.abc import Callable

import numpy as np

from crawlsched.bandwidth.arguments import FloatArray

__all__ = ["bracket_thresholds"]

# Width of the final bracket: relative, in the threshold.
_TOLERANCE = 1e-13
_LARGEST_LOG = 700.0

Demand = Callable[[FloatArray], FloatArray]


def bracket_thresholds(
    demand: Demand, target: FloatArray, start: FloatArray, tolerance: float = _TOLERANCE
) -> tuple[FloatArray, FloatArray]:
    """Give thresholds just below and just above the one at which each demand equals its target.

    Parameters
    ----------
    demand : callable
        Total rates wanted at an array of thresholds, one for each search; each falls as its threshold rises.
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

    def surplus(log_threshold: FloatArray) -> FloatArray:
        # (demand - target) / (demand + target): -1 at no demand, 1 at infinite demand, and close to half
        # the logarithm of demand/target in between, which is nearly linear in the logarithm of the threshold.
        return 1.0 - 2.0 * target / (demand(np.exp(log_threshold)) + target)

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _chandrupatla(surplus, *_bracket(surplus, np.log(start)), tolerance)


def _bracket(surplus: Demand, start: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Walk from the start, doubling the step, until the sign changes."""
    near = far = np.clip(start, -_LARGEST_LOG, _LARGEST_LOG)
    f_near = f_far = surplus(near)
    upwards = f_near >= 0.0
    crossed = np.zeros(near.shape, dtype=bool)
    # Rates go roughly with threshold**-0.5, so the logarithm of the threshold is off by about 4 f; a bit more crosses.
    step = np.maximum(4.4 * np.abs(f_near), _TOLERANCE)
    while not crossed.all():
        if (~crossed & ~upwards & (near <= -_LARGEST_LOG)).any():
            raise ValueError(
                "bandwidth, or a host's cap, is so large for these change rates and importances that the threshold "
                "cannot be told from 0; lower it, or give every page a maximum_rate."
            )
        x = np.clip(near + np.where(upwards, step, -step), -_LARGEST_LOG, _LARGEST_LOG)
        far = np.where(crossed, far, x)
        f_far = np.where(crossed, f_far, surplus(far))
        crossed |= (f_far >= 0.0) != upwards
        near, f_near = np.where(crossed, near, far), np.where(crossed, f_near, f_far)
        step = step * 2.0
    return near, f_near, far, f_far


def _chandrupatla(
    surplus: Demand, x2: FloatArray, f2: FloatArray, x1: FloatArray, f1: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Narrow brackets between which a falling function changes its sign down to the tolerance."""
    t = f1 / (f1 - f2)
    while True:
        width = np.abs(x2 - x1)
        smallest = np.maximum(tolerance, 4.0 * np.finfo(float).eps * np.maximum(np.abs(x1), np.abs(x2)))
        done = width <= 2.0 * smallest
        if done.all():
            return np.exp(np.minimum(x1, x2)), np.exp(np.maximum(x1, x2))
        # Never closer to an end than the tolerance: so the bracket closes from both sides.
        t = np.clip(t, smallest / width, 1.0 - smallest / width)
        x = np.where(done, x1, x1 + t * (x2 - x1))
        f = np.where(done, f1, surplus(x))
        same = (f >= 0.0) == (f1 >= 0.0)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same | done, x2, x1), np.where(same | done, f2, f1)
        x1, f1 = x, f
        t = _next_fraction(x1, f1, x2, f2, x3, f3)


def _next_fraction(
    x1: FloatArray, f1: FloatArray, x2: FloatArray, f2: FloatArray, x3: FloatArray, f3: FloatArray
) -> FloatArray:
    """Where between x1 and x2 to look next: by inverse quadratic interpolation if it is safe, else in the middle."""
    xi = (x1 - x2) / (x3 - x2)
    phi = (f1 - f2) / (f3 - f2)
    interpolated = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
    safe = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi) & np.isfinite(interpolated)
    return np.where(safe, interpolated, 0.5)
