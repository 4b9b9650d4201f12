"""A batch: the changes by the crawling thread since the last batch, to be written in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from crawlsched.change_signals import FurtherRow

__all__ = [
    "Batch",
    "ChangeRow",
    "Host",
    "KeptText",
    "NewPage",
    "ObservationRow",
    "Outgoing",
    "PageFacts",
    "Source",
]


class NewPage(NamedTuple):
    """A page that is not in the store yet; its figures come with `Batch.columns`, or are those of a new page."""

    page: int
    url: str
    host: str
    request_fingerprint: bytes  # 20 bytes
    first_seen: float
    template: bytes | None = None  # digest; its data goes into `Batch.templates`
    depth: int = 0
    request_fingerprinter: str = ""  # which fingerprinter made the fingerprint


class ObservationRow(NamedTuple):
    """One visit. The process chooses `id` (at first `Reader.next_observation`), so a row written twice counts once."""

    id: int
    page: int
    time: float
    elapsed: float | None
    n_signals: int
    source: int  # -1: none
    changed: bool | None  # None: the visit proved nothing
    outcome: str  # one of models.Outcome
    status: int | None = None
    size: int | None = None
    changed_share: float | None = None  # of the page's blocks
    similarity: float | None = None  # of its text to the one before
    time_since_modified: float | None = None  # seconds, by an honest Last-Modified
    further: tuple[tuple[int, int], ...] = ()  # (source, ChangeSignals) of every further source


class ChangeRow(NamedTuple):
    """A row of the change feed; `id` as for `ObservationRow` (`Reader.next_change`)."""

    id: int
    page: int
    time: float
    kind: str  # one of models.KINDS
    observation: int | None  # the visit that found it


class Outgoing(NamedTuple):
    """A finding for a shard that another process may own; it is left in that shard's inbox."""

    shard: int
    sender: str  # the token of a member
    number: int  # the sender counts it up, so that a row written twice is kept once
    kind: str
    data: Mapping[str, Any]  # JSON
    created_at: float

    @property
    def name(self) -> tuple[str, int]:
        """Its key: no other row has it."""
        return self.sender, self.number


class PageFacts(NamedTuple):
    """The data by which a page's request is made and its response is judged."""

    page: int
    url: str
    template: bytes | None
    template_data: dict[str, Any] | None
    fingerprint: bytes | None
    pending_fingerprint: bytes | None
    recipe: str | None
    etag: str | None
    last_modified: str | None
    depth: int
    moved_to: str | None
    state: int  # of `crawlsched.pages`
    history: bytes = b""  # digests of the last different contents, oldest first
    text_sketch: bytes = b""
    block_sketch: bytes = b""


class KeptText(NamedTuple):
    """The text of a page, compressed, and the text before it (None: the one that the store has)."""

    seen_at: float
    text: bytes
    before_seen_at: float | None = None
    before: bytes | None = None

    def after(self, earlier: KeptText | None) -> KeptText:
        """Return this text with `earlier` as the one before it, unless it already has one."""
        if earlier is None or self.before is not None:
            return self
        return self._replace(before_seen_at=earlier.seen_at, before=earlier.text)


@dataclass
class Source:
    """A source of ChangeSignals: a sitemap, a feed, a ping."""

    source: int
    kind: str
    url: str
    host: str
    parent: int | None = None
    polled_at: float | None = None
    next_poll_at: float | None = None
    etag: str | None = None
    last_modified: str | None = None
    fingerprint: bytes | None = None
    n_entries: int = 0
    problems: dict[str, Any] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    listed_lastmod: float | None = None
    read_lastmod: float | None = None


@dataclass
class Host:
    """The data of a host: the time until which it rests, its Crawl-delay, and counts."""

    host: str
    rest_until: float = 0.0
    crawl_delay: float | None = None
    robots_seen_at: float | None = None
    counts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Batch:
    """Changes that are written together.

    Attributes
    ----------
    columns : dict of str to ndarray
        The stored columns of some pages, as `Planner.columns` gives them: ``page`` (distinct), every name in
        `models.STATE_COLUMNS` and, optionally, ``log_likelihood``, shape (n, K), uint16, any of
        `models.READABLE_COLUMNS`, and ``estimator_state``, bytes. Other names are ignored.
    """

    since: float | None = None  # time of the oldest change in it (`WriteBehind.oldest_unsaved_at`)
    # Pages to insert. Without a row in `columns` they are inserted as never crawled, with importance 1.
    new_pages: dict[int, NewPage] = field(default_factory=dict)
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    grid: str = ""  # which grid of rates the log-likelihoods belong to
    estimator: str = ""  # which estimator ``estimator_state`` belongs to
    # Any other columns of pages; columns that are not named stay as they are.
    contents: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    traces: dict[int, Mapping[str, bytes]] = field(default_factory=dict)  # per page all of `models.TRACE_COLUMNS`
    # A page's newest text; the one that was kept until then becomes the one before.
    texts: dict[int, KeptText] = field(default_factory=dict)
    masks: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # the noise mask of a template, as data (JSON)
    observations: list[ObservationRow] = field(default_factory=list)
    # Rows of the feed; they are written together with the fingerprints and states that they report.
    changes: list[ChangeRow] = field(default_factory=list)
    # Digest to data (JSON). Add a template with every new page that names it; known templates stay as they are.
    templates: dict[bytes, Mapping[str, Any]] = field(default_factory=dict)
    # The last announced lastmod (POSIX seconds or None) and how often it was seen to differ.
    announcements: dict[tuple[int, int], tuple[float | None, int]] = field(default_factory=dict)
    # The announcements of a page's sources, if it has several.
    further_sources: dict[tuple[int, int], FurtherRow] = field(default_factory=dict)
    # Whole rows, by number and by name; they replace the stored ones.
    sources: dict[int, Source] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    # Commands that are done, each with its time and result.
    finished: dict[int, tuple[float, Any]] = field(default_factory=dict)
    # Observations to change: their visits proved nothing after all, and ended with this outcome.
    retracted: dict[int, str] = field(default_factory=dict)
    outgoing: list[Outgoing] = field(default_factory=list)  # findings for other shards
    # Senders and numbers of findings for this shard, whose results are in this batch.
    received: list[tuple[str, int]] = field(default_factory=list)

    def __len__(self) -> int:
        """Count the rows to write."""
        parts = (part for part in vars(self).values() if isinstance(part, dict | list) and part is not self.columns)
        return sum(map(len, parts)) + len(self.columns.get("page", ()))
