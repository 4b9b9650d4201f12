"""Threshold search: the crawl value at which pages want exactly what there is.

Demand falls as the threshold rises, but it can be flat, vertical or stepped: it is 0 above the largest crawl value,
has a vertical tangent there, and jumps for pages whose every change is announced. So the search brackets, in the
logarithm of the threshold, and ends with a bracket that is 1e-13 wide and not with a point.
"""

from collections.abc import Callable
from itertools import count
from math import copysign, exp, log

import numpy as np

__all__ = ["bracket_threshold"]

# Width of the final bracket: relative, in the threshold.
_TOLERANCE = 1e-13
_LARGEST_LOG = 700.0
# Interpolation has long ended by then; if rounding has kept it from ending, only halving is left.
_PATIENCE = 60
_EPSILON = float(np.finfo(float).eps)


def bracket_threshold(demand: Callable[[float], float], target: float, start: float) -> tuple[float, float]:
    """Return thresholds just below and just above the one at which the demand equals its target.

    ``demand(threshold)`` falls as the threshold rises; `start` is a guess. A target that is too large to tell the
    threshold from 0 raises ValueError. The method is Chandrupatla's (Advances in Engineering Software 28, 1997):
    inverse quadratic interpolation where it can be trusted, else halving.
    """

    def surplus(log_threshold: float) -> float:
        # (demand - target) / (demand + target): -1 at no demand, 1 at infinite demand, and close to half
        # the logarithm of demand/target in between, which is nearly linear in the logarithm of the threshold.
        return 1.0 - 2.0 * target / (demand(exp(log_threshold)) + target)

    x2, f2, x1, f1 = _bracket(surplus, log(start))
    fraction = f1 / (f1 - f2)
    for step in count():
        smallest = max(_TOLERANCE, 4.0 * _EPSILON * max(abs(x1), abs(x2)))
        width = abs(x2 - x1)
        if width <= 2.0 * smallest or f1 == 0.0:
            break
        # Never closer to an end than the tolerance: so the bracket closes from both sides.
        margin = smallest / width
        x = x1 + min(max(fraction if step < _PATIENCE else 0.5, margin), 1.0 - margin) * (x2 - x1)
        f = surplus(x)
        if (f >= 0.0) == (f1 >= 0.0):
            x3, f3 = x1, f1
        else:
            (x3, f3), (x2, f2) = (x2, f2), (x1, f1)
        x1, f1 = x, f
        fraction = _next_fraction(x1, f1, x2, f2, x3, f3)
    ends = x1, x1 if f1 == 0.0 else x2
    return exp(min(ends)), exp(max(ends))


def _bracket(surplus: Callable[[float], float], start: float) -> tuple[float, float, float, float]:
    """Walk from the start, doubling the step, until the sign changes."""
    near = min(max(start, -_LARGEST_LOG), _LARGEST_LOG)
    f_near = surplus(near)
    upwards = f_near >= 0.0
    # Rates go roughly with threshold**-0.5, so the logarithm of the threshold is off by about 4 f; a bit more crosses.
    step = copysign(max(4.4 * abs(f_near), _TOLERANCE), 1.0 if upwards else -1.0)
    while upwards or near > -_LARGEST_LOG:
        far = min(max(near + step, -_LARGEST_LOG), _LARGEST_LOG)
        f_far = surplus(far)
        if (f_far >= 0.0) != upwards:
            return near, f_near, far, f_far
        near, f_near, step = far, f_far, 2.0 * step
    raise ValueError(
        "bandwidth is so large for these change rates and importances that the threshold cannot be told from 0; "
        "lower it."
    )


def _next_fraction(x1: float, f1: float, x2: float, f2: float, x3: float, f3: float) -> float:
    """Where between x1 and x2 to look next: by inverse quadratic interpolation if it is safe, else in the middle."""
    if f3 in (f1, f2):
        return 0.5
    xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
    if not (phi**2 < xi and (1.0 - phi) ** 2 < 1.0 - xi):
        return 0.5
    return f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
