"""The grid of change rates on which posteriors live, and a name for it that a stored row can carry."""

import hashlib

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray

__all__ = ["DEFAULT_RATES", "DEFAULT_RATES_ID", "check_rates", "grid_id"]


DAY = 86_400.0

#: 32 change rates (per second) in equal ratios of 1.62, from once in three years to once in 30 seconds.
#:
#: Neighbours have to be so close that no page falls between two of them: one visit tells rates apart that differ by a
#: factor of about e, ten visits by about 1.6, and beyond that the crawl value hardly depends on the rest (it is flat at
#: its best). The slow end is where a page is as good as unchanging over the life of a crawl, the fast end where no
#: crawler follows; a page beyond either end is treated as one at the end. 32 numbers of 2 bytes are one cache line.
DEFAULT_RATES: FloatArray = np.geomspace(1 / (3 * 365 * DAY), 1 / 30, 32)
DEFAULT_RATES.setflags(write=False)


def check_rates(rates: npt.ArrayLike) -> FloatArray:
    """Return a grid of positive, finite, increasing rates as a read-only array, or raise `ValueError`."""
    grid = np.array(rates, dtype=np.float64)
    if grid.ndim != 1 or grid.size < 2:
        raise ValueError(f"rates must be a one-dimensional array of at least 2 rates, got shape {grid.shape}.")
    if not (np.isfinite(grid).all() and grid[0] > 0 and (np.diff(grid) > 0).all()):
        raise ValueError("rates must be positive, finite and increasing (changes per second), got " + repr(grid[:4]))
    grid.setflags(write=False)
    return grid


def grid_id(rates: npt.ArrayLike) -> str:
    """Return a short name that two grids share only if they hold the same rates.

    It is the number of rates and a digest of them, each rounded to nine digits: so the name is the same on every
    machine.

    Examples
    --------
    >>> grid_id([0.001, 0.01, 0.1])
    '3-2c5f0359'
    """
    grid = check_rates(rates)
    text = " ".join(f"{rate:.8e}" for rate in grid)
    return f"{grid.size}-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"


#: The name of `DEFAULT_RATES`; a test holds it fast, since rows in databases depend on it.
DEFAULT_RATES_ID = grid_id(DEFAULT_RATES)
