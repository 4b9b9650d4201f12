"""Freshness: the share of time in which copies are equal to their pages, and the share of a sample that is fresh."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawlsched.columns.array_types import FloatArray

__all__ = ["estimated", "expected_freshness", "page_freshness"]


def expected_freshness(rates: ArrayLike, change_rate: ArrayLike, importance: ArrayLike = 1.0) -> float:
    """Return the expected freshness of a collection whose pages are crawled at even intervals.

    Parameters
    ----------
    importance : array_like, optional
        Weight of a fresh copy of each page; not all 0.

    Returns
    -------
    float
        The share of time in which the copy is fresh, as a mean over the pages, weighted by importance; 0 to 1.

    Notes
    -----
    This is the objective of problem (5) in Busa-Fekete et al., divided by the sum of the importances. Section 6.2 of
    the paper calls it accuracy.

    References
    ----------
    R. Busa-Fekete et al. (2025). A scalable crawling algorithm utilizing noisy change-indicating signals.

    Examples
    --------
    >>> from crawlsched.freshness import expected_freshness
    >>> expected_freshness(rates=[1.0, 0.0], change_rate=[1.0, 1.0])
    0.316
    >>> expected_freshness(rates=[1.0, 0.0], change_rate=[1.0, 1.0], importance=[3.0, 1.0])
    0.474
    """
    fresh = page_freshness(rates, change_rate)
    weight = _checked("importance", importance)
    try:
        fresh, weight = np.broadcast_arrays(fresh, weight)
    except ValueError:
        raise ValueError(
            f"importance has the shape {weight.shape} but rates and change_rate have {fresh.shape}; "
            "pass one entry per page, or one number for all."
        ) from None
    largest = float(weight.max(initial=0.0))
    if largest == 0.0:
        raise ValueError("importance is 0 for every page; at least one must be above 0.")
    # Weights are divided by the largest weight first, so that sums of huge weights stay finite.
    share = weight / largest
    return float(np.sum(share * fresh) / np.sum(share))


def page_freshness(rates: ArrayLike, change_rate: ArrayLike) -> NDArray[np.float64]:
    """Return the share of time in which the copy of each page is fresh, if it is crawled at even intervals.

    For the crawl rate ρ and the change rate Δ, it is (ρ/Δ) (1 - exp(-Δ/ρ)). It is 1 for a page that never changes, even
    without crawls, and 0 for any other page without crawls.

    Notes
    -----
    The formula is G(ρ; 1, Δ) in the proof of Theorem 1 of Busa-Fekete et al. It was first published by Cho and
    Garcia-Molina.

    References
    ----------
    J. Cho, H. Garcia-Molina (2003). Effective page refresh policies for web crawlers.

    Examples
    --------
    >>> from crawlsched.freshness import page_freshness
    >>> page_freshness(rates=[0.0, 1.0, 10.0], change_rate=1.0)
    array([0.        , 0.63212056, 0.95162582])
    """
    rate, change = _checked("rates", rates), _checked("change_rate", change_rate)
    try:
        rate, change = np.broadcast_arrays(rate, change)
    except ValueError:
        raise ValueError(
            f"rates has the shape {rate.shape} and change_rate has {change.shape}; "
            "pass one entry per page, or one number for all."
        ) from None
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        changes_per_crawl = change / rate
        fresh = -np.expm1(-changes_per_crawl) / changes_per_crawl
    # A page that never changes is fresh, even if it is never crawled (then the formula above gives 0/0).
    return np.where(changes_per_crawl > 0.0, fresh, 1.0)


def _checked(name: str, value: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(value, dtype=np.float64)
    if array.size and not (array.min() >= 0.0 and array.max() < np.inf):
        wrong = array[~((array >= 0.0) & (array < np.inf))]
        raise ValueError(f"{name} contains {float(wrong.flat[0])!r}; every {name} must be finite and 0 or more.")
    return array


def estimated(fresh: FloatArray, importance: FloatArray, n_all: float) -> tuple[float, float] | tuple[None, None]:
    """Return the expected freshness and its error, from an even sample of `n_all` pages.

    Both are None if the importances sum to 0. The error is that of a ratio of means (Cochran, Sampling Techniques,
    section 6.4).

    Examples
    --------
    >>> import numpy as np
    >>> share, error = estimated(np.array([1.0, 0.0, 1.0, 1.0]), np.ones(4), n_all=1000)
    >>> share, round(error, 3)
    (0.75, 0.25)
    """
    total, n = float(importance.sum()), fresh.size
    if not total:
        return None, None
    share = float(importance @ fresh) / total
    if n < 2 or n >= n_all:
        return share, 0.0
    residuals = importance * (fresh - share)
    variance = n / (n - 1) * float(residuals @ residuals) / total**2 * (1.0 - n / n_all)
    return share, float(np.sqrt(variance))
