"""Crawl rates, for the estimators that need them: given beforehand, or learned from the intervals."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.naive import ratio
from crawlsched.estimators.observations import per_page

__all__ = ["check_crawl_rate", "crawl_rates"]


def check_crawl_rate(crawl_rate: npt.ArrayLike | None, n: int) -> FloatArray:
    """Return one crawl rate per page, NaN where it is to be learned.

    Parameters
    ----------
    crawl_rate : array_like, optional
        Crawls per second, one or one per page; NaN or None to learn it.
    n : int
        Number of pages.

    Raises
    ------
    ValueError
        If one is not positive and finite, or their number is wrong.
    """
    rates = per_page(np.nan if crawl_rate is None else crawl_rate, n, "crawl_rate")
    wrong = ~(np.isnan(rates) | ((rates > 0) & (rates < np.inf)))
    if wrong.any():
        raise ValueError(f"crawl_rate must be crawls per second above 0 and finite, got {rates[wrong][0]}.")
    return rates


def crawl_rates(columns: Mapping[str, npt.NDArray[Any]], pages: IndexArray) -> FloatArray:
    """Return the crawl rate of each page: as given, otherwise visits by time, 0 before the first.

    Parameters
    ----------
    columns : mapping
        With ``known_crawl_rate`` (NaN where it is to be learned), ``visits`` and ``time``.
    pages : ndarray of int
        Row numbers.
    """
    known = columns["known_crawl_rate"][pages]
    learned = ratio(columns["visits"][pages], columns["time"][pages])
    return np.where(np.isnan(known), learned, known)
