"""Changes since the last batch was handed to the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.shard import PageNumbers, Shard, Shards
from crawlsched.crawl.sources import POLLED_KINDS, Sources
from crawlsched.planner import Planner, readable
from crawlsched.store import Batch, ChangeRow, ObservationRow, Source

__all__ = ["Unsaved"]


class Unsaved:
    """Collects changes that have to be written, and hands them over as one batch."""

    def __init__(self, shards: Shards, numbers: PageNumbers, sources: Sources, planner: Planner) -> None:
        self.number = 1
        self._shards, self._numbers, self._sources, self._planner = shards, numbers, sources, planner
        self._begin()

    def _begin(self) -> None:
        self._pages: set[int] = set()
        self._batches: dict[int, Batch] = {}
        #: Time of the oldest change that is not handed over yet; None if there is none.
        self.since: float | None = None

    def _of(self, shard: Shard | None, now: float) -> Batch:
        """Return the batch of a shard, to which a change of this time is added."""
        if shard is None:
            return Batch()
        self.since = now if self.since is None else self.since
        batch = self._batches.get(shard.number)
        if batch is None:
            batch = self._batches[shard.number] = Batch(grid=self._planner.grid, estimator=self._planner.estimator)
        batch.since = now if batch.since is None else batch.since
        return batch

    def of_page(self, page: int, now: float) -> tuple[Batch, int]:
        """Return the batch of a page's shard, and the page's number there."""
        return self._of(self._shards.of_page(page), now), self._numbers.item(page)

    def __len__(self) -> int:
        """About how many rows wait to be written."""
        rows = (len(batch.announcements) + len(batch.observations) for batch in self._batches.values())
        return len(self._pages) + sum(rows)

    # -- pages

    def page(self, page: int, now: float) -> None:
        """The page's columns have changed."""
        shard = self._shards.of_page(page)
        if shard is not None:
            self._pages.add(page)
            self._of(shard, now)

    def pages(self, pages: NDArray[np.integer], now: float) -> None:
        """The columns of these pages have changed."""
        for page in pages.tolist():
            self.page(page, now)

    def content(self, page: int, now: float, **changes: Any) -> None:
        """Some of the page's columns in `page_content` have changed."""
        batch, number = self.of_page(page, now)
        batch.contents[number] = {**batch.contents.get(number, {}), **changes}

    # -- visits and announcements

    def observation(
        self, now: float, page: int, *, source: int, further: Sequence[tuple[int, int]] = (), **facts: Any
    ) -> int:
        """A visit ended; return the number under which it is kept."""
        shard = self._shards.of_page(page)
        if shard is None:
            return -1
        number = next(shard.observations)
        row = ObservationRow(
            id=number,
            page=self._numbers.item(page),
            time=now,
            source=self._source_in(shard, source, now),
            further=tuple([(self._source_in(shard, other, now), n) for other, n in further]),
            **facts,
        )
        self._of(shard, now).observations.append(row)
        return number

    def feed(self, page: int, now: float, kind: str, observation: int | None) -> None:
        """A change enters the feed; its fingerprint or state is in the same batch."""
        shard = self._shards.of_page(page)
        if shard is not None:
            row = ChangeRow(next(shard.changes), self._numbers.item(page), now, kind, observation)
            self._of(shard, now).changes.append(row)

    def announcement(self, page: int, source: int, lastmod: float | None, n: int, now: float) -> None:
        """A source announced this lastmod for the page."""
        shard = self._shards.of_page(page)
        if shard is not None:
            number = self._numbers.item(page), self._source_in(shard, source, now)
            self._of(shard, now).announcements[number] = (lastmod, n)

    def source(self, source: Source, now: float) -> None:
        """A source was found or polled."""
        # A polled source is in the shard of its host. A sender of pings announces pages of any host, so it has a row in
        # each shard of which it has announced a page.
        own = self._shards.of_name(source.host) if source.kind in POLLED_KINDS else None
        for shard in self._shards:
            if shard is own or source.source in shard.source_numbers:
                self._put_source(shard, source, now)

    def _source_in(self, shard: Shard, source: int, now: float) -> int:
        """Return the number of a source in a shard; a source that is new there is added."""
        if source not in shard.source_numbers and source in self._sources:
            self._put_source(shard, self._sources[source], now)
        return shard.source_numbers.get(source, -1)

    def _put_source(self, shard: Shard, source: Source, now: float) -> None:
        numbers = shard.source_numbers
        if source.source not in numbers:
            numbers[source.source] = next(shard.sources)
        parent = None if source.parent is None else self._source_in(shard, source.parent, now)
        row = replace(source, source=numbers[source.source], parent=parent)
        self._of(shard, now).sources[row.source] = row

    # -- what else there is

    def of_shard(self, number: int, now: float) -> Batch:
        """Return the batch of a shard; if the shard is not here, a batch that nobody writes."""
        return self._of(self._shards.here.get(number), now)

    def forget(self, pages: NDArray[np.integer]) -> None:
        """Write down no columns of these pages; the store leaves out their other rows."""
        self._pages.difference_update(pages.tolist())

    def hand_over(self, submit: Callable[..., None], now: float) -> None:
        """Hand over the collected changes, and begin the next batch; after a failure they are handed over again."""
        pages = np.fromiter(self._pages, np.intp, len(self._pages))
        shards = self._shards.numbers_of(pages)
        for shard in self._shards:
            if not (shards == shard.number).any():
                continue
            mine, batch = pages[shards == shard.number], self._of(shard, now)
            found = {**self._planner.columns(mine), **readable(self._planner, mine, now)}
            # A source that is new in the shard is written with this batch.
            named, place = np.unique(found["source"], return_inverse=True)
            sources = np.array([self._source_in(shard, source, now) for source in named.tolist()], np.int64)
            batch.columns = {**found, "page": self._numbers.of(mine), "source": sources[place]}
            batch.further_sources = {
                (self._numbers.item(page), self._source_in(shard, source, now)): counted
                for (page, source), counted in self._planner.further.stored(mine).items()
            }
        if taken := [(self._shards.here[number].store, batch) for number, batch in self._batches.items() if len(batch)]:
            submit(*taken)
            self.number += 1
        self._begin()

    def leave(self, shard: int) -> Batch:
        """Drop the changes of a shard that another process has now; return the batch that contained them."""
        self._pages = {page for page in self._pages if self._shards.of_page(page) is not None}
        return self._batches.pop(shard, Batch())
