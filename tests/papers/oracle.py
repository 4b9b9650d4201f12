"""The papers' formulas in 50-digit arithmetic, term by term as they are printed (with the errata of the design).

Nothing here is clever, and nothing is imported from the code under test: every sum is a sum, every residual is an
incomplete gamma function, and the numbers that come in are taken exactly as the floats they are.
"""

from typing import Any

import mpmath
from mpmath import mpf

DIGITS = 50
# Cancellation between w and exp(-alpha iota) psi takes up to 20 digits for pages crawled just now.
GUARD_DIGITS = 25


def residual(i: int, x: Any) -> Any:
    """R^i(x) = (exp(x) - sum_{j<=i} x^j / j!) / exp(x), the normalised residual below Theorem 1."""
    if i < x:  # Chernoff's bound of 1 - R^i(x)
        bound = mpmath.exp(i + 1 - x + (i + 1) * mpmath.log(x / (i + 1)))
        if bound < mpf(10) ** -(mpmath.mp.dps + 5):
            return mpf(1)
    return mpmath.gammainc(i + 1, 0, x, regularized=True)


def noisy_value(
    elapsed: float,
    n_signals: float,
    change_rate: float,
    recall: float,
    false_signal_rate: float,
    max_terms: int | None = None,
) -> Any:
    """V(iota) / mu of Theorem 1 and of appendix A.1 (`max_terms`), of a single page, with the limits of the design."""
    with mpmath.workdps(DIGITS + GUARD_DIGITS):
        change_rate, recall, nu = mpf(change_rate), mpf(recall), mpf(false_signal_rate)
        alpha, gamma = (1 - recall) * change_rate, recall * change_rate + nu
        kappa = -mpmath.log(nu / gamma) if nu else (mpmath.inf if gamma else mpf(0))
        n = mpf(n_signals)
        return +general_value(mpf(elapsed), kappa * n if n else mpf(0), alpha, gamma, kappa, max_terms)


def general_value(tau: Any, evidence: Any, alpha: Any, gamma: Any, kappa: Any, max_terms: int | None = None) -> Any:
    """V(iota) / mu from (alpha, gamma, kappa) and the evidence kappa n, summed from i = 0 to floor(iota / beta)."""
    with mpmath.workdps(DIGITS + GUARD_DIGITS):
        tau, evidence, alpha, gamma, kappa = map(mpf, (tau, evidence, alpha, gamma, kappa))
        y = alpha * tau + evidence  # alpha iota
        delta = alpha + gamma * (1 - mpmath.exp(-kappa))
        nu = gamma * mpmath.exp(-kappa)
        if delta == 0:
            return mpf(0)
        if gamma == 0 or (kappa == 0 and max_terms is None):
            return (1 - (1 + y) * mpmath.exp(-y)) / alpha  # section 5.1: R^1(Delta iota) / Delta
        if y == mpmath.inf:
            terms = mpmath.inf if max_terms is None else max_terms
            return (1 - (nu / (delta + nu)) ** terms if terms < mpmath.inf else mpf(1)) / delta
        if alpha == 0:  # every announcement before the last is certain; the last one's terms cancel
            terms = mpmath.ceil(y / kappa) if kappa < mpmath.inf else mpf(y > 0)
            terms = terms if max_terms is None else min(terms, max_terms)
            psi = terms / gamma
            w = mpmath.fsum((nu / gamma) ** i / gamma for i in range(int(terms)))
            return w - mpmath.exp(-y) * psi
        return _lemma_4(y, alpha, gamma, kappa, delta, nu, max_terms)


def _lemma_4(y: Any, alpha: Any, gamma: Any, kappa: Any, delta: Any, nu: Any, max_terms: int | None) -> Any:
    iota, beta = y / alpha, kappa / alpha
    needed = mpmath.floor(y / kappa) if kappa else mpmath.inf
    last = int(needed if max_terms is None else min(needed, max_terms - 1))
    w = psi = mpf(0)
    for i in range(last + 1):
        rest = iota - i * beta if i else iota
        w_term = (nu / (delta + nu)) ** i / (delta + nu) * residual(i, (alpha + gamma) * rest)
        psi_term = residual(i, gamma * rest) / gamma
        w, psi = w + w_term, psi + psi_term
        if w_term < w * mpf(10) ** -(DIGITS + GUARD_DIGITS - 5):
            break
    return w - mpmath.exp(-y) * psi


def greedy_value(elapsed: float, change_rate: float) -> Any:
    """R^1(Delta tau) / Delta of section 5.1."""
    with mpmath.workdps(DIGITS + GUARD_DIGITS):
        x = mpf(change_rate) * mpf(elapsed)
        return (1 - (1 + x) * mpmath.exp(-x)) / mpf(change_rate)


def expected_interval(y: Any, alpha: Any, gamma: Any, kappa: Any) -> Any:
    """psi(iota) of Lemma 4, as a function of y = alpha iota."""
    with mpmath.workdps(DIGITS):
        y, alpha, gamma, kappa = map(mpf, (y, alpha, gamma, kappa))
        if gamma == 0 or kappa == 0:
            return y / alpha
        last = 0 if kappa == mpmath.inf else int(mpmath.floor(y / kappa))
        return mpmath.fsum(residual(i, gamma * (y - (i * kappa if i else 0)) / alpha) / gamma for i in range(last + 1))


def expected_cumulative_freshness(y: Any, alpha: Any, gamma: Any, kappa: Any) -> Any:
    """w(iota) of Lemma 4, as a function of y = alpha iota."""
    with mpmath.workdps(DIGITS):
        y, alpha, gamma, kappa = map(mpf, (y, alpha, gamma, kappa))
        nu = gamma * mpmath.exp(-kappa)
        delta = alpha + gamma - nu
        last = 0 if kappa == mpmath.inf else int(mpmath.floor(y / kappa))
        return mpmath.fsum(
            (nu / (delta + nu)) ** i
            / (delta + nu)
            * residual(i, (alpha + gamma) * (y - (i * kappa if i else 0)) / alpha)
            for i in range(last + 1)
        )


def value_by_laplace(y: Any, alpha: Any, gamma: Any, kappa: Any) -> Any:
    """V / mu where far more announcements are needed than can be summed: the Laplace transform, inverted numerically.

    psi has the transform 1 / (z (alpha z + gamma (1 - exp(-z kappa)))), which follows from conditioning on the first
    instant; V is the integral of exp(-u) psi(u). Smooth, and so accurate, only where y / kappa is large.
    """
    with mpmath.workdps(30):
        y, alpha, gamma, kappa = map(mpf, (y, alpha, gamma, kappa))

        def transform(z: Any) -> Any:
            shifted = z + 1
            return 1 / (z * shifted * (alpha * shifted - gamma * mpmath.expm1(-shifted * kappa)))

        return mpmath.invertlaplace(transform, y, method="talbot", degree=60)
