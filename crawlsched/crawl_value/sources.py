"""The crawl value with several independent sources of announcements, each change announced by at most one of them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import arguments
from crawlsched.crawl_value.integrals import LARGEST_EXPONENT, first_signal_integral
from crawlsched.crawl_value.noisy import log_staleness
from crawlsched.crawl_value.rules import evidence_of, natural_parameters
from crawlsched.crawl_value.terms import (
    LARGEST_RATIO,
    LEAST_RATE,
    NEGLIGIBLE,
    WIDTH,
    certain_from,
    cubic_residual,
    enumerate_counts,
    noisy_terms,
    open_terms,
    stirling,
)

# Combinations of announcements that are summed at once: about 150 bytes each for the time being.
MOST_COMBINATIONS = 1_000_000


def greedy_ncis_sources(
    elapsed: ArrayLike,
    n_signals: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    importance: ArrayLike = 1.0,
) -> Any:
    """Return the crawl value with noisy announcements from several independent sources.

    Each change is announced by one of the sources at most: a change that two sources announce would count twice, and
    such announcements have to be merged before.

    Parameters
    ----------
    elapsed : array_like, shape (...)
        Seconds since the last crawl, 0 or more; infinity is allowed.
    n_signals : array_like, shape (..., S)
        Announcements by each source since the last crawl.
    change_rate : array_like, shape (...)
        Changes per second. A page that never changes (0) is worth 0.
    recall : array_like, shape (..., S)
        Probability that a change is announced by each source; their sum is 1 at most.
    false_signal_rate : array_like, shape (..., S)
        Announcements per second without a change, by each source.
    importance : array_like, shape (...), optional
        Weight of a fresh copy.

    Returns
    -------
    array_like of float64, shape (...)
        Crawl value, in importance times seconds; with one source that of `greedy_ncis`.

    Raises
    ------
    ValueError
        If an argument is out of its range or not a number, if recalls sum to more than 1, or if so many weak
        announcements are needed that their combinations cannot be summed (`merge_sources` is for these).

    Notes
    -----
    Footnote 2 of [1]_ leaves this to the reader. Freshness is exp(-y) with y = alpha tau + sum_s kappa_s n_s and
    alpha = (1 - sum_s recall_s) Delta, and the page should be crawled as soon as y reaches a threshold. Lemma 3 and
    with it V(y) = integral of exp(-u) psi(u), u = 0 .. y, hold word for word, where psi(u) is the mean time until y
    reaches u. The announcement that reaches it may be the first after any combination n of earlier ones:
    psi(u) = 1/gamma sum_n multinomial(n; gamma_s / gamma) P(Gamma(|n| + 1, rate gamma / alpha) < u - kappa . n),
    which is summed term by term. See ``docs/explanation/posterior_crawl_value.md`` for the derivation.

    References
    ----------
    .. [1] Busa-Fekete, Zimmert, György, Qiu, Sung, Shen, Choi, Subramaniam, Xiao (2025). A Scalable Crawling
       Algorithm Utilizing Noisy Change-Indicating Signals.

    Examples
    --------
    A sitemap and a feed that announce different halves of the changes, the feed with fewer false alarms:

    >>> greedy_ncis_sources(1.0, [[0, 0], [1, 0], [0, 1]], 0.5, [0.4, 0.4], [0.2, 0.02]).round(4)
    array([0.0385, 0.6622, 1.6101])
    """
    delta = np.asarray(arguments.rate("change_rate", change_rate))
    recalls = np.atleast_1d(arguments.probability("recall", recall))
    total = recalls.sum(axis=-1)
    if not (total <= 1.0 + 1e-12).all():
        raise ValueError(f"recall must sum to at most 1 over the sources, but a sum is {total.max():.6g}.")
    false_rates = np.atleast_1d(arguments.rate("false_signal_rate", false_signal_rate))
    counts = np.atleast_1d(arguments.count("n_signals", n_signals))
    factor = arguments.weight("importance", importance)
    with np.errstate(under="ignore", over="ignore"):
        _, gammas, kappas = natural_parameters(delta[..., None], recalls, false_rates)
        evidence = evidence_of(counts, kappas).sum(axis=-1)
        alpha = np.maximum(1.0 - total, 0.0) * delta
        y = log_staleness(arguments.elapsed_seconds(elapsed), alpha, evidence)
        shape = np.broadcast_shapes(np.shape(y), gammas.shape[:-1], kappas.shape[:-1])
        n_sources = max(gammas.shape[-1], counts.shape[-1])
        flat_gammas, flat_kappas = (
            np.broadcast_to(part, (*shape, n_sources)).reshape(-1, n_sources) for part in (gammas, kappas)
        )
        flat_y, flat_alpha = (np.broadcast_to(part, shape).reshape(-1) for part in (y, alpha))
        value = _value(np.minimum(flat_y, LARGEST_EXPONENT), flat_alpha, flat_gammas, flat_kappas)
        return factor * value.reshape(shape)[()]


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

    Raises
    ------
    ValueError
        If an argument is negative or not finite.

    Notes
    -----
    An approximation, and much faster than `greedy_ncis_sources`. It keeps what decides the crawl value far from and
    close to its limit: gamma (1 - exp(-kappa)), the rate of announced changes, and with it the change rate; and
    gamma kappa, the mean growth of the evidence, and with it the mean time between crawls at large thresholds.

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


def _value(y: FloatArray, alpha: FloatArray, gammas: FloatArray, kappas: FloatArray) -> FloatArray:
    heard = (kappas > NEGLIGIBLE) & (gammas > np.maximum(NEGLIGIBLE * alpha, LEAST_RATE)[:, None])
    gammas = np.where(heard, gammas, 0.0)
    gamma = gammas.sum(axis=-1)
    value = np.empty(y.shape)
    single = heard.sum(axis=-1) <= 1
    if single.any():
        kappa = np.where(heard, kappas, 0.0).max(axis=-1)
        value[single], _ = noisy_terms(y[single], alpha[single], gamma[single], kappa[single])
    at = np.flatnonzero(~single)
    if at.size:
        c = gamma[at] / np.maximum(alpha[at], gamma[at] / LARGEST_RATIO)
        steps = np.where(heard, kappas, np.inf)[at]
        first = first_signal_integral(y[at], c) * c
        later = np.exp(-y[at]) * _later(y[at], c, gammas[at] / gamma[at, None], steps)
        value[at] = (first + later) / gamma[at]
    return value


def _later(y: FloatArray, c: FloatArray, shares: FloatArray, steps: FloatArray) -> FloatArray:
    """exp(y) gamma / mu times the terms of all combinations of one announcement or more."""
    page = np.arange(y.size)
    rest, n, log_weight = y, np.zeros(y.size), np.zeros(y.size)
    # No more than these announcements come in time, whatever their weights: i + 1 - 8.2 sqrt(i + 1) < c y.
    most = np.square(WIDTH / 2.0 + np.sqrt(WIDTH**2 / 4.0 + c * y))
    for source in range(steps.shape[1]):
        step, share = steps[page, source], shares[page, source]
        count = np.floor(np.minimum(rest / step, most[page] - n)) + 1.0
        if count.sum() > MOST_COMBINATIONS:
            raise ValueError(
                f"n_signals, recall and false_signal_rate need {count.sum():.3g} combinations of announcements, more "
                f"than {MOST_COMBINATIONS}: pass fewer pages at once, or merge their sources with merge_sources."
            )
        element, k = enumerate_counts(count.astype(np.intp))
        page, n = page[element], n[element] + k
        rest = rest[element] - np.where(k > 0.0, k * np.where(k > 0.0, step[element], 0.0), 0.0)
        log_share = np.log(np.where(k > 0.0, share[element], 1.0))
        log_weight = log_weight[element] + k * log_share - _log_factorial(k)
    some = n > 0.0
    page, n, rest, log_weight = page[some], n[some], np.maximum(rest[some], 0.0), log_weight[some]
    weight = np.exp(log_weight + _log_factorial(n))
    later: FloatArray = np.bincount(page, weights=weight * _gain(n, rest, c[page]), minlength=y.size).astype(np.float64)
    return later


def _gain(i: FloatArray, rest: FloatArray, c: FloatArray) -> FloatArray:
    """E[(exp(rest - T) - 1)^+] with T ~ Gamma(i + 1, rate c), for i >= 1."""
    x = c * rest
    sure = x >= certain_from(i)
    gain = np.empty(i.shape)
    gain[sure] = np.expm1(rest[sure] - (i[sure] + 1.0) * np.log1p(1.0 / c[sure]))
    gain[~sure], _ = open_terms(i[~sure], x[~sure], c[~sure])
    return gain


def _missed(kappa: FloatArray) -> FloatArray:
    # kappa - 1 + exp(-kappa), without cancellation for small kappa
    return np.asarray(0.5 * kappa * kappa - cubic_residual(kappa))


def _log_factorial(k: FloatArray) -> FloatArray:
    return np.asarray(stirling(k) + k * np.log(np.maximum(k, 1.0)) - k)
