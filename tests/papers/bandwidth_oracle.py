"""The reference policies in 50 digits, written from the papers and sharing nothing with crawlsched.

Every function takes numbers and gives mpmath numbers; sums run as printed, with the errata that sums run to
floor(iota / beta). Slow on purpose: nothing is rearranged.
"""

from mpmath import mp, mpf

from tests.papers import oracle

DIGITS = 50


def _digits(function):
    def wrapped(*arguments):
        with mp.workdps(DIGITS):
            return function(*[mpf(a) for a in arguments])

    wrapped.__doc__ = function.__doc__
    wrapped.__name__ = function.__name__
    return wrapped


@_digits
def freshness(rate, change_rate):
    """G(xi; 1, Delta) = xi/Delta (1 - exp(-Delta/xi)): problem (5)."""
    if change_rate == 0:
        return mpf(1)
    return mpf(0) if rate == 0 else -mp.expm1(-change_rate / rate) * rate / change_rate


@_digits
def freshness_slope(rate, change_rate):
    """dG/dxi, by differentiating the line above: (1 - (1 + x) exp(-x)) / Delta with x = Delta/xi."""
    if change_rate == 0:
        return mpf(0)
    if rate == 0:
        return 1 / change_rate
    x = change_rate / rate
    return (-mp.expm1(-x) - x * mp.exp(-x)) / change_rate


@_digits
def refresh_rate(threshold, change_rate, importance):
    """The rate of a page in problem (5) at a threshold: dG/dxi = Lambda / mu, by bisection."""
    target = threshold / importance
    if target * change_rate >= 1:
        return mpf(0)
    low, high = mpf(10) ** -60, mpf(10) ** 60
    for _ in range(400):
        middle = mp.sqrt(low * high)
        low, high = (middle, high) if freshness_slope(middle, change_rate) > target else (low, middle)
    return low


@_digits
def psi(iota, change_rate, recall, false_signal_rate):
    """Lemma 4, the expected length of an interval between crawls."""
    alpha, gamma, kappa = _natural(change_rate, recall, false_signal_rate)
    return oracle.expected_interval(alpha * iota, alpha, gamma, kappa)


@_digits
def w(iota, change_rate, recall, false_signal_rate):
    """Lemma 4, the expected cumulative freshness between crawls."""
    alpha, gamma, kappa = _natural(change_rate, recall, false_signal_rate)
    return oracle.expected_cumulative_freshness(alpha * iota, alpha, gamma, kappa)


@_digits
def crawl_value(iota, change_rate, recall, false_signal_rate, importance):
    """V = mu (w - exp(-alpha iota) psi), Theorem 1."""
    alpha = (1 - recall) * change_rate
    parameters = (iota, change_rate, recall, false_signal_rate)
    return importance * (w(*parameters) - mp.exp(-alpha * iota) * psi(*parameters))


def _natural(change_rate, recall, false_signal_rate):
    alpha, gamma = (1 - recall) * change_rate, recall * change_rate + false_signal_rate
    return alpha, gamma, -mp.log(false_signal_rate / gamma) if false_signal_rate else mp.inf


def azar_rates(change_rates, importances, bandwidth):
    """Azar et al., Algorithm 2: pages by mu/Delta, the longest prefix of which all rates are positive."""
    with mp.workdps(DIGITS):
        pages = sorted(range(len(change_rates)), key=lambda i: -mpf(importances[i]) / mpf(change_rates[i]))
        roots = [mp.sqrt(mpf(importances[i]) * mpf(change_rates[i])) for i in pages]
        rates = [mpf(0)] * len(pages)
        threshold = None
        for k in range(1, len(pages) + 1):
            # With the first k pages, sum of sqrt(mu Delta / Lambda) - Delta is the bandwidth.
            root = (mpf(bandwidth) + mp.fsum(mpf(change_rates[i]) for i in pages[:k])) / mp.fsum(roots[:k])
            found = [root * roots[j] - mpf(change_rates[pages[j]]) for j in range(k)]
            if min(found) < 0:
                break
            threshold = 1 / root**2
            for j in range(k):
                rates[pages[j]] = found[j]
        return rates, threshold
