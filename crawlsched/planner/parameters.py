"""Parameters: what a plan says of the pages as a whole, as crawl values need it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from crawlsched.crawl_value import undiscovered_value
from crawlsched.planner.co_changes import CoChanges

__all__ = ["Parameters"]

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Parameters:
    """Prior change rates by group of hosts, and what signals are worth by source.

    Attributes
    ----------
    priors : ndarray, shape (G, K)
        Probability of each rate of the grid before the first visit; row 0 for hosts without a group of their own.
    group_of_host : ndarray of int, shape (H,)
        Row of `priors` for each host; hosts beyond it have row 0.
    signal_weights : ndarray, shape (S + 1,)
        Nats that one ChangeSignal of each source takes off the log-probability of freshness; the last is for sources
        not yet known.
    signal_rates : ndarray, shape (S + 1,)
        Signals per second and page of each source, which pages' own counts are drawn towards.
    rates : ndarray, shape (K,)
        The grid, changes per second.
    discovery_horizon : float
        Seconds.
    co_changes : CoChanges
        When pages of a host changed together; none by default.
    """

    priors: FloatArray
    group_of_host: IndexArray
    signal_weights: FloatArray
    signal_rates: FloatArray
    rates: FloatArray
    discovery_horizon: float
    co_changes: CoChanges = field(default_factory=CoChanges)

    def __post_init__(self) -> None:
        # Of a page never crawled nothing but its group is known: one value for all of a group.
        object.__setattr__(self, "new_values", undiscovered_value(self.priors, self.rates, self.discovery_horizon))

    new_values: FloatArray = None  # type: ignore[assignment]

    def group(self, host: int) -> int:
        """Return the row of `priors` for a host."""
        return self.group_of_host.item(host) if host < self.group_of_host.size else 0

    def groups(self, hosts: npt.NDArray[np.int32]) -> IndexArray:
        """Return the rows of `priors` for hosts."""
        if not self.group_of_host.size:
            return np.zeros(hosts.size, np.intp)
        known = hosts < self.group_of_host.size
        return np.where(known, self.group_of_host[np.where(known, hosts, 0)], 0)

    def of_source(self, column: FloatArray, sources: npt.NDArray[np.int32]) -> FloatArray:
        """Return the entries of `signal_weights` or `signal_rates` for sources (0 or more)."""
        return column[np.minimum(sources, column.size - 1)]
