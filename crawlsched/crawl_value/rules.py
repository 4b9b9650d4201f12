"""The crawl values of the papers' rules: GREEDY, GREEDY-CIS, GREEDY-CIS+, GREEDY-NCIS and G-NCIS-APPROX-j.

The page with the highest crawl value should be crawled next (Algorithm 1 of Busa-Fekete et al., 2025). Each value is a
derivative: the importance-weighted freshness gained per additional crawl.
"""

from __future__ import annotations

import re
from math import inf
from sys import float_info
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import arguments
from crawlsched.crawl_value.noisy import unchecked_noisy_value
from crawlsched.crawl_value.terms import residual_one

__all__ = ["RULES", "Rule", "rule_named"]


def greedy(elapsed: ArrayLike, change_rate: ArrayLike, importance: ArrayLike = 1.0) -> Any:
    """Crawl value without announcements (GREEDY).

    Parameters
    ----------
    elapsed : array_like
        Seconds since the last crawl, 0 or more; infinity is allowed.
    change_rate : array_like
        Changes per second. A page that never changes (0) is worth 0.
    importance : array_like, optional
        Weight of a fresh copy.

    Returns
    -------
    array_like of float64
        Crawl value, in importance times seconds: it rises from 0 to importance / change_rate.

    Notes
    -----
    V = mu / Delta R^1(Delta tau) with R^1(x) = 1 - (1 + x) exp(-x), section 5.1 of [1]_. For small x a series is used,
    so that the relative error is about 1e-16 everywhere.

    References
    ----------
    .. [1] Busa-Fekete et al. (2025), "A scalable crawling algorithm utilizing noisy change-indicating signals".

    Examples
    --------
    >>> day = 86400.0
    >>> (greedy(elapsed=[0.0, day, 10 * day], change_rate=1 / day) / day).round(4)
    array([0.    , 0.2642, 0.9995])
    """
    with np.errstate(under="ignore", over="ignore"):
        return unchecked_greedy(
            arguments.elapsed_seconds(elapsed),
            arguments.rate("change_rate", change_rate),
            arguments.weight("importance", importance),
        )


def unchecked_greedy(elapsed: Any, change_rate: Any, importance: Any = 1.0) -> Any:
    """`greedy` without checks of its arguments, for callers that evaluate page by page."""
    never = np.asarray(change_rate) <= 0.0
    if never.any():
        change_rate = np.where(never, 1.0, change_rate)
        elapsed = np.where(never, 0.0, elapsed)
    value = residual_one(np.multiply(change_rate, elapsed))
    return value * (importance / change_rate)


def greedy_cis(
    elapsed: ArrayLike,
    n_signals: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    importance: ArrayLike = 1.0,
) -> Any:
    """Crawl value if every announcement counts as true (GREEDY-CIS).

    Parameters
    ----------
    n_signals : array_like
        Announcements since the last crawl. A single announcement makes the page worth importance / change_rate.

    Notes
    -----
    Section 5.1 of [1]_ with gamma = recall change_rate: false announcements are ignored, not modelled. If recall is 1
    and nothing was announced, the page cannot have changed and is worth 0.

    References
    ----------
    .. [1] Busa-Fekete et al. (2025), "A scalable crawling algorithm utilizing noisy change-indicating signals".

    Examples
    --------
    >>> greedy_cis(elapsed=1.0, n_signals=[0, 1, 2], change_rate=0.5, recall=0.8).round(4)
    array([0.0412, 2.    , 2.    ])
    """
    return RULES["greedy_cis"].value(elapsed, n_signals, change_rate, recall, 0.0, importance)


def greedy_ncis(
    elapsed: ArrayLike,
    n_signals: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    importance: ArrayLike = 1.0,
    max_terms: int | None = None,
) -> Any:
    """Crawl value with noisy announcements (GREEDY-NCIS, and with `max_terms` G-NCIS-APPROX-j).

    `n_signals` counts the announcements since the last crawl. `recall` is the probability that a change is announced.
    `false_signal_rate` is the number of announcements per second without a change. All other arguments are as in
    `greedy`.

    Parameters
    ----------
    max_terms : int, optional
        Number of terms of the sum to use, as in G-NCIS-APPROX-j; None: all of them.

    Returns
    -------
    array_like of float64
        Crawl value, in importance times seconds. It rises to importance / change_rate. With `max_terms` it rises only
        to that limit times 1 - (nu / (Delta + nu))**max_terms.

    Notes
    -----
    Theorem 1 of [1]_, with the sums up to floor(iota / beta); `noisy_value` describes the computation. Appendix A.1
    gives G-NCIS-APPROX-j. If recall is 1, a page without announcements cannot have changed and is worth 0. If recall is
    0, the value is that of `greedy`. If the false signal rate is 0, it is that of `greedy_cis`.

    References
    ----------
    .. [1] Busa-Fekete et al. (2025), "A scalable crawling algorithm utilizing noisy change-indicating signals".

    Examples
    --------
    >>> greedy_ncis(elapsed=1.0, n_signals=[0, 1, 2], change_rate=0.5, recall=0.8, false_signal_rate=0.2).round(4)
    array([0.0387, 0.9283, 1.5019])
    >>> greedy_ncis(1.0, [0, 1, 2], 0.5, 0.8, 0.2, max_terms=1).round(4)
    array([0.0387, 0.9259, 1.261 ])
    """
    rule = Rule(max_terms=arguments.number_of_terms(max_terms))
    return rule.value(elapsed, n_signals, change_rate, recall, false_signal_rate, importance)


