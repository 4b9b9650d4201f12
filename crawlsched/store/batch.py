"""A batch: what the crawling thread has learned since the last one, to be written in one transaction."""

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
    """A page that is not in the store yet; its numbers come with `Batch.columns`, or are those of a new page."""

    page: int
    url: str
    host: str
    request_fingerprint: bytes  # 20 bytes
    first_seen: float
    template: bytes | None = None  # digest; its data goes into `Batch.templates`
    depth: int = 0
    request_fingerprinter: str = ""  # which fingerprinter made the fingerprint


class ObservationRow(NamedTuple):
    """One visit; the process gives out `id` (`Reader.next_observation` at the start): written twice, it counts once."""

    id: int
    page: int
    time: float
    elapsed: float | None
    n_signals: int
    source: int  # -1: none
    changed: bool | None  # None: nothing was learned
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
    """What was found for a shard that another process may own, and is left in its inbox."""

    shard: int
    sender: str  # the token of a member
    number: int  # which the sender counts up: a row that is written twice is kept once
    kind: str
    data: Mapping[str, Any]  # JSON
    created_at: float

    @property
    def name(self) -> tuple[str, int]:
        """Its key: no other row has it."""
        return self.sender, self.number


class PageFacts(NamedTuple):
    """What is needed to make a page's request and to judge its response."""

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
    """The text of a page, compressed, and that of the content before (None: what the store has)."""

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
    """What is known of a host: until when to leave it alone, its Crawl-delay, and counts."""

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
    # Per page any other columns; what is not named stays as it is.
    contents: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    traces: dict[int, Mapping[str, bytes]] = field(default_factory=dict)  # per page all of `models.TRACE_COLUMNS`
    # A page's newest text; the one that was kept until then becomes the one before.
    texts: dict[int, KeptText] = field(default_factory=dict)
    masks: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # the noise mask of a template, as data (JSON)
    observations: list[ObservationRow] = field(default_factory=list)
    # For the feed; written together with the fingerprints and states that say so.
    changes: list[ChangeRow] = field(default_factory=list)
    # Digest to data (JSON). Add a template with every new page that names it; what is there already is left.
    templates: dict[bytes, Mapping[str, Any]] = field(default_factory=dict)
    # The last announced lastmod (POSIX seconds or None) and how often it was seen to differ.
    announcements: dict[tuple[int, int], tuple[float | None, int]] = field(default_factory=dict)
    # What the sources of a page have announced, where there are several.
    further_sources: dict[tuple[int, int], FurtherRow] = field(default_factory=dict)
    # Whole rows, by number and by name; they replace what is there.
    sources: dict[int, Source] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    # Commands which are done: when, and with what result.
    finished: dict[int, tuple[float, Any]] = field(default_factory=dict)
    # Observations that are none after all: their visits taught nothing, and ended so.
    retracted: dict[int, str] = field(default_factory=dict)
    outgoing: list[Outgoing] = field(default_factory=list)  # what is handed over to other shards
    # Senders and numbers of what was handed over to this shard, and has become what else is in this batch.
    received: list[tuple[str, int]] = field(default_factory=list)

    def __len__(self) -> int:
        """Count the rows to write."""
        parts = (part for part in vars(self).values() if isinstance(part, dict | list) and part is not self.columns)
        return sum(map(len, parts)) + len(self.columns.get("page", ()))
