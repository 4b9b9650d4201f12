"""The papers' formulas in 50-digit arithmetic, term by term as they are printed (with the errata of the design).

Nothing here is clever, and nothing is imported from the code under test: every sum is a sum, every residual is an
incomplete gamma function, and the numbers that come in are taken exactly as the floats they are.
"""

from collections.abc import Iterator
from typing import Any

import mpmath
from mpmath import mpf

# Fifty, and what cancellation between w and exp(-alpha iota) psi takes for pages crawled just now.
DIGITS = 75
in_digits = mpmath.workdps(DIGITS)


def residual(i: int, x: Any) -> Any:
    """R^i(x) = (exp(x) - sum_{j<=i} x^j / j!) / exp(x), the normalised residual below Theorem 1."""
    if i < x:  # Chernoff's bound of 1 - R^i(x)
        bound = mpmath.exp(i + 1 - x + (i + 1) * mpmath.log(x / (i + 1)))
        if bound < mpf(10) ** -(mpmath.mp.dps + 5):
            return mpf(1)
    return mpmath.gammainc(i + 1, 0, x, regularized=True)


@in_digits
def natural(change_rate: float, recall: float, false_signal_rate: float) -> tuple[Any, Any, Any]:
    """alpha, gamma and kappa."""
    change_rate, recall, nu = map(mpf, (change_rate, recall, false_signal_rate))
    gamma = recall * change_rate + nu
    return (1 - recall) * change_rate, gamma, -mpmath.log(nu / gamma) if nu else mpmath.inf if gamma else mpf(0)


@in_digits
def noisy_value(elapsed: float, n_signals: float, *rates: float, max_terms: int | None = None) -> Any:
    """V(iota) / mu of Theorem 1 and of appendix A.1 (`max_terms`), of a single page, with the limits of the design."""
    alpha, gamma, kappa = natural(*rates)
    return general_value(elapsed, kappa * n_signals if n_signals else 0, alpha, gamma, kappa, max_terms)


@in_digits
def general_value(tau: Any, evidence: Any, alpha: Any, gamma: Any, kappa: Any, max_terms: int | None = None) -> Any:
    """V(iota) / mu from (alpha, gamma, kappa) and the evidence kappa n, summed from i = 0 to floor(iota / beta)."""
    tau, evidence, alpha, gamma, kappa = map(mpf, (tau, evidence, alpha, gamma, kappa))
    y = alpha * tau + evidence  # alpha iota
    nu = gamma * mpmath.exp(-kappa)
    delta = alpha + gamma - nu
    if delta == 0:
        return mpf(0)
    if gamma == 0 or (kappa == 0 and max_terms is None):
        return (1 - (1 + y) * mpmath.exp(-y)) / alpha  # section 5.1: R^1(Delta iota) / Delta
    if y == mpmath.inf:
        return (1 if max_terms is None else 1 - (nu / (delta + nu)) ** max_terms) / delta
    if alpha == 0:  # every announcement before the last is certain; the last one's terms cancel
        terms = mpmath.ceil(y / kappa) if kappa < mpmath.inf else mpf(y > 0)
        terms = terms if max_terms is None else min(terms, max_terms)
        return mpmath.fsum((nu / gamma) ** i / gamma for i in range(int(terms))) - mpmath.exp(-y) * terms / gamma
    w = psi = mpf(0)
    for w_term, psi_term in _lemma_4(y, alpha, gamma, kappa, max_terms):
        w, psi = w + w_term, psi + psi_term
        if w_term < w * mpf(10) ** -(DIGITS - 5):
            break
    return w - mpmath.exp(-y) * psi


