"""Several independent sources of announcements, each change announced by at most one of them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import arguments
from crawlsched.crawl_value.terms import cubic_residual


def merge_sources(signal_rate: ArrayLike, signal_weight: ArrayLike) -> tuple[Any, Any]:
    """Return the signal rate and signal weight of the one source that stands best for several.

    Parameters
    ----------
    signal_rate : array_like, shape (..., S)
        gamma_s, announcements per second, true and false, of each source.
    signal_weight : array_like, shape (..., S)
        kappa_s of each source, in nats, finite.

    Returns
    -------
    signal_rate, signal_weight : array_like of float64, shape (...)
        gamma and kappa for `noisy_value` and `posterior_value`; its evidence stays the sum of kappa_s n_s.

    Notes
    -----
    An approximation, some per cent off (``docs/explanation/posterior_crawl_value.md``). It keeps what decides the crawl
    value far from and close to its limit: gamma (1 - exp(-kappa)), the rate of announced changes, and with it the
    change rate; and gamma kappa, the mean growth of the evidence, and with it the mean time between crawls at large
    thresholds.

    Examples
    --------
    >>> rate, weight = merge_sources([1.0, 3.0], [0.5, 2.0])
    >>> float(rate), float(weight)
    (3.56, 1.825)
    """
    gammas = np.atleast_1d(arguments.rate("signal_rate", signal_rate))
    kappas = np.atleast_1d(arguments.weight("signal_weight", signal_weight))
    growth = (gammas * kappas).sum(axis=-1)
    silent = growth <= 0.0
    growth = np.where(silent, 1.0, growth)
    # (1 - exp(-kappa)) / kappa = share, whose complement `loss` is computed by itself: it may be tiny.
    share = (-gammas * np.expm1(-kappas)).sum(axis=-1) / growth
    loss = (gammas * _missed(kappas)).sum(axis=-1) / growth
    share, loss = np.where(silent, 1.0, share), np.where(silent, 0.0, loss)
    kappa = np.minimum(1.0 / share, 2.0 * loss / share)  # never below the solution
    for _ in range(12):
        gap = _missed(kappa) - loss * kappa
        slope = -np.expm1(-kappa) - loss
        before, kappa = kappa, kappa - np.where(slope > 0.0, gap / np.where(slope > 0.0, slope, 1.0), 0.0)
        if (kappa == before).all():
            break
    gamma = np.where(kappa > 0.0, growth / np.where(kappa > 0.0, kappa, 1.0), gammas.sum(axis=-1))
    return np.where(silent, 0.0, gamma)[()], np.where(silent, 0.0, kappa)[()]


def _missed(kappa: FloatArray) -> FloatArray:
    # kappa - 1 + exp(-kappa), without cancellation for small kappa
    return np.asarray(0.5 * kappa * kappa - cubic_residual(kappa))
