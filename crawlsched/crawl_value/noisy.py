"""The crawl value with noisy announcements, by its natural parameters alpha, gamma and kappa."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import arguments
from crawlsched.crawl_value.terms import noisy_terms


def noisy_value(
    elapsed: ArrayLike,
    evidence: ArrayLike,
    unsignalled_change_rate: ArrayLike,
    signal_rate: ArrayLike,
    signal_weight: ArrayLike,
    importance: ArrayLike = 1.0,
    max_terms: int | None = None,
) -> Any:
    """Crawl value with noisy announcements, from unsignalled change rate, signal rate and signal weight.

    All arguments but the last are broadcast against each other.

    Parameters
    ----------
    elapsed : array_like
        Seconds since the last crawl, 0 or more; infinity is allowed.
    evidence : array_like
        What the announcements since the last crawl take off the log-probability of freshness: kappa n, in nats.
        Infinity where one of them is certainly true.
    unsignalled_change_rate : array_like
        alpha, changes per second that nobody announces.
    signal_rate : array_like
        gamma, announcements per second, true and false.
    signal_weight : array_like
        kappa = -ln(1 - precision), in nats, of one announcement; infinity where announcements are always true.
    importance : array_like, optional
        mu, weight of a fresh copy.
    max_terms : int, optional
        Terms of the sum to use, as in G-NCIS-APPROX-j; None: all of them.

    Returns
    -------
    array_like of float64
        Crawl value, in importance times seconds. The change rate is alpha + gamma (1 - exp(-kappa)), and the value
        tends to importance / change rate. It is 0 for a page without any change.

    Notes
    -----
    V(iota) = mu (w(iota) - exp(-alpha iota) psi(iota)) of Theorem 1 and Lemma 4 in [1]_, with the sums up to
    floor(iota / beta) and alpha iota = alpha elapsed + evidence. It is computed without cancellation as the integral
    of exp(-u) psi(u) over u = 0 .. alpha iota, with relative errors of about 1e-15, and at a bounded cost.

    References
    ----------
    .. [1] Busa-Fekete et al. (2025), "A scalable crawling algorithm utilizing noisy change-indicating signals".

    Examples
    --------
    One unannounced change a day and two announcements a day, each true with probability 1/2:

    >>> import math
    >>> day = 86400.0
    >>> float(noisy_value(day / 2, 0.0, 1 / day, 2 / day, math.log(2)) / day)
    0.0672
    >>> float(noisy_value(day / 2, math.log(2), 1 / day, 2 / day, math.log(2)) / day)
    0.1954
    """
    factor = arguments.weight("importance", importance)
    with np.errstate(under="ignore", over="ignore"):
        return factor * unchecked_noisy_value(
            arguments.elapsed_seconds(elapsed),
            arguments.nats("evidence", evidence),
            arguments.rate("unsignalled_change_rate", unsignalled_change_rate),
            arguments.rate("signal_rate", signal_rate),
            arguments.nats("signal_weight", signal_weight),
            arguments.number_of_terms(max_terms),
        )


def unchecked_noisy_value(
    elapsed: Any, evidence: Any, alpha: Any, gamma: Any, kappa: Any, max_terms: float = math.inf
) -> Any:
    """`noisy_value` of importance 1 for arguments known to be right; for callers that evaluate page by page.

    Underflow and overflow in between are harmless here, so call it under ``np.errstate(under="ignore", over="ignore")``
    where numpy would raise.
    """
    y = log_staleness(elapsed, alpha, evidence)
    shape = np.broadcast_shapes(np.shape(y), np.shape(gamma), np.shape(kappa))
    y, alpha, gamma, kappa = (_flat(part, shape) for part in (y, alpha, gamma, kappa))
    value, _ = noisy_terms(y, alpha, gamma, kappa, max_terms)
    return value.reshape(shape)[()]


def log_staleness(elapsed: Any, alpha: Any, evidence: Any) -> Any:
    """Minus the log-probability of freshness, alpha tau + kappa n, where 0 times infinity is 0."""
    if np.isinf(elapsed).any():
        elapsed = np.where(np.asarray(alpha) > 0.0, elapsed, 0.0)
    return np.multiply(alpha, elapsed) + evidence


def _flat(part: Any, shape: tuple[int, ...]) -> FloatArray:
    array = np.asarray(part, dtype=np.float64)
    if array.shape != shape:
        array = np.broadcast_to(array, shape)
    return array.reshape(-1)
