"""Write-behind: batches are written in their order beside the crawling thread, which never waits for a disk."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from math import inf

from crawlsched.exceptions import CollectionInUse, DatabaseReplaced, StoreError
from crawlsched.store.batch import Batch, PageFacts, facts_with
from crawlsched.store.saving import Saved
from crawlsched.store.store import Store
from crawlsched.store.writing import Found, Writing

__all__ = ["WriteBehind"]

logger = logging.getLogger("crawlsched.store")


# Seconds from a first failure to the next attempt, and where a batch was left out for a moment.
_FIRST_PAUSE, _SOON = 0.1, 0.02
# At the end a writing that is under way is waited for, seconds.
_LONGEST_ATTEMPT = 5.0


class WriteBehind:
    """Writes batches in another thread and never drops one.

    A batch that cannot be written (locked, disk full, connection lost) is tried again, after 0.1 s, then ever more
    rarely up to `retry_interval`; those that come meanwhile wait behind it, and are then written in one transaction.

    Parameters
    ----------
    store : Store
    retry_interval : float
        Longest pause between two attempts, in seconds.
    on_event : callable, optional
        Called in the writing thread with "failed", "recovered" or "lost" and a sentence.
    writing : Writing, optional
        The thread. None: one of its own.

    Attributes
    ----------
    failure : str or None
        Why the last attempt failed; None while all is well.
    lost : str or None
        Why nothing can be written any more: another process took the collection over. The crawl has to stop.
    refused : Counter of str
        Rows which the database refused, by table, since the start.
    n_saved, n_rows, n_cleaned : int
        Batches and rows written, and texts cleaned, since the start.
    last_duration : float
        Seconds that the last batch took.
    is_being_written : bool
        Whether the thread has a batch of this one in hand; it says so.
    """

    def __init__(
        self,
        store: Store,
        *,
        retry_interval: float = 5.0,
        on_event: Callable[[str, str], None] | None = None,
        writing: Writing | None = None,
    ) -> None:
        self.failure: str | None = None
        self.lost: str | None = None
        self.refused: Counter[str] = Counter()
        self.n_saved = self.n_rows = self.n_cleaned = 0
        self.last_duration = 0.0
        self.is_being_written = False
        self.store: Store = store
        self._retry_interval = retry_interval
        self._on_event = on_event or (lambda event, sentence: None)
        self._writing = Writing() if writing is None else writing
        self._changed = self._writing.changed
        self._waiting: list[Batch] = []
        self._closing = False
        self._attempt_at, self._pause = -inf, _FIRST_PAUSE
        self._attempt_began = 0.0
        self._failed_at: float | None = None
        #: For each reading of facts that is under way: the batches that are put over what it finds.
        self._put_over: list[list[Batch]] = []
        self._oldest_unsaved_at: float | None = None
        self._writing.begin(self)

    def submit(self, batch: Batch) -> None:
        """Hand over a batch, without waiting; it must not be touched afterwards.

        Raises
        ------
        StoreError
            After `close`.
        """
        with self._changed:
            if self._closing:
                raise StoreError("The write-behind is closed; nothing can be written any more.")
            self._waiting.append(batch)
            for batches in self._put_over:
                batches.append(batch)
            self._look_at_times()
            self._writing.announce()

    @property
    def in_flight(self) -> bool:
        """Whether a batch is being written or waits; then the crawling thread goes on collecting."""
        return bool(self._waiting)

    @property
    def oldest_unsaved_at(self) -> float | None:
        """Time of the oldest change (`Batch.since`) not written yet, without waiting; None if there is none."""
        return self._oldest_unsaved_at

    def facts(self, pages: Sequence[int]) -> list[PageFacts | None]:
        """Read pages' facts, with what was submitted but not written yet put over them."""
        numbers = [int(page) for page in pages]
        with self._changed:
            batches = list(self._waiting)
            # What is submitted meanwhile may be written before it is read, or after. It counts in any case.
            self._put_over.append(batches)
        try:
            with self._writing.asking:
                facts = self.store.reader.facts(numbers)
        finally:
            with self._changed:
                self._put_over = [others for others in self._put_over if others is not batches]
        return facts_with(facts, numbers, batches)

    def drain(self, timeout: float) -> bool:
        """Wait until everything submitted is written; False if `timeout` seconds were not enough, or it is `lost`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self.lost is not None, timeout)
            return not self._waiting

    def close(self, timeout: float = 60.0) -> bool:
        """Write what is left, and nothing more; False, and one line in the log, if something could not be written."""
        drained = self.drain(timeout)
        with self._changed:
            self._closing = True
            left = sum(len(batch) for batch in self._waiting)
        self._writing.end(self, _LONGEST_ATTEMPT)
        if not drained:
            logger.error(
                "%d rows could not be written within %g s of the end and are lost: %s",
                left,
                timeout,
                self.lost or self.failure or "the database did not answer",
            )
        return drained

    def _look_at_times(self) -> None:
        """Note the time of the oldest change, with each batch that comes or is written: each slot asks for it."""
        times = [batch.since for batch in self._waiting if batch.since is not None]
        self._oldest_unsaved_at = min(times, default=None)

    # -- what `Writing` calls, in its thread

    def next_attempt(self) -> float | None:
        """Return when something may be written, seconds of the monotonic clock; None: there is nothing."""
        if self.is_being_written or self.lost is not None or not self._waiting:
            return None
        return self._attempt_at

    def take(self) -> list[Batch]:
        """Return what is to be written now: all that waits."""
        self._attempt_began = time.monotonic()
        with self._changed:
            return list(self._waiting)

    def written(self, found: Found) -> None:
        """Hear what became of it; None: it is to be tried again soon."""
        if found is None:
            self._attempt_at = time.monotonic() + _SOON
        elif isinstance(found, CollectionInUse | DatabaseReplaced):
            self._tell("lost", str(found))
        elif isinstance(found, Exception):
            self._failed_at = self._failed_at or self._attempt_began
            self._failed(found)
            self._attempt_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, self._retry_interval)
        else:
            self._saved(found)
        with self._changed:
            self.is_being_written = False
            self._changed.notify_all()

    def _saved(self, found: Sequence[Saved]) -> None:
        now = time.monotonic()
        self.last_duration = now - self._attempt_began
        if self._failed_at is not None:
            self._recovered(now - self._failed_at)
        self._failed_at, self._pause, self._attempt_at = None, _FIRST_PAUSE, -inf
        with self._changed:
            del self._waiting[: len(found)]
            self._look_at_times()
        for saved in found:
            self.refused.update(saved.refused)
            self.n_saved, self.n_rows = self.n_saved + 1, self.n_rows + saved.rows
            self.n_cleaned += saved.cleaned

    def _failed(self, error: Exception) -> None:
        """Remember why; only the first failure of an episode makes a line in the log."""
        first, self.failure = self.failure is None, str(error) or type(error).__name__
        if first:
            expected = isinstance(error, StoreError)
            logger.error(
                "Nothing can be written: %s The crawl goes on, and what it learns is kept in memory and written later.",
                self.failure,
                exc_info=None if expected else error,
            )
            self._on_event("failed", self.failure)

    def _recovered(self, seconds: float) -> None:
        self.failure = None
        sentence = f"The database can be written again after {seconds:.1f} s; nothing is lost."
        logger.warning(sentence)
        self._on_event("recovered", sentence)

    def _tell(self, event: str, sentence: str) -> None:
        with self._changed:
            self.lost = sentence
            self._changed.notify_all()
        logger.error(sentence)
        self._on_event(event, sentence)
