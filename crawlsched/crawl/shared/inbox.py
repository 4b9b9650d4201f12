"""The inbox: take in the rows that other processes left for the shards of this process."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from math import inf

from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.shared.membership import HANDED_OVER_AT_ONCE
from crawlsched.crawl.side_thread import STEP, Aside
from crawlsched.exceptions import DamagedRow, StoreError
from crawlsched.showing import in_words
from crawlsched.store import Outgoing
from crawlsched.store.members import SharedCollection

__all__ = ["SIGNAL", "Inbox"]

logger = logging.getLogger(__name__)

#: The kind of the rows which announce that pages of the shard may have changed.
SIGNAL = "signal"
_INTERVAL = 0.5
_READING = "reading what was handed over"
# If more rows than this wait for all shards together, all processes stop crawling until rows were taken in.
_MOST_WAITING = 100_000

Name = tuple[str, int]


# What is known of a shard when a reading begins: its rows under way, and its rows that were deleted earlier. The
# dictionary stays the same object until the shard leaves, so it shows whether the shard left during the reading. A
# deleted row is read again only if it was written again.
_Stay = tuple[dict[Name, int], list[Name]]


class Inbox:
    """Takes in rows that other processes and the command line have written for the shards of this process.

    A row is deleted in the transaction that writes its result. Until then each reading finds the row
    again, so the inbox remembers the row and takes it in once. If the shard leaves before that, its next owner takes
    the row in.
    """

    def __init__(self, shared: SharedCollection, refresher: Refresher) -> None:
        self._shared = shared
        self._refresher = refresher
        self._shards = refresher.collection.shards
        self._unsaved = refresher.collection.unsaved
        self._guard, self._count, self._clock = refresher.guard, refresher.count, refresher.clock
        # A thread of its own, so that rows do not wait while shards are loaded or closed.
        self._aside = Aside(refresher.guard_beside)
        self.is_full = False
        self._read_at = -inf
        # By shard: the rows that were read and are not known to be deleted. A row's number is that of the batch that
        # deletes the row, or 0 while the row waits to be taken in.
        self._under_way: dict[int, dict[Name, int]] = {}
        self._deleted: dict[int, dict[Name, None]] = {}

    def begun(self, shard: int, rows: Sequence[Outgoing]) -> None:
        """Take in the rows that have waited for a shard that is now loaded.

        A shard is not given back before these rows are taken in. Otherwise, rows might never be
        taken in if shards moved fast.
        """
        self._under_way[shard], self._deleted[shard] = {}, {}
        self._arrived(shard, rows)
        self._read_at = -inf  # the command line may have sent a command, too

    def ended(self, shard: int) -> None:
        """Forget the rows of a shard that has left this process."""
        self._under_way.pop(shard, None)
        self._deleted.pop(shard, None)

    def is_taking_in(self, shard: int) -> bool:
        """Whether rows of a shard have been read and wait for their turn."""
        return 0 in self._under_way.get(shard, {}).values()

    def look(self, now: float) -> None:
        """Take in new rows. A timer calls this several times a second."""
        self._aside.collect()
        if now - self._read_at >= _INTERVAL and self._shards.here and not self._aside.is_busy_with(_READING):
            self._read_at = now
            stays = {shard: (rows, self._written(shard)) for shard, rows in self._under_way.items()}
            # A shard with more rows under way is read after these are written, so that a slow owner is not swamped.
            few = HANDED_OVER_AT_ONCE // 2
            wanted = [shard for shard, (rows, written) in stays.items() if len(rows) - len(written) < few]
            read = partial(self._read, wanted, list(self._shards.here))
            self._aside.run(_READING, read, partial(self._took, stays))

    def close(self, timeout: float) -> None:
        """Read no more."""
        self._aside.close(timeout)

    def _written(self, shard: int) -> list[Name]:
        n_written = self._refresher.collection.write_behind.n_written
        return [name for name, batch in self._under_way[shard].items() if 0 < batch <= n_written]

    def _read(self, wanted: list[int], here: list[int]) -> tuple[list[Outgoing], list[int], bool]:
        shared = self._shared
        return shared.received(wanted, HANDED_OVER_AT_ONCE), shared.commanded(here), shared.waits(_MOST_WAITING)

    def _took(self, stays: dict[int, _Stay], found: tuple[list[Outgoing], list[int], bool]) -> None:
        rows, commanded, is_full = found
        if is_full and not self.is_full:
            logger.warning(
                "More than %s links and signals wait for their shards; crawling pauses until fewer are waiting.",
                f"{_MOST_WAITING:,}",
            )
        self.is_full = is_full
        for here in [self._shards.here[shard] for shard in commanded if shard in self._shards.here]:
            self._guard.run("obeying commands", partial(self._refresher.on_commands, here))
        stayed = {shard: stay for shard, stay in stays.items() if self._under_way.get(shard) is stay[0]}
        self._refresher.has_read_commands = True
        for shard in stayed.keys() - set(commanded):
            self._shards.here[shard].commands_under_way.clear()
        for shard, (under_way, written) in stayed.items():
            deleted = self._deleted[shard]
            for name in written:
                del under_way[name]
                deleted[name] = None
            # A sender that got no answer writes its batch again, also rows that were taken in meanwhile.
            for name in list(deleted)[:-HANDED_OVER_AT_ONCE]:
                del deleted[name]
        by_shard: dict[int, list[Outgoing]] = {}
        for row in rows:
            if row.shard in stayed:
                by_shard.setdefault(row.shard, []).append(row)
        for shard, some in by_shard.items():
            self._arrived(shard, some)

    def _arrived(self, shard: int, rows: Sequence[Outgoing]) -> None:
        under_way, deleted = self._under_way[shard], self._deleted[shard]
        new = [row for row in rows if row.name not in under_way]
        under_way.update(dict.fromkeys([row.name for row in new], 0))
        for name in [row.name for row in new if row.name in deleted]:
            self._unsaved.of_shard(shard, self._clock()).received.append(name)
            under_way[name] = self._unsaved.number
        new = [row for row in new if row.name not in deleted]
        if new:
            self._refresher.long_work.add(self._take_in(shard, under_way, new))

    def _take_in(self, shard: int, under_way: dict[Name, int], rows: list[Outgoing]) -> Iterator[None]:
        for start in range(0, len(rows), STEP):
            if self._under_way.get(shard) is not under_way:  # its next owner takes in the others
                return
            now, some = self._clock(), rows[start : start + STEP]
            done = [row.name for row in some if self._is_done(row, now)]
            for name in done:
                self._unsaved.of_shard(shard, now).received.append(name)  # deleted in one transaction with its result
            under_way.update(dict.fromkeys(done, self._unsaved.number))
            for name in {row.name for row in some}.difference(done):
                del under_way[name]
            yield

    def _is_done(self, row: Outgoing, now: float) -> bool:
        """Take a row in, or leave a damaged row out; False if the database fails, so that the row is read again."""
        try:
            self._take(row, now)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, DamagedRow):
                self._guard.failed("taking in what was handed over", error)
                return False
            self._count("crawlsched/failures")
            logger.error("What was handed over (%s) is damaged and left out: %s", row.kind, in_words(error))
        else:
            self._guard.worked("taking in what was handed over")
        return True

    def _take(self, row: Outgoing, now: float) -> None:
        refresher = self._refresher
        if row.kind == SIGNAL:
            pages, _ = refresher.polls.known_pages(row.data["urls"], self._shards.here.get(row.shard))
            refresher.polls.announce(pages, str(row.data["source"]), now)
        else:
            refresher.admission.take_over(row.kind, row.data, now)
        self._count("crawlsched/handed_over/received")
