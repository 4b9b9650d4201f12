"""Signal groups: what announcements are worth on one site, where those of one source differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["SignalGroup", "SignalGroups"]


class SignalGroup(NamedTuple):
    """What announcements of one source are worth for the pages of one site."""

    source: int
    host: int
    signal_weight: float  # nats per announcement
    signal_rate: float  # announcements per second and page
    n_heard: int  # visits after an announcement that this was learned from


class SignalGroups:
    """The groups that have evidence of their own; never changed, so that a page may keep to older ones for a while.

    Examples
    --------
    >>> groups = SignalGroups([SignalGroup(0, 7, 0.7, 1e-5, 80)])
    >>> groups.rows(np.array([0, 0]), np.array([7, 8]))
    array([ 0, -1])
    """

    def __init__(self, groups: Iterable[SignalGroup] = ()) -> None:
        self._groups = tuple(sorted(groups))
        self._n_hosts = max((group.host for group in self._groups), default=-1) + 1
        self._keys = self._key(*np.array([group[:2] for group in self._groups], np.int64).reshape(-1, 2).T)
        self.signal_weights: FloatArray = np.array([group.signal_weight for group in self._groups])
        self.signal_rates: FloatArray = np.array([group.signal_rate for group in self._groups])

    def __len__(self) -> int:
        return len(self._groups)

    def _key(self, sources: npt.NDArray[Any], hosts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        keys: npt.NDArray[np.int64] = sources.astype(np.int64) * self._n_hosts + hosts
        return keys

    def rows(self, sources: npt.NDArray[Any], hosts: npt.NDArray[Any]) -> IndexArray:
        """Return rows of `signal_weights` and `signal_rates` for pages, -1 without a group; O(log m) for m groups."""
        found = np.full(sources.size, -1)
        if self._groups:
            inside = np.flatnonzero(hosts < self._n_hosts)
            keys = self._key(sources[inside], hosts[inside])
            at = np.minimum(self._keys.searchsorted(keys), self._keys.size - 1)
            found[inside] = np.where(self._keys[at] == keys, at, -1)
        return found

    def for_sources(self, numbers: Mapping[int, int]) -> Self:
        """Return the groups of those sources that have new numbers, under these."""
        return type(self)(
            group._replace(source=numbers[group.source]) for group in self._groups if group.source in numbers
        )

    def of_hosts(self, are_meant: Callable[[int], bool]) -> Self:
        """Return the groups of those hosts that are meant."""
        return type(self)(group for group in self._groups if are_meant(group.host))

    def to_list(self, host_names: Sequence[str] | None = None) -> list[list[Any]]:
        """Return plain numbers and lists, as JSON can hold them; hosts by name if names are given."""
        return [
            [source, host if host_names is None else host_names[host], *rest] for source, host, *rest in self._groups
        ]

    @classmethod
    def from_list(cls, data: Iterable[Sequence[Any]], host_number: Callable[[str], int] | None = None) -> Self:
        """Return what `to_list` made plain; without a way from names to numbers, named hosts are left out."""
        groups = []
        for source, host, *rest in data:
            number = host if isinstance(host, int) else None if host_number is None else host_number(host)
            if number is not None:
                groups.append(SignalGroup(source, number, *rest))
        return cls(groups)
