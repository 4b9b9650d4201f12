"""The facts of pages that are in memory, and the thread that reads the facts of the pages whose turn comes soon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scrapy.utils.datatypes import LocalCache

from crawlsched.crawl.guard import Guard
from crawlsched.crawl.side_thread import Aside
from crawlsched.planner import Planner
from crawlsched.store import PageFacts

__all__ = ["FactsCache", "FactsReader"]


# Facts of pages are read ahead at this interval (seconds), for the pages that are likely to be picked within two
# intervals.
_READ_AHEAD = 0.7
# Reading ahead always adds this number of pages.
_FURTHER = 96
# No request is sent while this number of pages wait for their facts.
_MOST_WAITING = 32
# A page that was not read ahead is read together with this number of pages that are likely to be picked soon: one often
# follows another, and a row takes a tenth of a statement's time.
_READ_TOGETHER = 8
_READING = "reading what the next visits need"


class FactsCache:
    """Facts of the last `limit` pages that were read or written, and of every page whose facts are not written yet."""

    def __init__(self, limit: int = 20_000) -> None:
        self._stored: LocalCache[int, PageFacts] = LocalCache(limit)
        # Facts that are newer than the store's, and the number of the batch that will write them.
        self._unsaved: dict[int, tuple[PageFacts, int]] = {}

    def __contains__(self, page: int) -> bool:
        return page in self._unsaved or page in self._stored

    def __len__(self) -> int:
        return len(self._unsaved) + len(self._stored)

    def get(self, page: int) -> PageFacts | None:
        """Return a page's facts if they are here."""
        newer = self._unsaved.get(page)
        return self._stored.get(page) if newer is None else newer[0]

    def put(self, facts: PageFacts, batch: int) -> None:
        """Keep facts that are newer than the store's, until this batch is written."""
        self._stored.pop(facts.page, None)
        self._unsaved[facts.page] = facts, batch

    def add(self, facts: Iterable[PageFacts | None]) -> None:
        """Keep facts that were read from the store, unless the page has facts here, which are the same or newer."""
        self._stored.update((fact.page, fact) for fact in facts if fact is not None and fact.page not in self)

    def discard(self, page: int) -> None:
        """Forget a page's facts."""
        self._stored.pop(page, None)
        self._unsaved.pop(page, None)

    def written(self, batch: int) -> None:
        """Note that all batches up to this one are in the store."""
        for page in [page for page, (_, number) in self._unsaved.items() if number <= batch]:
            self._stored[page] = self._unsaved.pop(page)[0]


class FactsReader:
    """Reads facts in a thread of its own: those of picked pages that have to wait for them, and others ahead.

    So no visit waits for the long work of another thread, and the crawling thread does not wait for the disk.
    `reading` returns a function that reads the facts of some pages, in any thread.
    """

    def __init__(
        self,
        facts: FactsCache,
        planner: Planner,
        guard: Guard,
        reading: Callable[[Sequence[int]], Callable[[], list[PageFacts | None]]],
    ) -> None:
        self._facts, self._planner, self._reading = facts, planner, reading
        self._thread = Aside(guard)
        #: Visits that were dispatched since pages were read ahead.
        self.n_dispatched = 0
        self._read_ahead_at = -np.inf
        # Picked pages that wait for their facts, with the reasons of their picks; and those whose facts were read.
        self._waiting: dict[int, str] = {}
        self._ready: dict[int, str] = {}
        # Pages whose facts are being read, except those that were dropped since: another page may have the row then.
        self._being_read: set[int] = set()

    @property
    def has_picked(self) -> bool:
        """Whether a picked page waits for its facts or, once these were read, for a slot."""
        return bool(self._waiting or self._ready)

    @property
    def is_waiting(self) -> bool:
        """Whether a picked page waits for its facts."""
        return bool(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether so many pages wait for their facts that no further page should be picked."""
        return len(self._waiting) >= _MOST_WAITING

    def wait_for(self, page: int, reason: str) -> None:
        """Read the facts of a picked page, which stays in flight; `take` will return the page and the reason."""
        self._waiting[page] = reason
        self._read_ahead_at = -np.inf  # other pages came than those that were read ahead
        self._read_waiting()

    def take(self) -> tuple[int, str] | None:
        """Return a picked page whose facts were read, and the reason of its pick; None: there is no such page."""
        self.collect()
        page = next(iter(self._ready), None)
        return None if page is None else (page, self._ready.pop(page))

    def read_ahead(self, now: float) -> None:
        """Read the facts of the pages that are likely to be picked soon, unless this was done a moment ago."""
        self.collect()
        self._read_waiting()
        if self._thread.is_busy_with(_READING) or now - self._read_ahead_at < _READ_AHEAD:
            return
        if len(self._facts) >= self._planner.pages.n:
            return  # all facts are here
        self._read_ahead_at = now
        # A crawl that sends fewer requests than it may needs fewer pages. After a rest it may send all at once.
        sent = self.n_dispatched or np.inf
        wanted = _FURTHER + 2 * int(min(_READ_AHEAD * self._planner.bandwidth, sent))
        self.n_dispatched = 0
        self._read(self._likely(now, wanted))

    def collect(self) -> None:
        """Take over what was read; only the crawling thread uses the facts."""
        self._thread.collect()

    def drop(self, pages: Iterable[int]) -> None:
        """Forget pages that leave the memory."""
        for page in pages:
            self._waiting.pop(page, None)
            self._ready.pop(page, None)
            self._being_read.discard(page)

    def close(self) -> None:
        """Read nothing more."""
        self._thread.close(0.0)

    def _read_waiting(self) -> None:
        if self._waiting and not self._thread.is_busy_with(_READING):
            self._read([*self._waiting, *self._likely(self._planner.now, _READ_TOGETHER)])

    def _likely(self, now: float, n: int) -> list[int]:
        return [page for page in self._planner.peek(now, n).tolist() if page not in self._facts]

    def _read(self, pages: list[int]) -> None:
        if pages:
            self._being_read = set(pages)
            self._thread.run(_READING, self._reading(pages), self._keep)

    def _keep(self, facts: Sequence[PageFacts | None]) -> None:
        self._facts.add(fact for fact in facts if fact is not None and fact.page in self._being_read)
        for page in [page for page in self._waiting if page in self._being_read]:
            self._ready[page] = self._waiting.pop(page)
        self._read_waiting()
