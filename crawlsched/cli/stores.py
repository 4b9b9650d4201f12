"""Stores: the stores of the collection that a command is about."""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from crawlsched.cli.target import Target, find_page, find_target, not_found
from crawlsched.exceptions import CrawlschedError, StoreError
from crawlsched.settings import Settings
from crawlsched.sharing import shard_of

if TYPE_CHECKING:
    from crawlsched.store import Lease, Store
    from crawlsched.store.lease import LeaseRow
    from crawlsched.store.members import SharedCollection

__all__ = ["FOR_MANY_PAGES", "Stores", "leased", "n_shards_of", "open_all", "open_stores", "owner_now", "signs_of_life"]

#: Seconds to wait for a command about many pages, since deleting or marking a million pages takes long.
FOR_MANY_PAGES = 600.0


class Stores:
    """The store of a collection, or a store for each of its shards; made by `open_stores`, and closed by ``with``."""

    def __init__(self, target: Target, found: "Sequence[Store]", shared: "SharedCollection | None") -> None:
        self.target = target
        self.all = list(found)
        self.name = found[0].name
        self.database = found[0].database
        self.shared = shared

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.close()

    def __iter__(self) -> "Iterator[Store]":
        return iter(self.all)

    @property
    def key(self) -> tuple[int | None, int]:
        """The shard (None: all shards) and the collection's number."""
        shard, number = self.all[0].key
        return (shard if self.shared is None else None), number

    def settings_of(self, store: "Store") -> Settings:
        """Return the project's settings or, outside of a project, the settings that the last crawl has stored."""
        from crawlsched.jobs.stored_planners import settings_of

        settings = self.target.settings
        return settings if self.target.is_project else settings_of(store, settings)

    def one(self) -> "Store":
        """Return the only store; raise an error if there are several shards."""
        if self.shared is not None:
            n_shards = len(self.all)
            raise StoreError(
                f"The collection {self.name!r} has {n_shards} shards, and this command is about one of them; name it "
                f"with --shard, from 0 to {n_shards - 1}."
            )
        return self.all[0]

    def whole(self, command: str) -> "Store":
        """Return the first store, for a command about all shards; raise an error if --shard names one."""
        if self.shared is None and n_shards_of(self.all[0]) is not None:
            raise StoreError(
                f"`crawlsched {command}` is about all shards of {self.name!r} together; leave out --shard."
            )
        return self.all[0]

    def of_host(self, host: str) -> "Store":
        """Return the store that has the pages of a host."""
        return self.all[0] if self.shared is None else self.all[shard_of(host, len(self.all))]

    def find_page(self, url: str) -> "tuple[Store, int]":
        """Return the page with this URL, or with another spelling of the URL, and its store."""
        from crawlsched.store import host_of

        first = self.of_host(host_of(url))
        # All shards are searched, since a request's download slot may assign its page to another host.
        for store in [first, *(store for store in self.all if store is not first)]:
            if (page := find_page(store, url)) is not None:
                return store, page
        raise not_found(first, url)

    def ask(
        self, wanted: "Sequence[tuple[Store, dict[str, Any]]]", command: str, *, timeout: float = 15.0
    ) -> list[dict[str, Any] | None]:
        """Send a command to the owners of stores, and return their answers; None if the command waits for an owner.

        A running crawl looks for commands every half second, but may be busy.
        """
        from crawlsched.store import commands

        until = time.monotonic() + timeout
        running = [owner_now(store) is not None for store, _ in wanted]
        sent = [commands.send(store, command, arguments, time.time()) for store, arguments in wanted]
        answers: list[dict[str, Any] | None] = []
        for (store, _), number, is_running in zip(wanted, sent, running, strict=True):
            answer = commands.wait_for(store, number, max(until - time.monotonic(), 1.0)) if is_running else None
            if is_running and answer is None:
                # The command is withdrawn, so that a later crawl does not obey it.
                commands.finish(store, number, {"error": "No crawl did it in time."}, time.time())
                raise CrawlschedError(
                    f"The crawl of the collection {self.name!r} did not answer within {timeout:g} s, so nothing was "
                    "done; look at its log."
                )
            if answer is not None and isinstance(answer.result, dict) and "error" in answer.result:
                raise CrawlschedError(str(answer.result["error"]))
            answers.append(None if answer is None else answer.result)
        return answers


@contextmanager
def leased(store: "Store", command: str) -> "Iterator[Lease]":
    """Take the lease of the collection, so that no crawl starts meanwhile."""
    lease = store.take_lease(command)
    try:
        yield lease
    finally:
        lease.release()


def signs_of_life(lease: "Lease", every: float = 5.0) -> Callable[[], None]:
    """Return a function that writes at most one heartbeat in `every` seconds, so that no crawl starts."""
    beat_at = time.monotonic()

    def beat() -> None:
        nonlocal beat_at
        if time.monotonic() > beat_at + every:
            beat_at = time.monotonic()
            lease.heartbeat(None, dict(lease.notes))

    return beat


def n_shards_of(store: "Store") -> int | None:
    """Return the number of shards of this store's collection; None if it is not shared."""
    from crawlsched.store.lease import shards_of

    with store.database.reading() as connection:
        return shards_of(connection, store.key[1])


def owner_now(store: "Store") -> "LeaseRow | None":
    """Return the running process that owns the collection; None if there is none."""
    owner = store.owner()
    return owner if owner is not None and owner.is_held(store.clock()) else None


def open_stores(arguments: argparse.Namespace, *, read_only: bool = True) -> Stores:
    """Open an existing collection with all its shards, or only with the shard that ``--shard`` names."""
    return open_all([find_target(arguments)], read_only=read_only)[0]


def open_all(targets: Sequence[Target], *, read_only: bool = True) -> list[Stores]:
    """Open collections of one database over the same connections; the first must exist."""
    from crawlsched.store import Store
    from crawlsched.store.changes import keys_of

    first = Store.open(targets[0].database, targets[0].collection, upgrade=False, read_only=read_only)
    try:
        found = [_with_shards(first, targets[0])]
        for target in targets[1:]:
            with first.database.reading() as connection:
                keys = keys_of(connection, target.collection)
            if keys:
                found.append(_with_shards(Store(first.database, target.collection, keys[0]), target))
        return found
    except BaseException:
        first.close()
        raise


def _with_shards(first: "Store", target: Target) -> Stores:
    """Add the other shards of the collection, unless ``--shard`` names one."""
    from crawlsched.store.members import SharedCollection

    n_shards = n_shards_of(first)
    if target.shard not in (None, *range(n_shards or 1)):
        has = "no shards; leave out --shard" if n_shards is None else f"{n_shards}; --shard is from 0 to {n_shards - 1}"
        raise StoreError(f"There is no shard {target.shard}: the collection {first.name!r} has {has}.")
    if n_shards is None:
        return Stores(target, [first], None)
    shared = SharedCollection(first.database, first.name, first.key[1], n_shards)
    if target.shard is not None:
        return Stores(target, [shared.store(target.shard)], None)
    return Stores(target, [first, *map(shared.store, range(1, n_shards))], shared)
