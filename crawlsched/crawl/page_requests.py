"""Pages that a spider or a site names, what becomes of each request, and how requests go to other processes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from crawlsched.crawl.collection import FoundPage
from crawlsched.crawl.request_templates import RequestTemplate, request_digest
from crawlsched.sharing import shard_of
from crawlsched.store import Outgoing

__all__ = ["FOUND", "PAGE", "SOURCE", "AdmissionResult", "Handover", "PageRequest", "Share", "from_data", "to_data"]


class AdmissionResult(StrEnum):
    """What became of a request."""

    #: A new page was added.
    NEW = "new"
    #: The page is known; new data in the request were taken over.
    KNOWN = "known"
    #: The page is known, and the request goes out once, unchanged.
    ONCE = "once"
    #: The page's shard belongs to another process, and the request was handed over.
    ELSEWHERE = "elsewhere"
    #: The page was forgotten on purpose.
    FORGOTTEN = "forgotten"
    #: The largest allowed number of pages is reached.
    TOO_MANY = "too_many"


class PageRequest(NamedTuple):
    """A spider's request for a page."""

    page: FoundPage
    again: bool  # ``dont_filter``
    is_start: bool = False  # whether start() made it
    found_on: int = -1  # the page whose callback yielded it; -1: not known

    @property
    def digest(self) -> int:
        """The digest of its template."""
        return request_digest(self.page.template.data if self.page.template else None)

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON, for the owner of another shard."""
        # start() yields the same requests in every process, and the owner of the shard has its own.
        return {"page": to_data(self.page), "again": self.again and not self.is_start}

    def says(self) -> list[Any]:
        """Return, as JSON, the data that distinguish this request from others, without the place of its link."""
        return [self.page.request_fingerprint.hex(), self.digest, self.page.importance]


def to_data(page: FoundPage) -> dict[str, Any]:
    """Return a page as it is handed over, as JSON."""
    template = None if page.template is None else page.template.data
    return {**page._asdict(), "request_fingerprint": page.request_fingerprint.hex(), "template": template}


def from_data(data: Mapping[str, Any]) -> FoundPage:
    """Return the page that was handed over."""
    template = RequestTemplate(dict(data["template"])) if data["template"] else None
    fingerprint = bytes.fromhex(data["request_fingerprint"])
    return FoundPage(**{**data, "request_fingerprint": fingerprint, "template": template})


#: Three kinds of rows are handed over: a spider's request, a URL that a site names, a source of ChangeSignals.
PAGE, FOUND, SOURCE = "page", "found", "source"


class Handover:
    """The numbered rows that one process hands over to others, each row once.

    A row is written with the batch of the shard in which it was found. If the batch is lost, the row is lost, too, and
    the next visit hands the link over again. While the shard stays here, at most `most` of the rows that were handed
    over are remembered, with 8 bytes each. So the same link on a thousand pages is handed over once.

    Examples
    --------
    >>> handing_over = Handover("me", n_shards=4)
    >>> handing_over.row("example.com", "found", {"url": "https://example.com/"}, now=5.0, of=3)
    Outgoing(shard=2, sender='me', number=1, kind='found', data={'url': 'https://example.com/'}, created_at=5.0)
    >>> handing_over.row("example.com", "found", {"url": "https://example.com/"}, now=6.0, of=3) is None
    True
    >>> handing_over.forget(3)
    >>> handing_over.row("example.com", "found", {"url": "https://example.com/"}, now=7.0, of=3).number
    2
    """

    def __init__(self, sender: str, n_shards: int, most: int = 1_000_000) -> None:
        self._sender = sender
        self._n_shards = n_shards
        self._most = most
        self._numbers = itertools.count(1)
        self._gone: dict[int | None, set[bytes]] = {}

    def row(
        self, host: str, kind: str, data: dict[str, Any], now: float, *, of: int | None, says: Any = None
    ) -> Outgoing | None:
        """Return the row to write, in the batch of the shard `of`; None if an equal row was handed over already.

        `says` is the part of the data by which rows are compared; None: all data.
        """
        said = json.dumps([kind, data if says is None else says], sort_keys=True)
        name = blake2b(said.encode(), digest_size=8).digest()
        if name in self._gone.setdefault(of, set()) and not data.get("again"):
            return None
        if sum(map(len, self._gone.values())) >= self._most:
            self._gone = {of: set()}
        self._gone[of].add(name)
        return Outgoing(shard_of(host, self._n_shards), self._sender, next(self._numbers), kind, data, now)

    def forget(self, shard: int) -> None:
        """Forget the rows of a shard that may not have been written: the shard was lost, or begins again."""
        self._gone.pop(shard, None)


class Share(Protocol):
    """The part of `SharedCrawl` that `Refresher` uses."""

    handing_over: Handover
    rate: float  # the granted rate, in requests per second
    rests: bool  # whether nothing may go out
    is_full: bool  # whether the receivers of handed-over rows have to catch up first
    pass_since: float | None  # when the pass of all processes began
    pass_is_over: bool

    def open(self) -> None:
        """Join the processes that share the collection."""

    def ends(self) -> None:
        """Claim no more shards."""

    def close(self, now: float) -> None:
        """Stop sharing the collection."""

    def look(self, now: float) -> None:
        """Follow the other processes."""

    def heartbeat(self) -> None:
        """Report the state of the shards."""

    def may_send(self, shard: int | None) -> bool:
        """Whether a request may be written now."""

    def set_bandwidth(self, bandwidth: float) -> None:
        """Let all processes crawl at another rate."""

    def hand_over(self, asked: PageRequest, now: float) -> AdmissionResult:
        """The spider asks for a page of a shard that is not here."""

    def signal(self, urls: Sequence[str], source: str, now: float) -> int:
        """Announce that pages may have changed; return how many announcements count in this process."""
