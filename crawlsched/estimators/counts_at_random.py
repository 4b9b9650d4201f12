"""How many events of a Poisson process there were, as few numbers that stand for all."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import FloatArray

__all__ = ["counts_at_random"]

# So many are counted one by one; more come in such numbers that five stand for all.
_COUNTED = 24
_MANY = 9.0
_LEAST_PROBABILITY = 1e-5


def counts_at_random(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return numbers and their probabilities, a row for each mean: Poisson, or five nodes of a normal distribution."""
    counts = np.tile(np.arange(_COUNTED + 1.0), (mean.size, 1))
    few = np.minimum(mean, _MANY)[:, np.newaxis]
    factorials = np.cumsum(np.log(np.maximum(np.arange(_COUNTED + 1.0), 1.0)))
    probability = np.exp(counts * np.log(np.maximum(few, 1e-300)) - few - factorials)
    probability[probability <= _LEAST_PROBABILITY] = 0.0
    many = mean > _MANY
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    probability[many] = np.pad(weights, (0, _COUNTED + 1 - nodes.size))
    counts[many, : nodes.size] = np.maximum(mean[many, np.newaxis] + np.sqrt(mean[many, np.newaxis]) * nodes, 0.0)
    return counts, probability / probability.sum(axis=1, keepdims=True)
