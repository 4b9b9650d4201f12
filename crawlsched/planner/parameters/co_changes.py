"""Co-changes: moments at which many pages of a host changed together, and what they say of each page since."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray

__all__ = ["CoChanges", "HostCoChanges"]


@dataclass(frozen=True, eq=False)
class HostCoChanges:
    """The co-changes of one host.

    Attributes
    ----------
    since, until : float
        From when on its visits were watched, and until when, POSIX seconds.
    times : ndarray, shape (m,)
        POSIX seconds, increasing. A co-change whose moment is not known stands at several times.
    evidence : ndarray, shape (m,)
        What each takes off the log-probability that a page crawled before is still fresh, nats.
    """

    since: float
    until: float
    times: FloatArray
    evidence: FloatArray

    @cached_property
    def _sums(self) -> FloatArray:
        return np.append(np.cumsum(self.evidence[::-1])[::-1], 0.0)

    @cached_property
    def _lists(self) -> tuple[list[float], list[float]]:
        return self.times.tolist(), self._sums.tolist()

    def after(self, time: npt.ArrayLike) -> Any:
        """Return the evidence since some times, nats; O(log m) each."""
        return self._sums[self.times.searchsorted(time, side="right")]

    def after_one(self, time: float) -> float:
        """Return the evidence since a time, nats; O(log m)."""
        times, sums = self._lists
        return sums[bisect_right(times, time)]

    def difference(self, other: HostCoChanges) -> float:
        """Return by how much the evidence since any time differs at most, nats."""
        # It only changes at a co-change.
        times = np.concatenate([[-np.inf], self.times, other.times])
        return float(np.abs(self.after(times) - other.after(times)).max())


class CoChanges:
    """The co-changes of all hosts that had some; never changed, so that a page may keep to an older one for a while.

    Parameters
    ----------
    hosts : mapping of int to HostCoChanges

    Examples
    --------
    A day ago a mass edit reached two pages in three of host 0:

    >>> found = CoChanges({0: HostCoChanges(0.0, 172_800.0, np.array([86_400.0]), np.array([1.1]))})
    >>> found.evidence_one(0, 80_000.0), found.evidence_one(0, 90_000.0), found.evidence_one(1, 80_000.0)
    (1.1, 0.0, 0.0)
    """

    def __init__(self, hosts: Mapping[int, HostCoChanges] | None = None) -> None:
        self.hosts = dict(hosts or {})

    def __bool__(self) -> bool:
        return bool(self.hosts)

    def of_host(self, host: int) -> HostCoChanges:
        """Return what a host had; nothing, seen since for ever, if it had none."""
        return self.hosts.get(host) or HostCoChanges(np.inf, -np.inf, np.empty(0), np.empty(0))

    def evidence_one(self, host: int, crawled_at: float) -> float:
        """Return what has been found out since a page's crawl, nats."""
        of_host = self.hosts.get(host)
        return 0.0 if of_host is None else of_host.after_one(crawled_at)

    def evidence(self, hosts: npt.NDArray[np.int32], crawled_at: FloatArray) -> FloatArray:
        """Return `evidence_one` of several pages; O(1) a page beside the few hosts that had co-changes."""
        evidence = np.zeros(hosts.size)
        for host, of_host in self.hosts.items():
            there = np.flatnonzero(hosts == host)
            evidence[there] = of_host.after(crawled_at[there])
        return evidence

    def rates(self, hosts: npt.NDArray[np.int32], at_first: float) -> FloatArray:
        """Return how often a page of each host is reached by a co-change, per second.

        Parameters
        ----------
        hosts : ndarray of int, shape (n,)
        at_first : float
            What a host counts as having before it was watched, in as long a time as one takes at that rate.
        """
        found = np.full(hosts.size, at_first)
        for host, of_host in self.hosts.items():
            watched = of_host.until - of_host.since
            found[hosts == host] = (float(of_host.evidence.sum()) + 1.0) / (watched + 1.0 / at_first)
        return found

    def with_host(self, host: int, of_host: HostCoChanges) -> CoChanges:
        """Return these with those of one host replaced."""
        hosts = {**self.hosts, host: of_host}
        if not of_host.times.size:
            del hosts[host]
        return CoChanges(hosts)

    def to_list(self, host_names: Sequence[str] | None = None) -> list[list[Any]]:
        """Return plain numbers and lists, as JSON can hold them; hosts by name if names are given."""
        return [
            [
                host if host_names is None else host_names[host],
                of_host.since,
                of_host.until,
                of_host.times.tolist(),
                of_host.evidence.tolist(),
            ]
            for host, of_host in self.hosts.items()
        ]

    @classmethod
    def from_list(cls, data: Iterable[Sequence[Any]], host_number: Callable[[str], int] | None = None) -> Self:
        """Return what `to_list` made plain; without a way from names to numbers, named hosts are left out."""
        hosts = {}
        for host, since, until, times, evidence in data:
            number = host if isinstance(host, int) else None if host_number is None else host_number(host)
            if number is not None:
                columns = np.asarray(times, np.float64), np.asarray(evidence, np.float64)
                hosts[number] = HostCoChanges(float(since), float(until), *columns)
        return cls(hosts)
