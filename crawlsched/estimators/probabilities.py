"""Probabilities over a grid of rates: checked priors, posteriors and their quantiles."""

from sys import float_info
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.columns.numerics import TINY
from crawlsched.estimators.log_weights import decoded, relative_likelihoods

__all__ = ["check_prior", "posterior_probabilities", "rate_quantile", "visit_log_likelihood"]


def check_prior(prior: npt.ArrayLike, n_rates: int, n_pages: int | None = None) -> FloatArray:
    """Return probabilities that add up to 1 along the last axis, or raise `ValueError`."""
    given = np.asarray(prior, dtype=np.float64)
    if given.shape != (n_rates,) and (n_pages is None or given.shape != (n_pages, n_rates)):
        wanted = f"({n_rates},)" if n_pages is None else f"({n_rates},) or ({n_pages}, {n_rates})"
        raise ValueError(f"prior must have one probability per rate, shape {wanted}, got shape {given.shape}.")
    total = given.sum(axis=-1, keepdims=True)
    if not ((given >= 0).all() and (total > 0).all() and np.isfinite(total).all()):
        raise ValueError("prior must hold finite probabilities that are not negative and not all 0, got " + repr(prior))
    normalised: FloatArray = given / total
    return normalised


def rate_quantile(weights: FloatArray, rates: FloatArray, q: float) -> FloatArray:
    """Return the rate that is exceeded with probability 1 - q, for each row of weights over a grid.

    The weight of each rate of the grid is spread evenly on a logarithmic scale, up to halfway to the neighbouring
    rates.
    """
    cumulative = np.cumsum(weights, axis=1)
    cumulative /= cumulative[:, -1:]
    cell = np.minimum((cumulative < q).sum(axis=1), rates.size - 1)
    row = np.arange(cell.size)
    below = np.where(cell > 0, cumulative[row, cell - 1], 0.0)
    share = np.clip((q - below) / np.maximum(cumulative[row, cell] - below, float_info.min), 0.0, 1.0)
    centres = np.log(rates)
    halfway = (centres[1:] + centres[:-1]) / 2
    edges = np.concatenate([[2 * centres[0] - halfway[0]], halfway, [2 * centres[-1] - halfway[-1]]])
    quantiles: FloatArray = np.exp(edges[cell] + share * (edges[cell + 1] - edges[cell]))
    return quantiles


def posterior_probabilities(stored: npt.NDArray[Any], prior: FloatArray, learning_rate: float = 1.0) -> FloatArray:
    """Return the product of the prior and likelihood ** `learning_rate`, with each row divided by its sum."""
    joint = relative_likelihoods(stored, learning_rate)
    joint *= prior
    total = joint.sum(axis=1, keepdims=True)
    lost = np.flatnonzero(total[:, 0] < TINY)
    if lost.size:
        # The prior excludes the rates that the visits point at, so the other rates are compared by their logarithms.
        with np.errstate(divide="ignore"):
            logs = decoded(stored[lost]) * learning_rate + np.log(np.broadcast_to(prior, joint.shape)[lost])
        joint[lost] = np.exp(logs - logs.max(axis=1, keepdims=True))
        total[lost] = joint[lost].sum(axis=1, keepdims=True)
    joint /= total
    return joint


def visit_log_likelihood(
    rates: FloatArray, elapsed: FloatArray, changed: npt.NDArray[np.bool_], evidence: FloatArray
) -> FloatArray:
    """Return the log-likelihood of each rate for each visit, up to a constant common to all rates; shape (n, K).

    It is log(1 - exp(-(r τ + e))) for a changed page, and -r τ for an unchanged one, since exp(-e) is common to all
    rates.
    """
    found = rates * elapsed[:, np.newaxis]
    stale = found[changed] + evidence[changed, np.newaxis]
    np.negative(found, out=found)
    found[changed] = np.log(-np.expm1(-np.maximum(stale, float_info.min)))
    return found
