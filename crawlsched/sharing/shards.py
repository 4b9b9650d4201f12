"""Shards: the parts of a collection that processes own; a host belongs to one of them."""

from hashlib import blake2b

__all__ = ["LARGEST_NUMBER", "is_number_of_shards", "shard_of"]

LARGEST_NUMBER = 4096


def is_number_of_shards(n: int) -> bool:
    """Say whether a collection may have this number of shards: a power of two from 2 to 4096."""
    return 2 <= n <= LARGEST_NUMBER and n & (n - 1) == 0


def shard_of(host: str, n_shards: int) -> int:
    """Return the shard of a host, the same on every machine and in every version; `n_shards` is a power of two.

    Twice as many shards leave a host where it is, or move it from shard ``s`` to ``s + n_shards``.

    >>> shard_of("example.com", 8), shard_of("example.com", 16)
    (6, 6)
    """
    digest = blake2b(host.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") & (n_shards - 1)
