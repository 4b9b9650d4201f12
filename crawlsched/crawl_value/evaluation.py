"""Evaluation of arrays of crawl values by numpy, or by the algorithm for one element, compiled by numba."""

import math

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.compiling import Compilable, is_wanted
from crawlsched.crawl_value import elements
from crawlsched.crawl_value.terms import noisy_terms

# Below this many values the compiled code would save less than it takes to load it once, and a crawling thread, which
# evaluates a page at a time, should never wait for a compiler.
COMPILED_FROM = 65_536

#: `crawlsched.crawl_value.elements`.
ELEMENTS = Compilable(elements)


def evaluate(
    y: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray, max_terms: float = math.inf
) -> tuple[FloatArray, FloatArray]:
    """Crawl value per unit of importance, and its derivative with respect to y, of flat arrays of equal length."""
    many_terms = ELEMENTS.compiled_function("many_terms") if is_wanted(y.size, COMPILED_FROM) else None
    if many_terms is None:
        return noisy_terms(y, alpha, gamma, kappa, max_terms)
    value, slope = np.empty(y.shape), np.empty(y.shape)
    many_terms(*(np.ascontiguousarray(part) for part in (y, alpha, gamma, kappa)), max_terms, value, slope)
    return value, slope
