"""The papers' rules by name: what each makes of a page's rates and of its announcements."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray
from crawlsched.crawl_value.rules import natural_parameters

__all__ = ["RULES", "Rule", "rule_named"]


# GREEDY-CIS+ trusts announcements whose precision and recall are above these (section 6.7 of the paper).
_LEAST_PRECISION, _LEAST_RECALL = 0.7, 0.6


class Rule(NamedTuple):
    """One of the papers' rules, as GREEDY-NCIS of what it makes of the announcements.

    Attributes
    ----------
    ignores : callable
        ``ignores(rates)`` says for which pages it ignores announcements; `rates` are change rates, recalls
        and false signal rates, shape (3, n).
    """

    ignores: Callable[[FloatArray], BoolArray]
    trusts: bool = False  # whether it takes every announcement that it listens to for a true one
    max_terms: float = inf  # terms of the crawl value that it sums, as in G-NCIS-APPROX-j

    def heard(self, rates: FloatArray) -> FloatArray:
        """Return the rates of pages as the rule sees them, shape (6, n), from their rates, shape (3, n).

        Change rate, recall and false signal rate; then unsignalled change rate α, signal rate γ and signal weight κ.
        """
        ignored = self.ignores(rates)
        seen = rates.copy()
        seen[1:, ignored] = 0.0
        if self.trusts:
            seen[2] = 0.0
        with np.errstate(under="ignore", over="ignore"):
            alpha, gamma, kappa = natural_parameters(*seen)
        if self.trusts:
            # A change rate of 0 leaves no room for a true announcement; a recall of 0 does: it is one all the same.
            kappa = np.where(ignored | (seen[0] == 0.0), 0.0, np.inf)
        return np.vstack([seen, alpha, gamma, kappa])


def _no_page(rates: FloatArray) -> BoolArray:
    return np.zeros(rates.shape[1], bool)


def _all_pages(rates: FloatArray) -> BoolArray:
    return np.ones(rates.shape[1], bool)


def _pages_with_bad_signals(rates: FloatArray) -> BoolArray:
    change_rate, recall, false = rates
    true = recall * change_rate
    good: BoolArray = (true > _LEAST_PRECISION * (true + false)) & (recall > _LEAST_RECALL)
    return ~good


#: The rules by name.
RULES: dict[str, Rule] = {
    "greedy": Rule(_all_pages),
    "greedy_cis": Rule(_no_page, trusts=True),
    "greedy_cis_plus": Rule(_pages_with_bad_signals, trusts=True),
    "greedy_ncis": Rule(_no_page),
    "greedy_ncis_approx_1": Rule(_no_page, max_terms=1.0),
    "greedy_ncis_approx_2": Rule(_no_page, max_terms=2.0),
}


def rule_named(name: str) -> Rule | None:
    """Return a rule by its name, which for G-NCIS-APPROX-j may end with any j from 1; None if there is none.

    Examples
    --------
    >>> rule_named("greedy_ncis_approx_5").max_terms, rule_named("greedy_ncis_approx_0")
    (5.0, None)
    """
    found = re.fullmatch(r"greedy_ncis_approx_([1-9][0-9]{0,5})", name)
    return RULES.get(name) if found is None else Rule(_no_page, max_terms=float(found[1]))
