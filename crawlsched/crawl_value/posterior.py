"""The posterior crawl value: the expectation of the crawl value over the rates that are still possible."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.crawl_value import arguments
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
    tau = _column(arguments.elapsed_seconds(elapsed))
    heard = _column(arguments.nats("evidence", evidence))
    gamma = _column(arguments.rate("signal_rate", signal_rate))
    kappa = _column(arguments.nats("signal_weight", signal_weight))
    with np.errstate(under="ignore", over="ignore"):
        values = unchecked_noisy_value(tau, heard, grid, gamma, kappa)
        # Not a matrix product: its rounding would depend on how many pages are evaluated together.
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
    # One number per page becomes one row of length 1, to stand beside the grid of rates.
    return value[..., None] if isinstance(value, np.ndarray) and value.ndim else value