def greedy_cis_plus(
    elapsed: ArrayLike,
    n_signals: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    importance: ArrayLike = 1.0,
    min_precision: float = 0.7,
    min_recall: float = 0.6,
) -> Any:
    """Crawl value of GREEDY-CIS for pages with good announcements, and of GREEDY for all others (GREEDY-CIS+).

    Parameters
    ----------
    min_precision, min_recall : float, optional
        Announcements are good if precision and recall are both above these thresholds.

    Notes
    -----
    Section 6.7 of [1]_, whose thresholds are the defaults. Precision is recall Delta / (recall Delta + nu).

    References
    ----------
    .. [1] Busa-Fekete et al. (2025), "A scalable crawling algorithm utilizing noisy change-indicating signals".

    Examples
    --------
    >>> greedy_cis_plus(1.0, 1, change_rate=0.5, recall=[0.5, 0.9], false_signal_rate=0.1).round(4)
    array([0.1804, 2.    ])
    """
    least = arguments.probability("min_precision", min_precision), arguments.probability("min_recall", min_recall)
    rule = Rule(*least, trusts=True)
    return rule.value(elapsed, n_signals, change_rate, recall, false_signal_rate, importance)


def natural_parameters(change_rate: Any, recall: Any, false_signal_rate: Any) -> tuple[Any, Any, Any]:
    """Return alpha, gamma and kappa; kappa is infinite if all announcements are true, and 0 if all are false."""
    alpha = np.multiply(1.0 - recall, change_rate)
    true_rate = np.multiply(recall, change_rate)
    gamma = true_rate + false_signal_rate
    clean = np.asarray(false_signal_rate) <= 0.0
    odds = true_rate / np.where(clean, 1.0, false_signal_rate)
    kappa = np.where(clean, np.where(true_rate > 0.0, np.inf, 0.0), np.log1p(odds))
    return alpha, gamma, kappa


def evidence_of(n_signals: Any, kappa: Any) -> Any:
    """Return kappa n; without announcements it is 0, even if kappa is infinite."""
    return np.where(np.asarray(n_signals) > 0.0, kappa, 0.0) * np.maximum(n_signals, 1.0)


class Rule(NamedTuple):
    """One of the papers' rules: GREEDY-NCIS, which may ignore some announcements and may trust all others.

    Attributes
    ----------
    above_precision, above_recall : float
        The rule ignores announcements of pages whose precision or recall is not above these thresholds.
    """

    above_precision: float = -1.0
    above_recall: float = -1.0
    trusts: bool = False  # whether every announcement that it does not ignore counts as true
    max_terms: float = inf  # number of terms in the sum for the crawl value, as in G-NCIS-APPROX-j

    def heard(self, rates: FloatArray) -> FloatArray:
        """Return the rates that the rule uses for pages, shape (6, n), from the pages' rates, shape (3, n).

        The first three rows are change rate, recall and false signal rate. The others are unsignalled change rate α,
        signal rate γ and signal weight κ.
        """
        change_rate, recall, false_signal_rate = rates
        seen = rates.copy()
        with np.errstate(under="ignore", over="ignore"):
            announced = recall * change_rate
            precision = announced / np.maximum(announced + false_signal_rate, float_info.min)
            ignored = ~((precision > self.above_precision) & (recall > self.above_recall))
            seen[1:, ignored] = 0.0
            if self.trusts:
                seen[2] = 0.0
            alpha, gamma, kappa = natural_parameters(*seen)
        if self.trusts:
            # Announcements are certainly false if the change rate is 0. If only recall is 0, the rule trusts them.
            kappa = np.where(ignored | (seen[0] == 0.0), 0.0, np.inf)
        return np.vstack([seen, alpha, gamma, kappa])

    def value(
        self,
        elapsed: ArrayLike,
        n_signals: ArrayLike,
        change_rate: ArrayLike,
        recall: ArrayLike,
        false_signal_rate: ArrayLike,
        importance: ArrayLike,
    ) -> Any:
        """Return the crawl values by this rule; all arguments are checked and broadcast against each other."""
        tau, n = arguments.elapsed_seconds(elapsed), arguments.count("n_signals", n_signals)
        rates = np.broadcast_arrays(
            arguments.rate("change_rate", change_rate),
            arguments.probability("recall", recall),
            arguments.rate("false_signal_rate", false_signal_rate),
        )
        heard = self.heard(np.stack([np.ravel(rate) for rate in rates]))
        alpha, gamma, kappa = (row.reshape(rates[0].shape) for row in heard[3:])
        with np.errstate(under="ignore", over="ignore"):
            value = unchecked_noisy_value(tau, evidence_of(n, kappa), alpha, gamma, kappa, self.max_terms)
            return arguments.weight("importance", importance) * value


#: The rules by name.
RULES: dict[str, Rule] = {
    "greedy": Rule(above_recall=1.0),
    "greedy_cis": Rule(trusts=True),
    "greedy_cis_plus": Rule(above_precision=0.7, above_recall=0.6, trusts=True),
    "greedy_ncis": Rule(),
    "greedy_ncis_approx_1": Rule(max_terms=1.0),
    "greedy_ncis_approx_2": Rule(max_terms=2.0),
}


def rule_named(name: str) -> Rule | None:
    """Return a rule by its name; None: there is no such rule. G-NCIS-APPROX-j may have any j from 1.

    Examples
    --------
    >>> rule_named("greedy_ncis_approx_5").max_terms, rule_named("greedy_ncis_approx_0")
    (5.0, None)
    """
    found = re.fullmatch(r"greedy_ncis_approx_([1-9][0-9]{0,5})", name)
    return RULES.get(name) if found is None else Rule(max_terms=float(found[1]))
