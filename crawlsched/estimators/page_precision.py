"""The precision of one page's announcements: a Beta distribution that visits update."""

from __future__ import annotations

from math import exp, expm1, lgamma
from sys import float_info

__all__ = ["EXTREME", "OF_THE_SOURCE", "REMEMBERED", "beta", "expected_evidence", "judged", "learned"]


#: All announcements of a page, or of a pair of sources, together count as at most this number. Then older announcements
#: count ever less, so that the precision follows changes in their quality.
REMEMBERED = 200.0
#: The precision of the source counts like this number of announcements, in addition to the page's own announcements.
OF_THE_SOURCE = 4.0
#: The source's precision is taken to be at least this far from 0 and 1, since a page may differ from its source.
EXTREME = 1e-6
# At most this number of announcements counts. With more, rounding would lose the variance.
_MOST = 1.0 / EXTREME


def expected_evidence(true: float, false: float, n_signals: float) -> float:
    """Return the evidence of n announcements, in nats: -log E[(1 - p)^n] for p ~ Beta(true, false).

    The evidence of n announcements is less than n times that of a single one. If the first was false, the next is
    likely to be false, too.

    Examples
    --------
    >>> [round(expected_evidence(1.0, 1.0, n), 3) for n in (1, 2, 10)]
    [0.693, 1.099, 2.398]
    """
    both = true + false
    # Beyond hundreds of millions of announcements the sum is only rounding error.
    return max(lgamma(false) - lgamma(false + n_signals) - lgamma(both) + lgamma(both + n_signals), 0.0)


def judged(true: float, false: float, n_signals: float, known: float, fresh: float) -> tuple[float, float]:
    """Return the distribution of a page's precision after a visit.

    Parameters
    ----------
    known, fresh : float
        The finding of the visit had the probability `known` + `fresh` (1 - p)^n. Let f be the probability that nothing
        else changed the page. The two numbers are (0, f) for an unchanged page, and (1, -f) for a changed page.

    Notes
    -----
    If the page is unchanged, all n announcements were false, and Bayes' rule gives Beta(true, false + n). After a
    change the posterior is not a Beta distribution, since the change may be an unannounced one. The Beta distribution
    with the same mean and variance replaces it (assumed-density filtering [1]_). Mean and variance have closed forms,
    since E[(1 - p)^j] = Π_{i<j} (false + i)/(true + false + i).

    References
    ----------
    .. [1] Maybeck (1982), "Stochastic models, estimation and control", volume 2, section 12.3; Opper (1998), "A
       Bayesian approach to on-line learning".

    Examples
    --------
    A change without another explanation proves the announcement true. A change that would have come anyway proves
    nothing:

    >>> judged(1.0, 1.0, 1.0, known=1.0, fresh=-1.0)
    (2.0, 1.0)
    >>> judged(1.0, 1.0, 1.0, known=1.0, fresh=0.0)
    (1.0, 1.0)
    >>> judged(1.0, 1.0, 3.0, known=0.0, fresh=0.5)
    (1.0, 4.0)
    """
    if known == 0.0:
        return true, false + n_signals
    both = true + false
    if both > _MOST:
        return true, false
    none = exp(-expected_evidence(true, false, n_signals))
    once = none * (false + n_signals) / (both + n_signals)
    twice = once * (false + n_signals + 1.0) / (both + n_signals + 1.0)
    chance = known + fresh * none
    if chance < float_info.epsilon:  # only rounding error
        return true, false
    mean = (known * false / both + fresh * once) / chance
    square = (known * false * (false + 1.0) / (both * (both + 1.0)) + fresh * twice) / chance
    variance = square - mean * mean
    if not (0.0 < mean < 1.0 and 0.0 < variance < mean * (1.0 - mean)):
        return true, false
    both = min(mean * (1.0 - mean) / variance - 1.0, _MOST)
    return both * (1.0 - mean), both * mean


def learned(
    of_source: float, before: tuple[float, float], n_signals: float, known: float, fresh: float
) -> tuple[float, float]:
    """Return how many announcements of a page were true and how many false, after one more visit.

    `of_source` is the weight of an announcement of the source, in nats; `before` has the two numbers before the visit.

    Examples
    --------
    A source is right half of the time. It announced a page four times, and the page is unchanged:

    >>> from math import log
    >>> true, false = learned(log(2.0), (0.0, 0.0), 4.0, known=0.0, fresh=0.5)
    >>> true, false
    (0.0, 4.0)
    >>> right, wrong = beta(log(2.0), (true, false))
    >>> right / (right + wrong)
    0.25
    """
    right, wrong = beta(of_source, (0.0, 0.0))
    true, false = judged(right + before[0], wrong + before[1], n_signals, known, fresh)
    true, false = max(true - right, 0.0), max(false - wrong, 0.0)
    share = REMEMBERED / max(true + false, REMEMBERED)
    return true * share, false * share


def beta(of_source: float, own: tuple[float, float]) -> tuple[float, float]:
    """Return the Beta distribution of a page's precision, from its source's weight and its own announcements."""
    mean = min(max(-expm1(-of_source), EXTREME), 1.0 - EXTREME)
    return OF_THE_SOURCE * mean + own[0], OF_THE_SOURCE * (1.0 - mean) + own[1]
