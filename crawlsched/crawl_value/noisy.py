"""The crawl value with noisy announcements, by its natural parameters alpha, gamma and kappa."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import arguments
from crawlsched.crawl_value.terms import cubic_residual, noisy_terms


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

    All arguments except `max_terms` are broadcast against each other.

    Parameters
    ----------
    elapsed : array_like
        Seconds since the last crawl, 0 or more; infinity is allowed.
    evidence : array_like
        Nats by which the announcements since the last crawl lower the log-probability of freshness: kappa n. Infinity
        if one of the announcements is certainly true.
    unsignalled_change_rate : array_like
        alpha, unannounced changes per second.
    signal_rate : array_like
        gamma, announcements per second, whether true or false.
    signal_weight : array_like
        kappa = -ln(1 - precision), in nats for one announcement; infinity if announcements are always true.
    importance : array_like, optional
        mu, weight of a fresh copy.
    max_terms : int, optional
        Number of terms of the sum to use, as in G-NCIS-APPROX-j; None: all of them.

    Returns
    -------
    array_like of float64
        Crawl value, in importance times seconds. The change rate is alpha + gamma (1 - exp(-kappa)), and the value
        tends to importance / change rate. It is 0 for a page that never changes.

    Notes
    -----
    V(iota) = mu (w(iota) - exp(-alpha iota) psi(iota)) of Theorem 1 and Lemma 4 in [1]_, with the sums up to
    floor(iota / beta) and alpha iota = alpha elapsed + evidence. It is computed as the integral of exp(-u) psi(u) from
    u = 0 to alpha iota. That avoids cancellation: relative errors are about 1e-15, and the cost is bounded.

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
    """`noisy_value` with importance 1 and without checks of its arguments, for callers that evaluate page by page.

    Underflow and overflow in intermediate results are harmless. If numpy is set to raise them as errors, call this
    function under ``np.errstate(under="ignore", over="ignore")``.
    """
    y = log_staleness(elapsed, alpha, evidence)
    shape = np.broadcast_shapes(np.shape(y), np.shape(gamma), np.shape(kappa))
    y, alpha, gamma, kappa = (_flat(part, shape) for part in (y, alpha, gamma, kappa))
    value, _ = noisy_terms(y, alpha, gamma, kappa, max_terms)
    return value.reshape(shape)[()]


def log_staleness(elapsed: Any, alpha: Any, evidence: Any) -> Any:
    """Minus the log-probability of freshness, alpha tau + kappa n; the product of 0 and infinity is 0 here."""
    if np.isinf(elapsed).any():
        elapsed = np.where(np.asarray(alpha) > 0.0, elapsed, 0.0)
    return np.multiply(alpha, elapsed) + evidence


def _flat(part: Any, shape: tuple[int, ...]) -> FloatArray:
    array = np.asarray(part, dtype=np.float64)
    if array.shape != shape:
        array = np.broadcast_to(array, shape)
    return array.reshape(-1)


def posterior_value(
    weights: ArrayLike,
    rates: ArrayLike,
    elapsed: ArrayLike,
    evidence: ArrayLike = 0.0,
    signal_rate: ArrayLike = 0.0,
    signal_weight: ArrayLike = 0.0,
    importance: ArrayLike = 1.0,
) -> Any:
    """Return the expected crawl value over a categorical posterior of the change rate.

    Parameters
    ----------
    weights : array_like, shape (..., K)
        Posterior probability of each rate; the probabilities sum to 1 over the last axis.
    rates : array_like, shape (K,)
        Grid of rates per second, above 0. With announcements these are the rates of unannounced changes (alpha).
    elapsed : array_like, shape (...)
        Seconds since the last crawl, 0 or more; infinity is allowed.
    evidence : array_like, shape (...), optional
        Nats by which the announcements since the last crawl lower the log-probability of freshness: the sum of kappa n
        over the sources.
    signal_rate, signal_weight : array_like, shape (...), optional
        gamma and kappa of the page's announcements; 0: no announcements.
    importance : array_like, shape (...), optional
        Weight of a fresh copy.

    Returns
    -------
    array_like of float64, shape (...)
        Expected crawl value, in importance times seconds.

    Notes
    -----
    The value is sum_k weights_k V(elapsed, evidence; rates_k, gamma, kappa): the derivative of the expected freshness
    if the rate is unknown (derived in ``docs/explanation/posterior_crawl_value.md``). If `greedy` used the posterior's
    *mean* instead, a page whose rate once seemed too high for a crawl would never be visited again.

    Examples
    --------
    A page that changes either hourly or once in ten days is worth far more than its mean rate suggests:

    >>> import numpy as np
    >>> day = 86400.0
    >>> rates = np.array([24.0, 0.1]) / day
    >>> float(posterior_value([0.5, 0.5], rates, elapsed=10 * day) / day)
    1.342
    >>> from crawlsched.crawl_value import greedy
    >>> float(greedy(10 * day, rates.mean()) / day)
    0.0830
    """
    probabilities, grid = _checked_posterior(weights, rates)
    tau = _column(arguments.elapsed_seconds(elapsed))
    heard = _column(arguments.nats("evidence", evidence))
    gamma = _column(arguments.rate("signal_rate", signal_rate))
    kappa = _column(arguments.nats("signal_weight", signal_weight))
    with np.errstate(under="ignore", over="ignore"):
        values = unchecked_noisy_value(tau, heard, grid, gamma, kappa)
        # This is not a matrix product, whose rounding would depend on how many pages are evaluated together.
        return (probabilities * values).sum(axis=-1) * arguments.weight("importance", importance)


def _checked_posterior(weights: ArrayLike, rates: ArrayLike) -> tuple[Any, Any]:
    probabilities = np.asarray(arguments.probability("weights", weights))
    grid = np.asarray(arguments.positive("rates", rates))
    if grid.ndim != 1 or probabilities.ndim < 1 or probabilities.shape[-1] != grid.size:
        raise ValueError(
            "weights must have one entry for each of the rates on its last axis, and rates must have one axis, "
            f"but their shapes are {probabilities.shape} and {grid.shape}."
        )
    excess = np.abs(probabilities.sum(axis=-1) - 1.0)
    if not (excess <= 1e-6).all():
        raise ValueError(f"weights must sum to 1 over their last axis, but a sum is off by {excess.max():.3g}.")
    return probabilities, grid


def _column(value: Any) -> Any:
    # Each page's number becomes a row of length 1, which is broadcast against the grid of rates.
    return value[..., None] if isinstance(value, np.ndarray) and value.ndim else value


def merge_sources(signal_rate: ArrayLike, signal_weight: ArrayLike) -> tuple[Any, Any]:
    """Return the signal rate and signal weight of the single source that best replaces several.

    Parameters
    ----------
    signal_rate : array_like, shape (..., S)
        gamma_s, announcements per second of each source, whether true or false.
    signal_weight : array_like, shape (..., S)
        kappa_s of each source, in nats, finite.

    Returns
    -------
    signal_rate, signal_weight : array_like of float64, shape (...)
        gamma and kappa for `noisy_value` and `posterior_value`. Their evidence is still the sum of kappa_s n_s.

    Notes
    -----
    This approximation is off by some per cent (``docs/explanation/posterior_crawl_value.md``). Two sums over the
    sources are preserved. The first sum is the rate of announced changes, gamma (1 - exp(-kappa)), on which the change
    rate depends. The second sum is the mean growth of the evidence, gamma kappa, on which the mean time between crawls
    depends if the threshold is large.

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
    # Solve (1 - exp(-kappa)) / kappa = share. `loss` is 1 - share, computed separately since it may be tiny.
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
