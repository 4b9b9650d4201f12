"""A batch: the crawling thread's changes since the last batch, to be written in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from crawlsched.change_signals import FurtherRow

__all__ = [
    "DIGEST_SIZE",
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
    """A page that is not in the store yet; `Batch.columns` may have its figures."""

    page: int
    url: str
    host: str
    request_fingerprint: bytes  # 20 bytes
    first_seen: float
    template: bytes | None = None  # digest; its data goes into `Batch.templates`
    depth: int = 0
    request_fingerprinter: str = ""  # which fingerprinter made the fingerprint


class ObservationRow(NamedTuple):
    """One visit. The process numbers visits from `Reader.next_observation` on, so a row written twice counts once."""

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
    similarity: float | None = None  # of the new text and the text before
    time_since_modified: float | None = None  # seconds, by an honest Last-Modified
    further: tuple[tuple[int, int], ...] = ()  # (source, ChangeSignals) of every further source


class ChangeRow(NamedTuple):
    """A row of the change feed. The process numbers rows from `Reader.next_change` on."""

    id: int
    page: int
    time: float
    kind: str  # one of models.KINDS
    observation: int | None  # the visit that found it


class Outgoing(NamedTuple):
    """A row for the inbox of a shard that another process may own."""

    shard: int
    sender: str  # the token of a member
    number: int  # each sender numbers its rows, so that a row written twice is stored once
    kind: str
    data: Mapping[str, Any]  # JSON
    created_at: float

    @property
    def name(self) -> tuple[str, int]:
        """The unique key of the row."""
        return self.sender, self.number


#: The length of a digest in `PageFacts.history`, in bytes.
DIGEST_SIZE = 8


class PageFacts(NamedTuple):
    """The data for making a page's request, and for judging its response."""

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

    @property
    def past_digests(self) -> list[bytes]:
        """The digests of the last different contents, oldest first."""
        return [self.history[start : start + DIGEST_SIZE] for start in range(0, len(self.history), DIGEST_SIZE)]


class KeptText(NamedTuple):
    """The compressed text of a page and its earlier text. If `before` is None, the stored text is the earlier one."""

    seen_at: float
    text: bytes
    before_seen_at: float | None = None
    before: bytes | None = None

    def after(self, earlier: KeptText | None) -> KeptText:
        """Return this text with `earlier` as its earlier text, unless it has an earlier text already."""
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
        The stored columns of some pages, as `Planner.columns` returns them: ``page`` (distinct) and every name in
        `models.STATE_COLUMNS`. Optional are ``log_likelihood``, shape (n, K), uint16, ``estimator_state``, bytes, and
        all names in `models.READABLE_COLUMNS`. Other names are ignored.
    """

    since: float | None = None  # time of the oldest change, for `WriteBehind.oldest_unsaved_at`
    # Pages to insert. A page without a row in `columns` is inserted as never crawled, with importance 1.
    new_pages: dict[int, NewPage] = field(default_factory=dict)
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    grid: str = ""  # the grid of rates of the log-likelihoods
    estimator: str = ""  # the estimator of ``estimator_state``
    # Any other columns of pages; only the named columns are written.
    contents: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    traces: dict[int, Mapping[str, bytes]] = field(default_factory=dict)  # by page: all of `models.TRACE_COLUMNS`
    # A page's newest text. The text that is stored as the newest then becomes the earlier text.
    texts: dict[int, KeptText] = field(default_factory=dict)
    masks: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # the noise mask of a template, as data (JSON)
    observations: list[ObservationRow] = field(default_factory=list)
    # Rows of the feed, in the same transaction as the fingerprints and states that they report.
    changes: list[ChangeRow] = field(default_factory=list)
    # Request templates as JSON, by digest. Add a template with every new page that uses it. Stored templates stay
    # unchanged.
    templates: dict[bytes, Mapping[str, Any]] = field(default_factory=dict)
    # By page and source: the last announced lastmod (POSIX seconds or None), and how often a new date was seen.
    announcements: dict[tuple[int, int], tuple[float | None, int]] = field(default_factory=dict)
    # The announcements of a page's sources, if the page has several sources.
    further_sources: dict[tuple[int, int], FurtherRow] = field(default_factory=dict)
    # Whole rows, by number or name, which replace the stored rows.
    sources: dict[int, Source] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    # Commands that are done, each with its time and result.
    finished: dict[int, tuple[float, Any]] = field(default_factory=dict)
    # New outcomes, by observation, for stored visits that proved nothing after all.
    retracted: dict[int, str] = field(default_factory=dict)
    outgoing: list[Outgoing] = field(default_factory=list)  # findings for other shards
    # The keys of findings for this shard whose results are in this batch.
    received: list[tuple[str, int]] = field(default_factory=list)

    def __len__(self) -> int:
        """Count the rows to write."""
        parts = (part for part in vars(self).values() if isinstance(part, dict | list) and part is not self.columns)
        return sum(map(len, parts)) + len(self.columns.get("page", ()))
