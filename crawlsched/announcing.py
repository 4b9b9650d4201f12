"""ChangeSignals arrive: sitemaps are polled, read in a thread, and taken over in slices between the slots."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import numpy as np

from crawlsched.admission import Admission
from crawlsched.collection import Collection, FoundPage
from crawlsched.settings import Settings
from crawlsched.source_reading import SourceRead, UnknownEntry, read_source
from crawlsched.store import host_of

__all__ = ["Announcing"]

logger = logging.getLogger(__name__)

# Entries of a sitemap taken over between two looks at the clock.
_ENTRIES_AT_ONCE = 16
_DEEPEST_INDEX = 16


class Announcing:
    """What sources announce, from their bytes to the planner.

    Parameters
    ----------
    collection : Collection
        The pages and the sources.
    admission : Admission
        Takes unknown URLs in.
    settings : Settings
        Checked settings.
    count : callable
        ``count(name, n=1)`` adds to a statistic.
    request_fingerprint : callable
        Gives the 20-byte request fingerprint of a URL.
    clock : callable
        Gives POSIX seconds.
    """

    def __init__(
        self,
        collection: Collection,
        admission: Admission,
        settings: Settings,
        *,
        count: Callable[..., None],
        request_fingerprint: Callable[[str], bytes],
        clock: Callable[[], float],
    ) -> None:
        self._collection = collection
        self._planner = collection.planner
        self._sources = collection.sources
        self._admission = admission
        self._settings = settings
        self._count = count
        self._request_fingerprint = request_fingerprint
        self._clock = clock

    def read_source(self, number: int, url: str, body: bytes) -> SourceRead:
        """Read a sitemap or robots.txt; runs in a thread, and changes nothing."""
        return read_source(
            self._sources[number],
            url,
            body,
            request_fingerprint=self._request_fingerprint,
            index=self._collection.index,
            store=self._collection.store,
            max_bytes=self._settings.sitemap_max_bytes,
            max_entries=self._settings.sitemap_max_entries,
            ancestors=self._ancestors(number),
        )

    def _ancestors(self, number: int) -> list[str]:
        ancestors: list[str] = []
        parent = self._sources[number].parent
        # A chain in the store that bites its own tail ends at the limit of the reader.
        while parent is not None and len(ancestors) <= _DEEPEST_INDEX:
            ancestors.append(self._sources[parent].url)
            parent = self._sources[parent].parent
        return ancestors

    def nothing_new(self, number: int, now: float, *, ok: bool) -> None:
        """A source gave no new content: it has not changed, or (`ok` false) it failed."""
        self._collection.unsaved.source(self._sources.polled(number, now, ok=ok), now)

    def arrived(
        self, number: int, read: SourceRead, etag: str | None, last_modified: str | None, now: float
    ) -> Iterator[None]:
        """A source was read; return the steps in which what it says is taken over."""
        source = self._sources[number]
        validators = {"etag": etag, "last_modified": last_modified}
        if read.digest == source.fingerprint:
            self._collection.unsaved.source(self._sources.polled(number, now, ok=True, **validators), now)
            return iter(())
        for problem in read.problems:
            logger.warning("%s: %s", source.url, problem)
            self._count(f"crawlsched/sources/problems/{problem.kind}", problem.count)
        polled = self._sources.polled(
            number,
            now,
            ok=read.usable,
            n_entries=len(read.pages) + len(read.unknown),
            problems={problem.kind: problem.count for problem in read.problems},
        )
        self._collection.unsaved.source(polled, now)
        for child in read.children:
            self._admission.add_source("sitemap", child, now, parent=number)
        return self._take_over(number, read, validators)

    def _take_over(self, number: int, read: SourceRead, validators: dict[str, str | None]) -> Iterator[None]:
        """Take a sitemap's entries over, some at a time."""
        for start in range(0, len(read.pages), _ENTRIES_AT_ONCE):
            self._signalled(number, read, slice(start, start + _ENTRIES_AT_ONCE))
            yield
        if not self._settings.sitemap_discovery:
            self._count("crawlsched/change_signals/unknown_url", len(read.unknown))
        else:
            for start in range(0, len(read.unknown), _ENTRIES_AT_ONCE):
                self._discovered(number, read, slice(start, start + _ENTRIES_AT_ONCE))
                yield
        # Only now: after a crash in between the whole sitemap is read again, and no announcement is missed.
        if read.usable:
            known = self._sources.describe(number, fingerprint=read.digest, **validators)
            self._collection.unsaved.source(known, self._clock())

    def _signalled(self, number: int, read: SourceRead, part: slice) -> None:
        """Announcements of known pages."""
        now = self._clock()
        pages, announced = read.pages[part], read.announced[part]
        if not self._planner.pages.state[pages].all():  # forgotten since it was read
            return
        self._planner.covered(pages, number, now)
        if announced.any():
            taken = self._planner.signalled(pages[announced], number, now)
            self._count("crawlsched/change_signals/received", int(announced.sum()))
            self._count("crawlsched/change_signals/taken", taken)
        for page, lastmod, n in zip(pages.tolist(), read.lastmod[part], read.n_announced[part], strict=True):
            self._collection.unsaved.announcement(page, number, lastmod, n, now)
        if self._settings.sitemap_priority:
            stated = [(page, p) for page, p in zip(pages.tolist(), read.priority[part], strict=True) if p is not None]
            if stated:
                numbers, priorities = zip(*stated, strict=True)
                self._planner.set_importance(np.array(numbers), np.array(priorities), now)
        self._collection.unsaved.pages(pages, now)

    def _discovered(self, number: int, read: SourceRead, part: slice) -> None:
        """Entries of unknown URLs: they become pages, unless they were told to be forgotten."""
        now = self._clock()
        entries = read.unknown[part]
        forgotten = self._collection.store.tombstones.cover([entry.url for entry in entries])
        found: dict[bytes, UnknownEntry] = {}  # two spellings of one URL are one page
        for entry, is_forgotten in zip(entries, forgotten, strict=True):
            if not is_forgotten and self._collection.index.page(entry.request_fingerprint) < 0:
                found.setdefault(entry.request_fingerprint, entry)
        if not found:
            return
        pages = self._admission.add([self._found(entry) for entry in found.values()], now)
        for page, entry in zip(pages, found.values(), strict=True):
            self._collection.unsaved.announcement(page, number, entry.lastmod, 0, now)
        self._planner.covered(np.array(pages), number, now)

    def _found(self, entry: UnknownEntry) -> FoundPage:
        stated = entry.priority if self._settings.sitemap_priority else None
        importance = self._admission.importance(entry.url, {}, stated)
        return FoundPage(entry.url, entry.request_fingerprint, host_of(entry.url), importance)
