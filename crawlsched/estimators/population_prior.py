"""The prior of change rates, learned from the pages themselves."""

from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.columns.blocks import blocks
from crawlsched.columns.numerics import TINY
from crawlsched.estimators.log_weights import relative_likelihoods
from crawlsched.estimators.observations import check_positive, check_rows
from crawlsched.estimators.probabilities import check_prior

__all__ = ["learn_prior"]


# A matrix product takes at most this number of rows, so that OpenBLAS uses a single thread. Further threads would stay
# busy after their work, on processors that the crawl needs.
_PRODUCT_SLICE = 256
# Likelihoods of up to this number of slices stay in memory, since looking them up in each round takes longer than the
# rest of the round.
_MOST_KEPT = 128


def learn_prior(
    log_likelihood: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    prior: npt.ArrayLike | None = None,
    *,
    iterations: int = 30,
    strength: float | None = None,
    n_groups: int | None = None,
    learning_rate: float = 1.0,
) -> FloatArray:
    """Learn the distribution of change rates over a population of pages, as a whole or group by group.

    Parameters
    ----------
    log_likelihood : array_like, shape (n, K)
        Log-likelihood of each rate for each page, as `Posterior.log_likelihood` gives it (relative to the row's
        maximum, without a prior), or its compact rows. A sample of the pages is enough.
    groups : array_like of int, shape (n,), optional
        Group of each page, numbered from 0. Without it one distribution is learned for all.
    prior : array_like, shape (K,) or (n_groups, K), optional
        The distribution to start from and to shrink towards. By default it has equal probabilities; with `groups` it is
        the distribution of all pages. With a row per group, each group shrinks towards its own parent (a path pattern
        towards its site).
    iterations : int, default 30
        Rounds of expectation and maximisation. After few rounds the distribution is smooth. After many rounds it has a
        few spikes.
    strength : float, optional
        The `prior` counts as this number of pages; 1 by default, and 10 with `groups`. It must be positive, so that no
        rate is ever ruled out.
    n_groups : int, optional
        Number of groups, if some may have no page. A group without pages gets its prior.
    learning_rate : float, default 1
        Power of the likelihoods, as for `Posterior.weights`.

    Returns
    -------
    ndarray, shape (K,) or (n_groups, K)
        Probabilities; rows add up to 1.

    Notes
    -----
    Nonparametric empirical Bayes [1]_ by expectation-maximisation [2]_. With posterior weights w_ik proportional to π_k
    L_ik, the new π_k is (Σ_i w_ik + s π0_k) / (n + s). It maximises the likelihood with s pages of π0 added. In each
    round, each slice of rows takes two products of a matrix and a vector. Memory beyond the argument is bounded. The
    bias grows with the differences between the pages of a group. A fast page among slow pages is estimated well only
    after several visits.

    References
    ----------
    .. [1] Robbins (1956), "An empirical Bayes approach to statistics".
    .. [2] Dempster, Laird, Rubin (1977), "Maximum likelihood from incomplete data via the EM algorithm".

    Examples
    --------
    Three quarters of the pages looked slow, one quarter fast:

    >>> likelihood = np.array([[1.0, 0.01]] * 75 + [[0.01, 1.0]] * 25)
    >>> learn_prior(np.log(likelihood)).round(2)
    array([0.75, 0.25])
    """
    stored = np.asarray(log_likelihood)
    if stored.ndim != 2 or stored.shape[1] < 1:
        raise ValueError(f"log_likelihood must have a row per page and a column per rate, got shape {stored.shape}.")
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations!r}.")
    given = (1.0 if groups is None else 10.0) if strength is None else strength
    weight = check_positive(given, "strength", "a number of pages")
    if groups is None:
        towards = _probabilities(prior, (1, stored.shape[1]))[0]
        return _learn_whole(stored, towards, iterations, weight, learning_rate)
    members, size = _check_groups(groups, stored.shape[0], n_groups)
    towards = learn_prior(stored, iterations=iterations, learning_rate=learning_rate) if prior is None else prior
    shrunk = _probabilities(towards, (size, stored.shape[1]))
    return _learn_groups(stored, members, shrunk, iterations, weight, learning_rate)


def _learn_whole(
    stored: npt.NDArray[Any],
    towards: FloatArray,
    iterations: int,
    strength: float,
    learning_rate: float,
) -> FloatArray:
    slices = [stored[start : start + _PRODUCT_SLICE] for start in range(0, stored.shape[0], _PRODUCT_SLICE)]
    kept = [relative_likelihoods(rows, learning_rate) for rows in slices] if len(slices) <= _MOST_KEPT else None
    found = towards
    for _ in range(iterations):
        share = np.zeros_like(found)
        for n, rows in enumerate(slices):
            likelihood = relative_likelihoods(rows, learning_rate) if kept is None else kept[n]
            share += (1.0 / np.maximum(likelihood @ found, TINY)) @ likelihood
        found = _normalised(share * found + strength * towards)
    return found


def _learn_groups(
    stored: npt.NDArray[Any],
    groups: npt.NDArray[np.intp],
    towards: FloatArray,
    iterations: int,
    strength: float,
    learning_rate: float,
) -> FloatArray:
    order = np.argsort(groups, kind="stable")
    found = towards
    for _ in range(iterations):
        pages = np.zeros_like(found)
        for part in blocks(order.size, stored.shape[1]):
            rows = order[part]
            members = groups[rows]
            joint = relative_likelihoods(stored[rows], learning_rate)
            joint *= found[members]
            joint /= np.maximum(joint.sum(axis=1, keepdims=True), TINY)
            first = np.flatnonzero(np.diff(members, prepend=-1))
            pages[members[first]] += np.add.reduceat(joint, first, axis=0)
        found = _normalised(pages + strength * towards)
    return found


def _normalised(weights: FloatArray) -> FloatArray:
    probabilities: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return probabilities


def _probabilities(prior: npt.ArrayLike | None, shape: tuple[int, int]) -> FloatArray:
    given = np.ones(shape[1]) if prior is None else prior
    return np.broadcast_to(check_prior(given, shape[1], shape[0]), shape)


def _check_groups(groups: npt.ArrayLike, n: int, n_groups: int | None) -> tuple[npt.NDArray[np.intp], int]:
    given = np.asarray(groups)
    if given.shape != (n,):
        raise ValueError(f"groups must have one number per page, shape ({n},), got shape {given.shape}.")
    size = n_groups if n_groups is not None else int(given.max(initial=-1)) + 1
    return check_rows(given, size, "groups"), size
