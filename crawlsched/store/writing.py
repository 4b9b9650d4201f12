"""Writing: the one thread in which a process writes; what several shards have waiting is one transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from typing import NamedTuple, Protocol

from crawlsched.store.batch import Batch
from crawlsched.store.database import is_row_error
from crawlsched.store.lease import still_own
from crawlsched.store.saving import Prepared, Saved, write
from crawlsched.store.store import Store

__all__ = ["Writing"]

#: What became of some batches; None: they are to be tried again soon.
Found = Sequence[Saved] | Exception | None


class Waiting(Protocol):
    """The batches of one store, as `WriteBehind` keeps them; what changes them holds `Writing.changed`."""

    @property
    def store(self) -> Store:
        """Where they belong."""
        ...

    is_being_written: bool
    """Whether batches are in hand."""

    def next_attempt(self) -> float | None:
        """Return when something may be written, seconds of the monotonic clock; None: there is nothing."""
        ...

    def take(self) -> list[Batch]:
        """Return what is to be written now."""
        ...

    def written(self, found: Found) -> None:
        """Hear what became of it."""
        ...


class _Taken(NamedTuple):
    """What one store has to write."""

    behind: Waiting
    batches: list[Batch]
    rows: list[Prepared]
    saved: list[Saved]


class Writing:
    """A thread for write-behinds of one database, which begins with the first of them and ends after the last.

    A shard of many has a few rows at a time, and a transaction of its own costs the process and the server more than
    they. A shard whose lease is lost is left out, and so is one where another thread is writing; if the database
    refuses a row, each store is saved by itself.

    Attributes
    ----------
    changed : threading.Condition
        Guards what waits to be written, of all of them.
    asking : threading.Lock
        Facts are asked for inside: shards do so at the same moments, and should not need a connection each.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.asking = threading.Lock()
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
            with ExitStack() as turns:
                taken = [one for behind in some if (one := _taken(behind, turns)) is not None]
                left = _written_together(taken)
            for one in left:
                one.behind.written(_each_by_itself(one))

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


def _taken(behind: Waiting, turns: ExitStack) -> _Taken | None:
    """Take what a store has to write; None, and it hears why, if that cannot be now."""
    if not behind.store.turn.acquire(blocking=False):
        behind.written(None)
        return None
    turns.callback(behind.store.turn.release)
    try:
        batches = behind.take()
        saved = [Saved() for _ in batches]
        rows = [behind.store.prepared(batch, told) for batch, told in zip(batches, saved, strict=True)]
    except Exception as error:  # what one of them hands over keeps no other waiting
        behind.written(error)
        return None
    return _Taken(behind, batches, rows, saved)


def _written_together(taken: list[_Taken]) -> list[_Taken]:
    """Write in one transaction what is still this process's; return what has to be tried by itself."""
    if not taken:
        return []
    database = taken[0].behind.store.database
    try:
        with database.explained("written"), database.writing() as connection:
            is_own = still_own(connection, [one.behind.store.lease for one in taken])
            owned = [one for one, own in zip(taken, is_own, strict=True) if own]
            for rows in zip_longest(*[one.rows for one in owned], fillvalue={}):
                write(connection, rows)
    except Exception as error:
        if is_row_error(error):
            return taken
        for one in taken:
            one.behind.written(error)
        return []
    for one in owned:
        one.behind.written(one.saved)
    return [one for one, own in zip(taken, is_own, strict=True) if not own]


def _each_by_itself(one: _Taken) -> Found:
    try:
        return [one.behind.store.save(batch) for batch in one.batches]
    except Exception as error:
        return error
