"""A shard: the part of a shared collection that a process owns, in place of a whole collection."""

from __future__ import annotations

from dataclasses import dataclass

from crawlsched.collection.hosts import Hosts
from crawlsched.sharing import shard_of
from crawlsched.store.lease import ShardLease
from crawlsched.store.members import SharedCollection

__all__ = ["Shard"]


@dataclass(frozen=True)
class Shard:
    """What a collection is opened with where it is one shard of several.

    Attributes
    ----------
    shared : SharedCollection
        The whole.
    number : int
    lease : ShardLease
        The right to write it.
    hosts : Hosts
        The hosts of all shards of this process.
    """

    shared: SharedCollection
    number: int
    lease: ShardLease
    hosts: Hosts

    def owns(self, host: str) -> bool:
        """Say whether a host is of this shard."""
        return shard_of(host, self.shared.n_shards) == self.number
