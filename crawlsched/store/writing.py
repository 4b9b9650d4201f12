"""Writing: the thread in which the write-behinds of a process write, those that have something all at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from crawlsched.store.batch import Batch
from crawlsched.store.saving import Saved
from crawlsched.store.store import Store

__all__ = ["Save", "Writing", "each_by_itself"]

#: Saves batches, and says of each what became of it; None: it is to be tried again soon.
Save = Callable[[Sequence[tuple[Store, Batch]]], list[Saved | Exception | None]]


def each_by_itself(some: Sequence[tuple[Store, Batch]]) -> list[Saved | Exception | None]:
    """Save each batch in a transaction of its own."""
    return [_saved(store, batch) for store, batch in some]


def _saved(store: Store, batch: Batch) -> Saved | Exception:
    try:
        return store.save(batch)
    except Exception as error:
        return error


class Waiting(Protocol):
    """The batches of one store, as `WriteBehind` keeps them; what changes them holds `Writing.changed`."""

    @property
    def store(self) -> Store:
        """Where they belong."""
        ...

    is_being_written: bool
    """Whether a batch is in hand."""

    def next_attempt(self) -> float | None:
        """Return when something may be written, seconds of the monotonic clock; None: there is nothing."""
        ...

    def take(self) -> Batch:
        """Return what is to be written now."""
        ...

    def written(self, found: Saved | Exception | None) -> None:
        """Hear what became of it, see `Save`."""
        ...


class Writing:
    """A thread for write-behinds, which begins with the first of them and ends after the last.

    Parameters
    ----------
    save : callable
        See `Save`.

    Attributes
    ----------
    changed : threading.Condition
        Guards what waits to be written, of all of them.
    """

    def __init__(self, save: Save = each_by_itself) -> None:
        self.changed = threading.Condition()
        self._save = save
        self._members: list[Waiting] = []
        self._thread: threading.Thread | None = None
        self._n_held = 0

    def begin(self, behind: Waiting) -> None:
        """Write for this one, too, until `end`."""
        with self.changed:
            self._members.append(behind)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="crawlsched-store", daemon=True)
                self._thread.start()

    def end(self, behind: Waiting, timeout: float) -> None:
        """Write for this one no longer; a writing that is under way is waited for."""
        with self.changed:
            self._members.remove(behind)
            self.changed.notify_all()
            self.changed.wait_for(lambda: not behind.is_being_written, timeout)

    def announce(self) -> None:
        """Say that something waits; who says so holds `changed`. Inside `together` the thread is not woken for it."""
        if not self._n_held:
            self.changed.notify_all()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What several hand over inside is written at once, when the last of them has handed over."""
        with self.changed:
            self._n_held += 1
        try:
            yield
        finally:
            with self.changed:
                self._n_held -= 1
                self.changed.notify_all()

    def _run(self) -> None:
        while (some := self._wait()) is not None:
            taken = list[tuple[Waiting, Batch]]()
            for behind in some:
                try:
                    taken.append((behind, behind.take()))
                except Exception as error:  # what one of them hands over keeps no other waiting
                    behind.written(error)
            found = self._save([(behind.store, batch) for behind, batch in taken]) if taken else []
            for (behind, _), what in zip(taken, found, strict=True):
                behind.written(what)

    def _wait(self) -> list[Waiting] | None:
        """Wait for batches, and return whose they are; None at the end."""
        with self.changed:
            while self._members:
                now = time.monotonic()
                times = [(behind, at) for behind in self._members if (at := behind.next_attempt()) is not None]
                some = [behind for behind, at in times if at <= now]
                if some and not self._n_held:
                    for behind in some:
                        behind.is_being_written = True
                    return some
                later = min((at - now for _, at in times if at > now), default=None)
                self.changed.wait(later)
            self._thread = None
            return None
