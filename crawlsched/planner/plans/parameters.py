"""Parameters: the part of a plan that crawl values need."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.planner.plans.signal_groups import SignalGroups

__all__ = ["DOUBT", "LIKELIHOOD_POWER", "Parameters"]


#: How much fast rates are doubted in crawl values: their weight is divided by this power of rate / even rate.
DOUBT = 0.5
#: Power to which the likelihood of a page's own visits is taken. Real pages change in bursts: one that was found
#: changed is not as likely to have changed again as a Poisson page would be, and Bayes' rule learns too much of it.
LIKELIHOOD_POWER = 0.7


@dataclass(frozen=True, eq=False)
class Parameters:
    """Prior change rates by group of hosts, and what signals are worth by source.

    Attributes
    ----------
    priors : ndarray, shape (G, K)
        Probability of each rate of the grid before the first visit; row 0 for hosts without a group of their own.
    signal_weights : ndarray, shape (S + 1,)
        Nats that one ChangeSignal of each source takes off the log-probability of freshness; the last is for sources
        not yet known.
    """

    priors: FloatArray
    group_of_host: IndexArray  # row of `priors` for each host; hosts beyond it have row 0; shape (H,)
    signal_weights: FloatArray
    # Signals per second and page of each source, which pages' own counts are drawn towards; shape (S + 1,)
    signal_rates: FloatArray
    rates: FloatArray  # the grid, changes per second; shape (K,)
    even_rate: float = np.inf  # crawls per second and page if all got the same; inf: not known
    # Sites whose announcements are worth something else than those of their source elsewhere.
    signal_groups: SignalGroups = field(default_factory=SignalGroups)
    # Power of pages' own likelihoods: `LIKELIHOOD_POWER` in plans, 1 while a page's few visits are all that is known.
    learning_rate: float = 1.0

    @cached_property
    def value_priors(self) -> FloatArray:
        """Return `priors` for crawl values, shape (G, K).

        A rate r above the even rate R/n counts as less likely by (r n/R)^(-1/2): a slow page taken for a fast one is
        not visited, so that mistake lasts; the opposite one ends at the next visits (docs/notes/learning.md).
        """
        doubtful = self.priors * np.maximum(self.rates / self.even_rate, 1.0) ** -DOUBT
        shares: FloatArray = doubtful / doubtful.sum(axis=1, keepdims=True)
        return shares

    def group(self, host: int) -> int:
        """Return the row of `priors` for a host."""
        return self.group_of_host.item(host) if host < self.group_of_host.size else 0

    def groups(self, hosts: npt.NDArray[np.int32]) -> IndexArray:
        """Return the rows of `priors` for hosts."""
        if not self.group_of_host.size:
            return np.zeros(hosts.size, np.intp)
        known = hosts < self.group_of_host.size
        return np.where(known, self.group_of_host[np.where(known, hosts, 0)], 0)

    def signal_quality(self, hosts: npt.NDArray[Any], sources: npt.NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Return signal weights (nats) and rates (per second) of sources on hosts, by site where a site has evidence.

        An announcement is true with probability 1 - exp(-κ); of γ announcements a second γ exp(-κ) are false.
        """
        at = np.minimum(sources, self.signal_weights.size - 1)
        weights, rates = self.signal_weights[at], self.signal_rates[at]
        groups = self.signal_groups
        if len(groups):
            rows = groups.rows(sources, hosts)
            own = rows >= 0
            weights[own], rates[own] = groups.signal_weights[rows[own]], groups.signal_rates[rows[own]]
        return weights, rates
