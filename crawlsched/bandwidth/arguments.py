"""Arguments: what callers pass, checked once and turned into float64 arrays of one shape."""

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray

__all__ = ["not_negative", "page_arrays"]


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


def not_negative(name: str, array: FloatArray) -> FloatArray:
    """Give the array back, or say which entry is negative, not a number, or infinite."""
    # Minimum and maximum need no array of booleans; NaN makes the comparison false.
    if array.size and not (array.min() >= 0.0 and array.max() < np.inf):
        page = int(np.argmax(~((array >= 0.0) & np.isfinite(array))))
        raise ValueError(f"{name}[{page}] is {float(array[page])!r}; every {name} must be finite and 0 or more.")
    return array


def _float_array(name: str, value: ArrayLike) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; pass one entry per page, or one number for all.")
    return array
