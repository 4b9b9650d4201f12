"""Division: divide a bandwidth among pages, so that no crawl would gain more on another page.

For a given sum of rates, a sum of concave gains is largest if all gains have the same slope, the threshold Λ. Then each
page gets the rate at which its own gain has that slope. (These are the Karush-Kuhn-Tucker conditions, which Busa-Fekete
et al. write out in Appendix A.) So the threshold is the only number to search for.

Pages are handled in blocks, so that ten million of them need little more memory than their arrays.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import copysign, exp, fsum, log
from sys import float_info

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray
from crawlsched.columns.blocks import blocks
from crawlsched.columns.numerics import LARGEST_LOG, ROUNDS

__all__ = [
    "Allocation",
    "SignalAllocation",
    "WantedRates",
    "checked",
    "divide",
    "not_negative",
    "page_arrays",
    "total_rate",
]


def page_arrays(**arguments: ArrayLike) -> list[FloatArray]:
    """Return float64 arrays with one entry per page, or raise an error that names the wrong argument.

    A single number is used for every page and takes no memory.
    """
    arrays = [_float_array(name, value) for name, value in arguments.items()]
    sizes = {name: array.size for name, array in zip(arguments, arrays, strict=True) if array.ndim == 1}
    n_pages = next(iter(sizes.values()), 1)
    for name, size in sizes.items():
        if size != n_pages:
            first = next(iter(sizes))
            raise ValueError(
                f"{name} has {size} entries but {first} has {n_pages}; pass one entry per page, or one number for all."
            )
    return [np.broadcast_to(array, (n_pages,)) for array in arrays]


def not_negative(name: str, array: FloatArray) -> FloatArray:
    """Return the array, or raise an error that names a negative, infinite or NaN entry."""
    # Minimum and maximum need no array of booleans. A NaN makes the comparison false.
    if array.size and not (array.min() >= 0.0 and array.max() < np.inf):
        page = int(np.argmax(~((array >= 0.0) & np.isfinite(array))))
        raise ValueError(f"{name}[{page}] is {float(array[page])!r}; every {name} must be finite and 0 or more.")
    return array


def _float_array(name: str, value: ArrayLike) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; pass one entry per page, or one number for all.")
    return array


# Relative width of the final bracket, in the threshold.
_TOLERANCE = 1e-13


def _bracket_threshold(demand: Callable[[float], float], target: float, start: float) -> tuple[float, float]:
    """Return thresholds just below and just above the threshold at which the demand equals its target.

    ``demand(threshold)`` falls as the threshold rises; `start` is a guess of the threshold. ValueError: the target is
    so large that the threshold cannot be distinguished from 0. The method is Chandrupatla's (Advances in Engineering
    Software 28, 1997): inverse quadratic interpolation if that is safe, otherwise halving.
    """

    def surplus(log_threshold: float) -> float:
        # (demand - target) / (demand + target) is -1 if there is no demand, and 1 if demand is infinite. In between it
        # is close to half the logarithm of demand/target, which is nearly linear in the logarithm of the threshold.
        return 1.0 - 2.0 * target / (demand(exp(log_threshold)) + target)

    x2, f2, x1, f1 = _bracket(surplus, log(start))
    fraction = f1 / (f1 - f2)
    for step in count():
        smallest = max(_TOLERANCE, 4.0 * float_info.epsilon * max(abs(x1), abs(x2)))
        width = abs(x2 - x1)
        if width <= 2.0 * smallest or f1 == 0.0:
            break
        # Every step is at least the tolerance away from the ends of the bracket, so both ends move.
        margin = smallest / width
        # Rounding may keep interpolation from ending, so after this number of steps only halving is used.
        x = x1 + min(max(fraction if step < ROUNDS else 0.5, margin), 1.0 - margin) * (x2 - x1)
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
    """Walk from the start until the sign changes; each step is twice as long as the step before."""
    near = min(max(start, -LARGEST_LOG), LARGEST_LOG)
    f_near = surplus(near)
    upwards = f_near >= 0.0
    # Rates are roughly proportional to threshold**-0.5. So the logarithm of the threshold is off by about 4 f, and a
    # step of 4.4 f crosses zero.
    step = copysign(max(4.4 * abs(f_near), _TOLERANCE), 1.0 if upwards else -1.0)
    while upwards or near > -LARGEST_LOG:
        far = min(max(near + step, -LARGEST_LOG), LARGEST_LOG)
        f_far = surplus(far)
        if (f_far >= 0.0) != upwards:
            return near, f_near, far, f_far
        near, f_near, step = far, f_far, 2.0 * step
    raise ValueError(
        "bandwidth is so large for these change rates and importances that the threshold cannot be distinguished from "
        "0; lower it."
    )


def _next_fraction(x1: float, f1: float, x2: float, f2: float, x3: float, f3: float) -> float:
    """Return where to look next between x1 and x2: by inverse quadratic interpolation if safe, or the middle."""
    if f3 in (f1, f2):
        return 0.5
    xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
    if not (phi**2 < xi and (1.0 - phi) ** 2 < 1.0 - xi):
        return 0.5
    return f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """A division of the bandwidth among pages."""

    rates: FloatArray  # crawls per second of each page
    # The crawl value at which the bandwidth is used up (the Lagrange multiplier Λ). It is 0 if all pages get all crawls
    # that they can use.
    threshold: float


@dataclass(frozen=True, kw_only=True)
class SignalAllocation(Allocation):
    """A division of the bandwidth among pages whose changes are announced.

    Attributes
    ----------
    effective_elapsed : ndarray of shape (n_pages,)
        The threshold policy of each page (ι in the paper), in seconds: a crawl is due when the elapsed time plus β for
        every ChangeSignal reaches this time. ``inf`` if time alone never makes a crawl worthwhile.
    least_freshness : ndarray of shape (n_pages,)
        The same policy as a probability, exp(-α ι): a crawl is due when the copy is fresh with this probability. It is
        also defined if recall is 1 and β infinite.
    """

    effective_elapsed: FloatArray
    least_freshness: FloatArray


#: A function that returns the rates at which the slope of each page's gain is the threshold. A rate is 0 if the
#: threshold is above the steepest slope. At a threshold of 0, a rate is the largest that is useful. The arguments are
#: the threshold, the change rates, the importances, and further arguments of the gain. A gain is a concave, increasing
#: function of the rate. All ways to divide a bandwidth maximise the sum of the gains, and differ only in the gain. The
#: slope of a gain is in importance times seconds, the unit of crawl values.
WantedRates = Callable[..., FloatArray]


def checked(change_rate: ArrayLike, importance: ArrayLike) -> list[FloatArray]:
    """Return change rates and importances as arrays, or raise an error that names the wrong argument."""
    change, weight = page_arrays(change_rate=change_rate, importance=importance)
    return [not_negative("change_rate", change), not_negative("importance", weight)]


def divide(wanted: WantedRates, columns: Sequence[FloatArray], bandwidth: float) -> Allocation:
    """Return the best division of a bandwidth among pages; the columns are change rates, importances, ... of pages."""
    if not 0.0 < bandwidth < np.inf:
        raise ValueError(f"bandwidth is {bandwidth!r}; it must be a positive, finite number of crawls per second.")

    def total(threshold: float) -> float:
        return total_rate(wanted, columns, threshold)

    if total(0.0) <= bandwidth:
        return Allocation(rates=_rates(wanted, columns, 0.0), threshold=0.0)
    below, above = _bracket_threshold(total, bandwidth, _start(columns, bandwidth))
    # The rates at the two ends of the bracket are interpolated, so that they add up exactly. This changes rates by more
    # than rounding only if demand is so steep that no threshold gives exactly the bandwidth.
    rates, least = _rates(wanted, columns, below), _rates(wanted, columns, above)
    missing = bandwidth - fsum(float(np.sum(least[pages])) for pages in blocks(rates.size))
    room = fsum(float(np.sum(rates[pages] - least[pages])) for pages in blocks(rates.size))
    share = min(max(missing / room, 0.0), 1.0) if room > 0.0 else 1.0
    for pages in blocks(rates.size):
        rates[pages] = least[pages] + share * (rates[pages] - least[pages])
    return Allocation(rates=rates, threshold=above + share * (below - above))


def total_rate(wanted: WantedRates, columns: Sequence[FloatArray], threshold: float) -> float:
    """Add up the rates that the pages want at the threshold."""
    return fsum(float(np.sum(rates)) for _, rates in _by_block(wanted, columns, threshold))


def _by_block(
    wanted: WantedRates, columns: Sequence[FloatArray], threshold: float
) -> Iterator[tuple[slice, FloatArray]]:
    for pages in blocks(columns[0].size):
        yield pages, wanted(threshold, *(column[pages] for column in columns))


def _rates(wanted: WantedRates, columns: Sequence[FloatArray], threshold: float) -> FloatArray:
    rates = np.empty(columns[0].size)
    for pages, some in _by_block(wanted, columns, threshold):
        rates[pages] = some
    return rates


def _start(columns: Sequence[FloatArray], bandwidth: float) -> float:
    """Guess the threshold: rates are about proportional to sqrt(importance * change_rate / threshold) in all gains."""
    change_rate, importance = columns[:2]
    some = blocks(change_rate.size)
    roots = fsum(float(np.sum(np.sqrt(importance[pages] * change_rate[pages]))) for pages in some)
    guess = (roots / bandwidth) ** 2
    return guess if 0.0 < guess < np.inf else 1.0
