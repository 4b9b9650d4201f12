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
    """Return one crawl rate per page, NaN where it is learned, or raise `ValueError`."""
    rates = per_page(np.nan if crawl_rate is None else crawl_rate, n, "crawl_rate")
    wrong = ~(np.isnan(rates) | ((rates > 0) & (rates < np.inf)))
    if wrong.any():
        raise ValueError(f"crawl_rate must be crawls per second above 0 and finite, got {rates[wrong][0]}.")
    return rates


def crawl_rates(columns: Mapping[str, npt.NDArray[Any]], pages: IndexArray) -> FloatArray:
    """Return crawl rates of pages: the known one, or visits by time where that is NaN; 0 before the first visit."""
    known = columns["known_crawl_rate"][pages]
    learned = ratio(columns["visits"][pages], columns["time"][pages])
    return np.where(np.isnan(known), learned, known)
