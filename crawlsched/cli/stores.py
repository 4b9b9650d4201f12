"""Stores: a collection as a command looks at it, be it one or shards that several processes share."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from crawlsched.cli.finding import find_page, not_found
from crawlsched.cli.target import ANSWER_WITHIN, Target, answer_to, n_shards_of, open_shard, owner_now
from crawlsched.exceptions import StoreError, UnknownPage
from crawlsched.sharing import shard_of

if TYPE_CHECKING:
    from crawlsched.store import Store
    from crawlsched.store.members import SharedCollection

__all__ = ["Stores", "not_one_shard", "open_all", "open_stores"]


class Stores:
    """One store, or one for each shard; made by `open_stores`.

    Attributes
    ----------
    all : list of Store
    name : str
        The collection's.
    shared : SharedCollection or None
        None: one process at a time owns it, or a single shard of it was named.
    """

    def __init__(self, found: "Sequence[Store]", shared: "SharedCollection | None") -> None:
        self.all = list(found)
        self.name = found[0].name
        self.database = found[0].database
        self.shared = shared

    def __iter__(self) -> "Iterator[Store]":
        return iter(self.all)

    @property
    def key(self) -> tuple[int | None, int]:
        """Shard (None: all of them) and number of the collection."""
        shard, number = self.all[0].key
        return (shard if self.shared is None else None), number

    def of_host(self, host: str) -> "Store":
        """Return the store that has the pages of a host."""
        return self.all[0] if self.shared is None else self.all[shard_of(host, len(self.all))]

    def find_page(self, url: str) -> "tuple[Store, int]":
        """Return the page with this URL, or with another spelling of it, and the store that has it.

        Raises
        ------
        UnknownPage
            If there is none; the sentence offers those that there are.
        """
        from crawlsched.store import host_of

        first = self.of_host(host_of(url))
        # A spider may give its requests a download slot, by which they are a host of their own, elsewhere.
        for store in [first, *(store for store in self.all if store is not first)]:
            try:
                return store, find_page(store, url, offer=False)
            except UnknownPage:
                continue
        raise not_found(first, url)

    def ask(
        self, wanted: "Sequence[tuple[Store, dict[str, Any]]]", command: str, *, timeout: float = ANSWER_WITHIN
    ) -> list[dict[str, Any] | None]:
        """Send a command to the owners of stores, all at the same time, and wait for the answers.

        Parameters
        ----------
        wanted : sequence of (Store, dict)
            Whom, with which arguments.
        command : str
        timeout : float
            Seconds.

        Returns
        -------
        list of dict or None
            What each has answered; None: nobody owns it now, and the word waits for who does next.

        Raises
        ------
        CrawlschedError
            If one answers that it cannot, or does not answer.
        """
        until = time.monotonic() + timeout
        running = [owner_now(store) is not None for store, _ in wanted]
        sent = [store.commands.send(command, arguments, time.time()) for store, arguments in wanted]
        return [
            answer_to(store, number, timeout=max(until - time.monotonic(), 1.0), said=timeout) if is_running else None
            for (store, _), number, is_running in zip(wanted, sent, running, strict=True)
        ]

    def close(self) -> None:
        """Close every connection."""
        self.database.close()


def not_one_shard(store: "Store", command: str) -> "Store":
    """Refuse a command that is about all shards, where one was named.

    Raises
    ------
    StoreError
        If this is one of several shards.
    """
    if n_shards_of(store) is not None:
        raise StoreError(f"`crawlsched {command}` is about all shards of {store.name!r} together; leave out --shard.")
    return store


def open_stores(target: Target, *, read_only: bool = True) -> Stores:
    """Open a collection, which has to be there, with all its shards; or the one that ``--shard`` names."""
    return _with_shards(open_shard(target, target.shard or 0, read_only=read_only), target)


def open_all(targets: Sequence[Target]) -> list[Stores]:
    """Open several collections of one database, to look at them, over the same connections."""
    from crawlsched.store import Store
    from crawlsched.store.changes import keys_of

    first = open_stores(targets[0])
    found = [first]
    for target in targets[1:]:
        with first.database.reading() as connection:
            keys = {shard: (shard, number) for shard, number in keys_of(connection, target.collection)}
        if (target.shard or 0) in keys:
            found.append(_with_shards(Store(first.database, target.collection, keys[target.shard or 0]), target))
    return found


def _with_shards(first: "Store", target: Target) -> Stores:
    """Add the other shards, where there are any and none was named."""
    try:
        n_shards = n_shards_of(first)
        if n_shards is None or target.shard is not None:
            return Stores([first], None)
        from crawlsched.store import Store
        from crawlsched.store.members import SharedCollection

        shared = SharedCollection(first.database, first.name, first.key[1], n_shards)
        others = (Store(first.database, first.name, (shard, first.key[1])) for shard in range(1, n_shards))
        return Stores([first, *others], shared)
    except BaseException:
        first.close()
        raise
