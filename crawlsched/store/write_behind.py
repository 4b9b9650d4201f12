"""Write-behind: one thread that writes batches in their order, so that the crawling thread never waits for a disk."""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence

from crawlsched.exceptions import CollectionInUse, DatabaseReplaced, StoreError
from crawlsched.store.batch import Batch, PageFacts, facts_with
from crawlsched.store.store import Store

__all__ = ["WriteBehind"]

logger = logging.getLogger("crawlsched.store")


class WriteBehind:
    """Writes batches in a thread of its own and never drops one.

    A batch that cannot be written (locked, disk full, connection lost) is tried again, after 0.1 s, then ever more
    rarely up to `retry_interval`; those that come meanwhile wait behind it, and are then written as one.

    Parameters
    ----------
    store : Store
    retry_interval : float
        Longest pause between two attempts, in seconds.
    on_event : callable, optional
        Called in the writing thread with "failed", "recovered" or "lost" and a sentence.

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
    """

    def __init__(
        self, store: Store, *, retry_interval: float = 5.0, on_event: Callable[[str, str], None] | None = None
    ) -> None:
        self.failure: str | None = None
        self.lost: str | None = None
        self.refused: Counter[str] = Counter()
        self.n_saved = self.n_rows = self.n_cleaned = 0
        self.last_duration = 0.0
        self._store = store
        self._retry_interval = retry_interval
        self._on_event = on_event or (lambda event, sentence: None)
        self._changed = threading.Condition()
        self._current: Batch | None = None
        self._waiting: deque[Batch] = deque()
        self._closing = False
        self._given_up = False
        self._n_submitted = 0
        self._oldest_unsaved_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="crawlsched-store", daemon=True)
        self._thread.start()

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
            self._n_submitted += 1
            self._waiting.append(batch)
            self._look_at_times()
            self._changed.notify_all()

    @property
    def in_flight(self) -> bool:
        """Whether a batch is being written or waits; the crawling thread may as well go on collecting then."""
        return self._current is not None or bool(self._waiting)

    @property
    def oldest_unsaved_at(self) -> float | None:
        """Time of the oldest change (`Batch.since`) not written yet, without waiting; None if there is none."""
        return self._oldest_unsaved_at

    def facts(self, pages: Sequence[int]) -> list[PageFacts | None]:
        """Read pages' facts, with what was submitted but not written yet put over them."""
        numbers = [int(page) for page in pages]
        while True:
            with self._changed:
                batches, n_submitted = self._unsaved(), self._n_submitted
            facts = self._store.facts(numbers)
            # What was written between the two is no harm; what was submitted as well would be.
            if n_submitted == self._n_submitted:
                return facts_with(facts, numbers, batches)

    def drain(self, timeout: float) -> bool:
        """Wait until everything submitted is written; False if `timeout` seconds were not enough, or it is `lost`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unsaved() or self.lost is not None, timeout)
            return not self._unsaved()

    def close(self, timeout: float = 60.0) -> bool:
        """Write what is left and end the thread; False, and one line in the log, if something could not be written."""
        drained = self.drain(timeout)
        with self._changed:
            self._closing = True
            self._given_up = not drained
            left = sum(len(batch) for batch in self._unsaved())
            self._changed.notify_all()
        self._thread.join(5.0)
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
        times = [batch.since for batch in self._unsaved() if batch.since is not None]
        self._oldest_unsaved_at = min(times, default=None)

    def _unsaved(self) -> list[Batch]:
        return [*([] if self._current is None else [self._current]), *self._waiting]

    def _run(self) -> None:
        while self._take():
            self._save_until_done()

    def _take(self) -> bool:
        """Wait for a batch; False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting) or self._closing)
            if not self._waiting or self.lost is not None or self._given_up:
                return False
            waiting = list(self._waiting)
        # Not under the lock, for the crawling thread does not wait for this; and into a batch of its own, for that
        # thread may be looking at these.
        merged, n = waiting[0], 1
        if len(waiting) > 1:
            merged, n = _merged(waiting)
        with self._changed:
            self._current = merged
            for _ in range(n):
                self._waiting.popleft()
        return True

    def _save_until_done(self) -> None:
        pause, failed_at = 0.1, None
        assert self._current is not None
        while not self._given_up:
            started = time.monotonic()
            try:
                saved = self._store.save(self._current)
            except (CollectionInUse, DatabaseReplaced) as error:
                self._tell("lost", str(error))
                return
            except Exception as error:
                failed_at = failed_at or started
                self._failed(error)
                with self._changed:
                    self._changed.wait_for(lambda: self._given_up, pause)
                pause = min(2 * pause, self._retry_interval)
                continue
            self.last_duration = time.monotonic() - started
            if failed_at is not None:
                self._recovered(time.monotonic() - failed_at)
            self.refused.update(saved.refused)
            with self._changed:
                self.n_saved, self.n_rows = self.n_saved + 1, self.n_rows + saved.rows
                self.n_cleaned += saved.cleaned
                self._current = None
                self._look_at_times()
                self._changed.notify_all()
            return

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


def _merged(batches: list[Batch]) -> tuple[Batch, int]:
    """Merge as many batches from the front as go together, and say how many."""
    merged = Batch()
    for n, batch in enumerate(batches):
        try:
            merged.merge(batch)
        except ValueError:  # another grid of rates
            return merged, n
    return merged, len(batches)
