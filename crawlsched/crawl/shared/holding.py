"""Holding: load the shards that this process has claimed, and give shards back."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.shard import Shard
from crawlsched.crawl.shard_pages import MOVED_AT_ONCE, StoredShard
from crawlsched.crawl.shared.inbox import Inbox
from crawlsched.crawl.shared.membership import HANDED_OVER_AT_ONCE, Membership
from crawlsched.crawl.side_thread import Aside, give_memory_back
from crawlsched.sharing import LEASE
from crawlsched.showing import in_words
from crawlsched.store import Outgoing
from crawlsched.store.members import SharedCollection
from crawlsched.store.rows import ROWS_AT_ONCE

__all__ = ["Holding"]

logger = logging.getLogger(__name__)

# Before its spider starts, a process loads the shards that it can claim, for at most this number of seconds.
_LONGEST_BEGINNING = 10.0
# The pages of a shard, read by another thread, and the rows of its inbox.
_Loaded = tuple[StoredShard, list[Outgoing]]


class Holding:
    """Follows the membership: loads shards that were claimed, and takes out shards that are given away or lost."""

    def __init__(
        self, refresher: Refresher, shared: SharedCollection, membership: Membership, inbox: Inbox, aside: Aside
    ) -> None:
        self._refresher, self._collection = refresher, refresher.collection
        self._here = refresher.collection.shards.here
        self._shared = shared
        self._membership = membership
        self._inbox = inbox
        self._aside = aside
        self._epochs: dict[int, int] = {}
        # Shards that are being loaded, or whose pages are being taken out of memory.
        self._moving: set[int] = set()
        # For each shard that is given away, the time at which its visits must have ended.
        self._draining: dict[int, float] = {}
        # For each shard that leaves, the number of written batches after which all its changes are written.
        self._leaving: dict[int, int] = {}

    def begin(self) -> None:
        """Load the shards without an owner before the spider starts, so that its first requests are for known pages."""
        until = self._refresher.clock() + _LONGEST_BEGINNING
        membership = self._membership
        membership.renewed.wait(_LONGEST_BEGINNING)
        while self._refresher.clock() < until:
            claimed = {shard: e for shard, e in membership.mine().items() if shard not in self._here}
            for shard, epoch in sorted(claimed.items()):
                if self._refresher.clock() >= until:
                    break  # the other shards are loaded during the crawl, or by other processes
                for _ in self._taking_in(shard, epoch, self._read(shard, epoch, ROWS_AT_ONCE)):
                    pass
            membership.renewed.clear()
            membership.renewed.wait(LEASE)
            is_known = membership.seen is not None and membership.failure is None
            if is_known and self._here.keys() >= membership.mine().keys() and not membership.is_claiming:
                return

    def look(self, now: float) -> None:
        """Follow the database's last answer. A timer calls this several times a second."""
        owned = self._membership.mine()
        for shard in [shard for shard in self._here if owned.get(shard) != self._epochs[shard]]:
            self._lose(shard)
        for shard, epoch in owned.items():
            if self._membership.is_leaving and shard not in self._here:
                self._membership.stops(shard, epoch)  # nothing of it is loaded, so there is nothing to write
                self._membership.is_done_with(shard)
            elif shard not in self._here and shard not in self._moving:
                self._load(shard, epoch)
        for shard in list(self._here) if self._membership.is_leaving else self._membership.to_release:
            if shard in self._here and shard not in self._draining:
                self._draining[shard] = now + LEASE  # its visits must have ended then
                # A visit begun now would still be open when another process asks the same host.
                self._refresher.hosts.is_leaving = self._is_leaving
                self._publish(shard, ready=False)
        for shard, until in list(self._draining.items()):
            if shard not in self._here:
                del self._draining[shard]
            elif now >= until or not (self._refresher.is_busy_with(shard) or self._inbox.is_taking_in(shard)):
                self._give_back(shard, now)
        for shard in [
            shard for shard, batch in self._leaving.items() if batch <= self._collection.write_behind.n_written
        ]:
            del self._leaving[shard]
            self._membership.is_done_with(shard)

    # -- a shard is loaded

    def _read(self, shard: int, epoch: int, at_once: int = MOVED_AT_ONCE) -> _Loaded:
        """Read a shard, block by block, and its inbox. Any thread may call this."""
        store = self._shared.store(shard)
        store.lease = self._shared.lease(shard, self._membership.token, epoch)
        stored = self._refresher.shard_pages.read(Shard(store), at_once=at_once)
        return stored, self._shared.received([shard], HANDED_OVER_AT_ONCE)

    def _load(self, shard: int, epoch: int) -> None:
        self._moving.add(shard)

        def load() -> _Loaded | Exception:
            try:
                return self._read(shard, epoch)
            except Exception as error:
                return error

        def loaded(found: _Loaded | Exception) -> None:
            if isinstance(found, Exception):
                self._moving.discard(shard)
                logger.error(
                    "The shard %d cannot be loaded here, so another process has to load it: %s", shard, in_words(found)
                )
                self._membership.stops(shard, epoch, failed=True)
                self._membership.is_done_with(shard)
            elif self._membership.mine().get(shard) != epoch or self._membership.is_leaving:
                self._moving.discard(shard)
            else:
                self._refresher.long_work.add(self._taking_in(shard, epoch, found))

        self._aside.run(f"loading the shard {shard}", load, loaded)

    def _taking_in(self, shard: int, epoch: int, loaded: _Loaded) -> Iterator[None]:
        """Take a shard into memory, step by step. Then it gets its part of the rate."""
        now = self._refresher.clock()
        stored, waiting = loaded
        yield from self._refresher.shard_pages.take_in(stored, now)
        self._moving.discard(shard)
        self._epochs[shard] = epoch
        self._refresher.came(stored.shard)
        self._inbox.begun(shard, waiting)
        self._publish(shard)
        self._refresher.count("crawlsched/shards/claimed")

    def _publish(self, shard: int, *, ready: bool = True) -> None:
        """Write whether a shard is loaded, and how many pages it has; each heartbeat writes this, too."""
        token = self._shared.lease(shard, self._membership.token, self._epochs[shard]).token
        self._membership.publish(shard, token, self._here[shard].n_pages, ready=ready)

    # -- a shard is given away or lost

    def _is_leaving(self, host: int) -> bool:
        """Whether a host belongs to a shard that is given away. The host may have just been found."""
        shard = self._collection.shards.of_host(host)
        return shard is not None and shard.number in self._draining

    def _stop_for(self, shard: int) -> None:
        """Send nothing more for a shard, and end its open visits."""
        self._membership.stops(shard, self._epochs.pop(shard))
        self._draining.pop(shard, None)
        self._refresher.ends(shard)
        if not self._draining:
            self._refresher.hosts.is_leaving = None
        self._inbox.ended(shard)

    def _give_back(self, shard: int, now: float) -> None:
        """Write a shard's changes and give it back, because another process should have it."""
        self._stop_for(shard)
        self._refresher.count("crawlsched/shards/released")
        self._collection.flush(now)
        self._leaving[shard] = self._collection.unsaved.number - 1
        self._take_out(shard)

    def _lose(self, shard: int) -> None:
        """Drop a shard and its unwritten changes, since another process has claimed the shard."""
        self._stop_for(shard)
        self._refresher.count("crawlsched/shards/lost")
        logger.warning("The shard %d was taken over by another process, since this process was silent too long.", shard)
        self._take_out(shard)

    def _take_out(self, shard: int) -> None:
        self._moving.add(shard)
        steps = self._refresher.shard_pages.leave(shard)
        next(steps, None)  # the first step takes it out of the list of shards

        def to_the_end() -> Iterator[None]:
            yield from steps
            self._moving.discard(shard)
            self._aside.run("giving memory back", give_memory_back)

        self._refresher.long_work.add(to_the_end())