def _lemma_4(y: Any, alpha: Any, gamma: Any, kappa: Any, max_terms: int | None = None) -> Iterator[tuple[Any, Any]]:
    """The terms of w and psi, as functions of y = alpha iota."""
    ratio = gamma * mpmath.exp(-kappa) / (alpha + gamma)
    needed = mpmath.floor(y / kappa) if kappa else mpmath.inf
    for i in range(int(needed if max_terms is None else min(needed, max_terms - 1)) + 1):
        rest = (y - (i * kappa if i else 0)) / alpha
        yield ratio**i / (alpha + gamma) * residual(i, (alpha + gamma) * rest), residual(i, gamma * rest) / gamma


@in_digits
def expected_interval(y: Any, alpha: Any, gamma: Any, kappa: Any) -> Any:
    """psi(iota) of Lemma 4."""
    y, alpha, gamma, kappa = map(mpf, (y, alpha, gamma, kappa))
    if gamma == 0 or kappa == 0:
        return y / alpha
    return mpmath.fsum(psi for _, psi in _lemma_4(y, alpha, gamma, kappa))


@in_digits
def expected_cumulative_freshness(y: Any, alpha: Any, gamma: Any, kappa: Any) -> Any:
    """w(iota) of Lemma 4."""
    return mpmath.fsum(w for w, _ in _lemma_4(*map(mpf, (y, alpha, gamma, kappa))))


@in_digits
def greedy_value(elapsed: float, change_rate: float) -> Any:
    """R^1(Delta tau) / Delta of section 5.1."""
    x = mpf(change_rate) * mpf(elapsed)
    return (1 - (1 + x) * mpmath.exp(-x)) / mpf(change_rate)


@mpmath.workdps(30)
def value_by_laplace(y: Any, alpha: Any, gamma: Any, kappa: Any) -> Any:
    """V / mu where far more announcements are needed than can be summed: the Laplace transform, inverted numerically.

    psi has the transform 1 / (z (alpha z + gamma (1 - exp(-z kappa)))), which follows from conditioning on the first
    instant; V is the integral of exp(-u) psi(u). Smooth, and so accurate, only where y / kappa is large.
    """
    y, alpha, gamma, kappa = map(mpf, (y, alpha, gamma, kappa))

    def transform(z: Any) -> Any:
        shifted = z + 1
        return 1 / (z * shifted * (alpha * shifted - gamma * mpmath.expm1(-shifted * kappa)))

    return mpmath.invertlaplace(transform, y, method="talbot", degree=60)


@in_digits
def freshness(rate: float, change_rate: float) -> Any:
    """G(xi; 1, Delta) = xi/Delta (1 - exp(-Delta/xi)): problem (5)."""
    if change_rate == 0:
        return mpf(1)
    return mpf(0) if rate == 0 else -mpmath.expm1(-mpf(change_rate) / rate) * rate / change_rate


@in_digits
def freshness_slope(rate: float, change_rate: float) -> Any:
    """dG/dxi, by differentiating the line above: (1 - (1 + x) exp(-x)) / Delta with x = Delta/xi."""
    return greedy_value(1 / mpf(rate), change_rate) if rate else 1 / mpf(change_rate)


@in_digits
def azar_rates(change_rates: Any, importances: Any, bandwidth: float) -> tuple[list[Any], Any]:
    """Azar et al., Algorithm 2: pages by mu/Delta, the longest prefix of which all rates are positive."""
    change, importance = ([*map(mpf, column)] for column in (change_rates, importances))
    pages = sorted(range(len(change)), key=lambda i: -importance[i] / change[i])
    rates, threshold = [mpf(0)] * len(pages), None
    for k in range(1, len(pages) + 1):
        # With the first k pages, sum of sqrt(mu Delta / Lambda) - Delta is the bandwidth.
        roots = {i: mpmath.sqrt(importance[i] * change[i]) for i in pages[:k]}
        root = (bandwidth + mpmath.fsum(change[i] for i in roots)) / mpmath.fsum(roots.values())
        if min(root * roots[i] - change[i] for i in roots) < 0:
            break
        threshold = 1 / root**2
        for i in roots:
            rates[i] = root * roots[i] - change[i]
    return rates, threshold
