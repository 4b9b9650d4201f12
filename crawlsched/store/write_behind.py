"""Write-behind: a thread writes batches in their order, so that the crawling thread never waits for a disk."""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from crawlsched.exceptions import CollectionInUse, DatabaseReplaced, StoreError
from crawlsched.store.batch import Batch
from crawlsched.store.store import Store, save_all

__all__ = ["WriteBehind"]

logger = logging.getLogger("crawlsched.store")

#: The batches that one call of `submit` hands over, one for each store.
Parts = Sequence[tuple[Store, Batch]]

# Seconds from a first failure to the next attempt, and the longest pause between attempts. At the end of the crawl, a
# write that has begun may take as long as the longest pause.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class WriteBehind:
    """Write batches in another thread and never drop one.

    All batches of one `submit` are written in one transaction, so after a crash all or none of them are stored. If a
    batch cannot be written (locked, disk full, connection lost), writing is tried again. The first pause is 0.1 s, and
    further pauses become longer. Later batches wait, and are then written with this batch. Rows for a shard that
    another process has claimed are left out.
    """

    def __init__(self) -> None:
        self.failure: str | None = None
        self.lost: str | None = None
        #: How many calls of `submit` are written.
        self.n_written = 0
        #: The batches whose rows were left out.
        self.left_out = deque[Batch]()
        self._changed = threading.Condition()
        self._waiting: list[Parts] = []
        self._closing = False
        self._failed_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="crawlsched-store", daemon=True)
        self._thread.start()

    def submit(self, *parts: tuple[Store, Batch]) -> None:
        """Hand over batches, without waiting; they must not be changed afterwards."""
        with self._changed:
            if self._closing:
                raise StoreError("The write-behind is closed; nothing can be written any more.")
            self._waiting.append(parts)
            self._changed.notify_all()

    @property
    def oldest_unsaved_at(self) -> float | None:
        """The time of the oldest change that is not written yet (`Batch.since`); None if all are written."""
        waiting = list(self._waiting)  # a copy, since the other thread removes batches
        return min((batch.since for parts in waiting for _, batch in parts if batch.since is not None), default=None)

    def drain(self, timeout: float = 600.0) -> bool:
        """Wait until all batches are written; False after `timeout` seconds, or when `lost` is set."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self.lost is not None, timeout)
            return not self._waiting

    def close(self, timeout: float = 60.0) -> bool:
        """Write the remaining batches, then stop; if a row cannot be written, log a line and return False."""
        drained = self.drain(timeout)
        with self._changed:
            self._closing = True
            left = sum(len(batch) for parts in self._waiting for _, batch in parts)
            self._changed.notify_all()
        self._thread.join(_LONGEST_PAUSE)
        if not drained:
            logger.error(
                "%d rows could not be written within %g s of the end and are lost: %s",
                left,
                timeout,
                self.lost or self.failure or "the database did not answer",
            )
        return drained

    # -- the thread

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or (self._waiting and self.lost is None))
                if self._closing:
                    return
                waiting = list(self._waiting)
            began = time.monotonic()
            try:
                _, left_out = save_all([part for parts in waiting for part in parts])
            except (CollectionInUse, DatabaseReplaced) as error:
                with self._changed:
                    self.lost = str(error)
                    self._changed.notify_all()
                logger.error(self.lost)
            except Exception as error:
                self._failed_at = self._failed_at or began
                self._failed(error)
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                pause = _FIRST_PAUSE
                self.left_out.extend(left_out)
                if self._failed_at is not None:
                    seconds, self.failure, self._failed_at = time.monotonic() - self._failed_at, None, None
                    logger.warning("The database can be written again after %.1f s; nothing is lost.", seconds)
                with self._changed:
                    del self._waiting[: len(waiting)]
                    self.n_written += len(waiting)
                    self._changed.notify_all()

    def _failed(self, error: Exception) -> None:
        """Note the error; only the first of several errors in a row is logged."""
        first, self.failure = self.failure is None, str(error) or type(error).__name__
        if first:
            expected = isinstance(error, StoreError)
            logger.error(
                "Nothing can be written: %s The crawl goes on, keeps its results in memory, and writes them later.",
                self.failure,
                exc_info=None if expected else error,
            )
