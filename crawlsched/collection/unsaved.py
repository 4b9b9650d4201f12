"""What has been learned since the last batch went to the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals import FurtherRow
from crawlsched.collection.page_numbers import PageNumbers
from crawlsched.store import Batch, ChangeRow, Host, KeptText, NewPage, ObservationRow, Outgoing, PageFacts, Source
from crawlsched.store.rows import url_digest

__all__ = ["Unsaved"]


class Unsaved:
    """Collect what has to be written; give it away as one batch.

    Parameters
    ----------
    numbers : PageNumbers
        Under which a batch speaks of pages.
    grid : str
        Which grid of rates the posterior's rows belong to.
    next_observation : int
        The number of the next observation.
    estimator : str
        Which estimator its rows belong to; none by default.
    next_change : int
        The number of the next row of the feed.

    Attributes
    ----------
    number : int
        The number of the batch that is being collected, counted from 1.
    """

    def __init__(
        self, numbers: PageNumbers, grid: str, next_observation: int, estimator: str = "", next_change: int = 1
    ) -> None:
        self.number = 1
        self._numbers = numbers
        self._grid, self._estimator = grid, estimator
        self._next_observation = next_observation
        self._next_change = next_change
        self._begin()

    def _begin(self) -> None:
        self._pages: set[int] = set()
        self._batch = Batch(grid=self._grid, estimator=self._estimator)

    def _touch(self, now: float) -> None:
        if self._batch.since is None:
            self._batch.since = now

    @property
    def since(self) -> float | None:
        """Time of the oldest change that is not handed over yet; None if there is none."""
        return self._batch.since

    def __len__(self) -> int:
        """About how many rows wait to be written."""
        return len(self._pages) + len(self._batch.announcements) + len(self._batch.observations)

    def page(self, page: int, now: float) -> None:
        """The page's columns have changed."""
        self._pages.add(page)
        self._touch(now)

    def pages(self, pages: NDArray[np.integer], now: float) -> None:
        """The columns of these pages have changed."""
        self._pages.update(pages.tolist())
        self._touch(now)

    def new_page(self, page: int, new: NewPage, template_data: Mapping[str, Any] | None, now: float) -> None:
        """A page was found."""
        self._batch.new_pages[new.page] = new
        if new.template is not None and template_data is not None:
            self._batch.templates[new.template] = template_data
        self.page(page, now)

    def template(self, page: int, digest: bytes | None, data: Mapping[str, Any] | None, now: float) -> None:
        """The page's request is another one."""
        self._contents_of(page).update(template=digest)
        if digest is not None and data is not None:
            self._batch.templates[digest] = data
        self._touch(now)

    def url(self, page: int, url: str, now: float) -> None:
        """The page is asked for by another URL."""
        self._contents_of(page).update(url=url, url_digest=url_digest(url))
        self._touch(now)

    def content(self, facts: PageFacts, now: float) -> None:
        """What is known of the page's content has changed."""
        self._contents_of(facts.page).update(
            fingerprint=facts.fingerprint,
            pending_fingerprint=facts.pending_fingerprint,
            recipe=facts.recipe,
            etag=facts.etag,
            last_modified=facts.last_modified,
            moved_to=facts.moved_to,
        )
        self._touch(now)

    def changed(self, page: int, now: float) -> None:
        """A visit found the page changed."""
        self._contents_of(page).update(changed_at=now)
        self._touch(now)

    def importance_stated(self, page: int, now: float) -> None:
        """Somebody said what this very page is worth."""
        self._contents_of(page).update(importance_stated=1)
        self._touch(now)

    def _contents_of(self, page: int) -> dict[str, Any]:
        number = self._numbers.item(page)
        contents: dict[str, Any] = {**self._batch.contents.get(number, {})}
        self._batch.contents[number] = contents
        return contents

    def trace(self, facts: PageFacts, now: float) -> None:
        """The traces of the page's earlier contents have changed."""
        self._batch.traces[self._numbers.item(facts.page)] = {
            "history": facts.history,
            "text_sketch": facts.text_sketch,
            "block_sketch": facts.block_sketch,
        }
        self._touch(now)

    def text(self, page: int, text: KeptText, now: float) -> None:
        """The page has another text, which is to be kept."""
        number = self._numbers.item(page)
        self._batch.texts[number] = text.after(self._batch.texts.get(number))
        self._touch(now)

    def mask(self, template: str, data: Mapping[str, Any], now: float) -> None:
        """It was learned what is noise on a template's pages."""
        self._batch.masks[template] = data
        self._touch(now)

    def observation(self, now: float, page: int, **facts: Any) -> int:
        """A visit ended; return the number under which that is kept."""
        number = self._next_observation
        self._batch.observations.append(ObservationRow(id=number, page=self._numbers.item(page), time=now, **facts))
        self._next_observation += 1
        self._touch(now)
        return number

    def told(self, page: int, now: float, kind: str, observation: int | None) -> None:
        """Something is for the feed; the fingerprint or the state that says so is in the same batch."""
        self._batch.changes.append(ChangeRow(self._next_change, self._numbers.item(page), now, kind, observation))
        self._next_change += 1
        self._touch(now)

    def retract(self, observation: int, outcome: str, now: float) -> None:
        """A visit taught nothing after all, and ended so."""
        self._batch.retracted[observation] = outcome
        self._touch(now)

    def announcement(self, page: int, source: int, lastmod: float | None, n: int, now: float) -> None:
        """A source announced this lastmod for the page."""
        self._batch.announcements[self._numbers.item(page), source] = (lastmod, n)
        self._touch(now)

    def source(self, source: Source, now: float) -> None:
        """A source was found or polled."""
        self._batch.sources[source.source] = source
        self._touch(now)

    def host(self, host: Host, now: float) -> None:
        """A host asked for something."""
        self._batch.hosts[host.host] = host
        self._touch(now)

    def command(self, command: int, result: Any, now: float) -> None:
        """A command of the command line was obeyed."""
        self._batch.finished[command] = (now, result)
        self._touch(now)

    def outgoing(self, row: Outgoing, now: float) -> None:
        """Something was found for another shard."""
        self._batch.outgoing.append(row)
        self._touch(now)

    def received(self, sender: str, number: int, now: float) -> None:
        """Note that a page handed over by another shard was added."""
        self._batch.received.append((sender, number))
        self._touch(now)

    def forget(self, pages: NDArray[np.integer]) -> None:
        """Nothing of these pages is to be written any more."""
        self._pages.difference_update(pages.tolist())
        gone, batch = set(self._numbers.of(pages).tolist()), self._batch
        batch.observations = [row for row in batch.observations if row.page not in gone]
        batch.changes = [row for row in batch.changes if row.page not in gone]
        for rows in (batch.new_pages, batch.contents, batch.traces, batch.texts):
            for page in gone & rows.keys():
                del rows[page]
        for key in [key for key in batch.announcements if key[0] in gone]:
            del batch.announcements[key]

    def take(
        self,
        columns: Callable[[NDArray[np.intp]], dict[str, Any]],
        further: Callable[[NDArray[np.intp]], dict[tuple[int, int], FurtherRow]],
    ) -> Batch | None:
        """Return what has been collected as a batch, and begin the next; None if there is nothing.

        Parameters
        ----------
        columns : callable
            Gives the stored columns of the pages it is asked for (`Planner.columns`).
        further : callable
            Gives what further sources say of them (`FurtherSources.stored`).
        """
        batch = self._batch
        if self._pages:
            pages = np.fromiter(self._pages, np.intp, len(self._pages))
            batch.columns = {**columns(pages), "page": self._numbers.of(pages)}
            batch.further_sources = {
                (self._numbers.item(page), source): told for (page, source), told in further(pages).items()
            }
        elif not len(batch):
            return None
        self._begin()
        self.number += 1
        return batch
