"""Parameters: the part of a plan that crawl values need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["DOUBT", "LIKELIHOOD_POWER", "Parameters", "SignalGroups"]


# A group: its source, its site (a host), nats per announcement, announcements per second and page, and how many visits
# after announcements were used.
_SignalGroup = tuple[int, int, float, float, int]


class SignalGroups:
    """The groups that have evidence of their own. Objects are immutable, so an older object stays valid.

    Examples
    --------
    >>> groups = SignalGroups([(0, 7, 0.7, 1e-5, 80)])
    >>> groups.rows(np.array([0, 0]), np.array([7, 8]))
    array([ 0, -1])
    """

    def __init__(self, groups: Iterable[_SignalGroup] = ()) -> None:
        self._groups = tuple(sorted(groups))
        self._n_hosts = max((host for _, host, *_ in self._groups), default=-1) + 1
        self._keys = self._key(*np.array([group[:2] for group in self._groups], np.int64).reshape(-1, 2).T)
        self.signal_weights: FloatArray = np.array([weight for _, _, weight, _, _ in self._groups])
        self.signal_rates: FloatArray = np.array([rate for _, _, _, rate, _ in self._groups])

    def __len__(self) -> int:
        return len(self._groups)

    def _key(self, sources: npt.NDArray[Any], hosts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        keys: npt.NDArray[np.int64] = sources.astype(np.int64) * self._n_hosts + hosts
        return keys

    def rows(self, sources: npt.NDArray[Any], hosts: npt.NDArray[Any]) -> IndexArray:
        """Return rows of `signal_weights` and `signal_rates` for pages; -1: no group. O(log m) a page for m groups."""
        found = np.full(sources.size, -1)
        if self._groups:
            inside = np.flatnonzero(hosts < self._n_hosts)
            keys = self._key(sources[inside], hosts[inside])
            at = np.minimum(self._keys.searchsorted(keys), self._keys.size - 1)
            found[inside] = np.where(self._keys[at] == keys, at, -1)
        return found

    def for_sources(self, numbers: Mapping[int, int]) -> Self:
        """Return the groups of the sources in `numbers`, and replace the sources by their new numbers."""
        return type(self)((numbers[group[0]], *group[1:]) for group in self._groups if group[0] in numbers)

    def of_hosts(self, are_meant: Callable[[int], bool]) -> Self:
        """Return the groups of the hosts that `are_meant` accepts."""
        return type(self)(group for group in self._groups if are_meant(group[1]))

    def to_list(self, host_names: Sequence[str] | None = None) -> list[list[Any]]:
        """Return plain numbers and lists for JSON; hosts are given by name if there are names."""
        return [
            [source, host if host_names is None else host_names[host], *rest] for source, host, *rest in self._groups
        ]

    @classmethod
    def from_list(cls, data: Iterable[Sequence[Any]], host_number: Callable[[str], int] | None = None) -> Self:
        """Return the groups that `to_list` wrote; without `host_number`, groups whose hosts are names are left out."""
        groups = []
        for source, host, *rest in data:
            number = host if isinstance(host, int) else None if host_number is None else host_number(host)
            if number is not None:
                groups.append((source, number, *rest))
        return cls(groups)


#: Fast rates count less in crawl values: their weight is divided by this power of rate / even rate.
DOUBT = 0.5
#: Power to which the likelihood of a page's own visits is raised. Real pages change in bursts. So a change found by a
#: visit is weaker evidence of the rate than it would be if changes came at random. Bayes' rule would learn too much
#: from it.
LIKELIHOOD_POWER = 0.7


@dataclass(frozen=True, eq=False)
class Parameters:
    """Prior change rates by group of hosts, and the quality of signals by source.

    Attributes
    ----------
    priors : ndarray, shape (G, K)
        Probability of each rate of the grid before the first visit. Row 0 is for hosts without a group of their own.
    signal_weights : ndarray, shape (S + 1,)
        Nats by which one ChangeSignal of each source lowers the log-probability of freshness. The last entry is for
        sources that are not known yet.
    """

    priors: FloatArray
    group_of_host: IndexArray  # row of `priors` for each host; later hosts have row 0; shape (H,)
    signal_weights: FloatArray
    # Signals per second and page of each source; each page's own rate is shrunk towards this rate; shape (S + 1,)
    signal_rates: FloatArray
    rates: FloatArray  # the grid, changes per second; shape (K,)
    even_rate: float = np.inf  # crawls per second and page if all pages got the same; inf: not known
    # Sites on which the announcements of a source have a different quality than on other sites.
    signal_groups: SignalGroups = field(default_factory=SignalGroups)
    # Power of pages' own likelihoods: `LIKELIHOOD_POWER` in plans, and 1 before the first plan.
    learning_rate: float = 1.0

    @cached_property
    def value_priors(self) -> FloatArray:
        """Return the `priors` that crawl values use, shape (G, K).

        A rate r above the even rate R/n counts as less likely, by the factor (r n/R)^(-1/2). If a slow page is mistaken
        for a fast page, it is not visited, so the mistake lasts. The opposite mistake ends at the next visits
        (docs/notes/learning.md).
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
        """Return signal weights (nats) and rates (per second) of sources on hosts, of the site's group if it has one.

        An announcement is true with probability 1 - exp(-κ). Of γ announcements a second, γ exp(-κ) are false.
        """
        at = np.minimum(sources, self.signal_weights.size - 1)
        weights, rates = self.signal_weights[at], self.signal_rates[at]
        groups = self.signal_groups
        if len(groups):
            rows = groups.rows(sources, hosts)
            own = rows >= 0
            weights[own], rates[own] = groups.signal_weights[rows[own]], groups.signal_rates[rows[own]]
        return weights, rates
