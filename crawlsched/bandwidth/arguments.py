"""Arguments: what callers pass, checked once and turned into float64 arrays of one shape."""

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["FloatArray", "IndexArray", "not_negative", "page_arrays", "positive_number"]


def page_arrays(**arguments: ArrayLike) -> list[FloatArray]:
    """Give the arguments as float64 arrays with one entry per page, or say which is wrong.

    A number stands for the same value for every page and takes no memory.
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


def positive_number(name: str, value: float, unit: str) -> float:
    """Give the argument as a float that is positive and finite, or say what is wrong."""
    number = float(value)
    if not 0.0 < number < np.inf:
        raise ValueError(f"{name} is {number!r}; it must be a positive, finite number of {unit}.")
    return number


def not_negative(name: str, array: FloatArray, *, infinite: bool = False) -> FloatArray:
    """Give the array back, or say which entry is negative, not a number, or infinite."""
    # Minimum and maximum need no array of booleans; NaN makes the comparison false.
    if array.size and not (array.min() >= 0.0 and (infinite or array.max() < np.inf)):
        wrong = np.isnan(array) | (array < 0.0)
        if not infinite:
            wrong |= np.isinf(array)
        page = int(np.argmax(wrong))
        allowed = "0 or more" if infinite else "finite and 0 or more"
        raise ValueError(f"{name}[{page}] is {float(array[page])!r}; every {name} must be {allowed}.")
    return array


def _float_array(name: str, value: ArrayLike) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; pass one entry per page, or one number for all.")
    return array
