"""Handing over: what was found for a shard that another process owns, on its way there and when it comes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from crawlsched.crawl.collection import FoundPage
from crawlsched.crawl.request_templates import RequestTemplate
from crawlsched.sharing import shard_of
from crawlsched.store import Outgoing

__all__ = ["FOUND", "PAGE", "SOURCE", "Handover", "found_again", "found_data"]

#: What is handed over: a spider's request, a URL that a site names, a source of ChangeSignals.
PAGE, FOUND, SOURCE = "page", "found", "source"
# What a process has handed over is remembered, so that the same link on a thousand pages goes once; 8 bytes of each.
_REMEMBERED = 1_000_000


class Handover:
    """What one process hands over, numbered, and each thing once.

    A row is written with the batch of the shard in which it was found. If that is lost, so is the row, and the next
    visit hands it over again. So what was handed over is remembered as long as the shard stays here.

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

    def __init__(self, sender: str, n_shards: int) -> None:
        self._sender = sender
        self._n_shards = n_shards
        self._numbers = itertools.count(1)
        self._gone: dict[int | None, set[bytes]] = {}

    def row(
        self, host: str, kind: str, data: dict[str, Any], now: float, *, of: int | None, says: Any = None
    ) -> Outgoing | None:
        """Return the row to write, in the batch of the shard `of`; None if the same was handed over already.

        `says` is the part of the data that is new; None: all of it.
        """
        said = json.dumps([kind, data if says is None else says], sort_keys=True)
        name = blake2b(said.encode(), digest_size=8).digest()
        if name in self._gone.setdefault(of, set()) and not data.get("again"):
            return None
        if sum(map(len, self._gone.values())) >= _REMEMBERED:
            self._gone = {of: set()}
        self._gone[of].add(name)
        return Outgoing(shard_of(host, self._n_shards), self._sender, next(self._numbers), kind, data, now)

    def forget(self, shard: int) -> None:
        """Note that pages found in a shard may not arrive: the shard was lost, or begins again."""
        self._gone.pop(shard, None)


def found_data(page: FoundPage) -> dict[str, Any]:
    """Return a URL as it is handed over."""
    template = None if page.template is None else page.template.data
    return {**page._asdict(), "request_fingerprint": page.request_fingerprint.hex(), "template": template}


def found_again(data: Mapping[str, Any]) -> FoundPage:
    """Return the URL that was handed over."""
    name, template = bytes.fromhex(data["request_fingerprint"]), data["template"]
    page = FoundPage(**{**data, "request_fingerprint": name})
    return page._replace(template=RequestTemplate(dict(template)) if template else None)
