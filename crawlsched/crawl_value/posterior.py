"""The posterior crawl value: the expectation of the crawl value over the rates that are still possible."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.crawl_value import arguments
from crawlsched.crawl_value.integrals import residual_one, shifted_exponential_integral
from crawlsched.crawl_value.noisy import unchecked_noisy_value


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
        Posterior probability of each rate; they sum to 1 over the last axis.
    rates : array_like, shape (K,)
        Grid of rates per second, above 0: of all changes where there are no announcements, else of the changes that
        nobody announces (alpha).
    elapsed : array_like, shape (...)
        Seconds since the last crawl, 0 or more; infinity is allowed.
    evidence : array_like, shape (...), optional
        What the announcements since the last crawl take off the log-probability of freshness, in nats: the sum of
        kappa n over the sources.
    signal_rate, signal_weight : array_like, shape (...), optional
        gamma and kappa of the page's announcements; 0: none.
    importance : array_like, shape (...), optional
        Weight of a fresh copy.

    Returns
    -------
    array_like of float64, shape (...)
        Expected crawl value, in importance times seconds.

    Raises
    ------
    ValueError
        If an argument is out of its range, or a page's weights do not sum to 1.

    Notes
    -----
    sum_k weights_k V(elapsed, evidence; rates_k, gamma, kappa), the derivative of the expected freshness where the
    rate is not known (derived in ``docs/explanation/posterior_crawl_value.md``).
    Put the posterior's *mean* into `greedy` instead,
    and a page that once looked too fast to be worth it is never visited again.

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
    with np.errstate(under="ignore", over="ignore"):
        return unchecked_posterior_value(
            probabilities,
            grid,
            arguments.elapsed_seconds(elapsed),
            arguments.nats("evidence", evidence),
            arguments.rate("signal_rate", signal_rate),
            arguments.nats("signal_weight", signal_weight),
            arguments.weight("importance", importance),
        )


def unchecked_posterior_value(
    weights: Any,
    rates: Any,
    elapsed: Any,
    evidence: Any = 0.0,
    signal_rate: Any = 0.0,
    signal_weight: Any = 0.0,
    importance: Any = 1.0,
) -> Any:
    """`posterior_value` for arguments known to be right (weights and rates float64 arrays), page by page."""
    if type(evidence) is float and evidence == 0.0 and type(signal_rate) is float and signal_rate == 0.0:
        values = residual_one(rates * _column(elapsed)) / rates
    else:
        values = unchecked_noisy_value(
            _column(elapsed), _column(evidence), rates, _column(signal_rate), _column(signal_weight)
        )
    # Not a matrix product: its rounding would depend on how many pages are evaluated together.
    return (weights * values).sum(axis=-1) * importance


def greedy_value_of_gamma(elapsed: ArrayLike, shape: ArrayLike, rate: ArrayLike, importance: ArrayLike = 1.0) -> Any:
    """Return the expected GREEDY value where the change rate has a Gamma posterior.

    Parameters
    ----------
    elapsed : array_like
        Seconds since the last crawl, 0 or more and finite.
    shape : array_like
        a of the Gamma posterior, above 0.
    rate : array_like
        b of the Gamma posterior, in seconds, above 0; its mean is a / b changes per second.
    importance : array_like, optional
        Weight of a fresh copy.

    Returns
    -------
    array_like of float64
        Expected crawl value, in importance times seconds. It tends to b / (a - 1), and without bound for a <= 1.

    Raises
    ------
    ValueError
        If an argument is out of its range or not a number.

    Notes
    -----
    mu [b / (a - 1) (1 - r**(a - 1)) - tau r**a] with r = b / (b + tau), which is b log((b + tau) / b) - tau r at a = 1.
    It cancels for recent crawls and near a = 1; computed is the integral of a b (exp(l) - 1) exp(-a l) over
    l = 0 .. log(1 + tau / b), which does not (``docs/explanation/posterior_crawl_value.md``).

    Examples
    --------
    >>> greedy_value_of_gamma(elapsed=[0.0, 1.0, 100.0], shape=1.0, rate=2.0).round(4)
    array([0.    , 0.1443, 5.9029])
    """
    tau = arguments.weight("elapsed", elapsed)
    a = arguments.positive("shape", shape)
    b = arguments.positive("rate", rate)
    factor = arguments.weight("importance", importance)
    with np.errstate(under="ignore", over="ignore"):
        integral = shifted_exponential_integral(np.subtract(a, 1.0), np.log1p(np.divide(tau, b)))
        return factor * (np.multiply(a, b) * integral)[()]


def undiscovered_value(
    weights: ArrayLike,
    rates: ArrayLike,
    horizon: float,
    signal_rate: ArrayLike = 0.0,
    signal_weight: ArrayLike = 0.0,
    importance: ArrayLike = 1.0,
) -> Any:
    """Crawl value of a page that was never crawled: mu E[1 / (Delta + 1 / horizon)].

    Parameters
    ----------
    weights : array_like, shape (..., K)
        Probability of each rate, as known before the first visit; they sum to 1 over the last axis.
    rates : array_like, shape (K,)
        Grid of rates per second, as in `posterior_value`.
    horizon : float
        1 / delta, seconds after which a copy stops being of use even where the page never changes; above 0.
    signal_rate, signal_weight : array_like, shape (...), optional
        gamma and kappa of the page's announcements; 0: none. Changes then come at alpha + gamma (1 - exp(-kappa)).
    importance : array_like, shape (...), optional
        Weight of a fresh copy.

    Returns
    -------
    array_like of float64, shape (...)
        Crawl value, in importance times seconds.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    A page without a copy is as stale as can be, and its value is the limit mu / Delta of every crawl value. Its mean
    would be infinite, or set by the slowest rate of the grid; the horizon bounds it.

    Examples
    --------
    >>> float(undiscovered_value([0.5, 0.5], [1.0, 0.001], horizon=99.0))
    45.54
    """
    probabilities, grid = _checked_posterior(weights, rates)
    longest = arguments.positive("horizon", horizon)
    gamma = _column(arguments.rate("signal_rate", signal_rate))
    kappa = _column(arguments.nats("signal_weight", signal_weight))
    factor = arguments.weight("importance", importance)
    with np.errstate(under="ignore", over="ignore"):
        change_rate = grid - gamma * np.expm1(-kappa)
        return (probabilities / (change_rate + 1.0 / longest)).sum(axis=-1) * factor


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
    # One number per page becomes one row of length 1, to stand beside the grid of rates.
    return value[..., None] if isinstance(value, np.ndarray) and value.ndim else value
