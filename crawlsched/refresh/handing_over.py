"""Handing over: what was found for a shard that another process owns, on its way there and when it comes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from crawlsched.collection.collection import FoundPage
from crawlsched.collection.request_templates import RequestTemplate
from crawlsched.collection.shard import Shard
from crawlsched.sharing import shard_of
from crawlsched.store import Outgoing

__all__ = ["FOUND", "PAGE", "SOURCE", "Elsewhere", "HandingOver", "found_again"]

#: What is handed over: a spider's request, a URL that a site names, a source of ChangeSignals.
PAGE, FOUND, SOURCE = "page", "found", "source"
# What a process has handed over is remembered, so that the same link on a thousand pages goes once; 8 bytes of each.
_REMEMBERED = 1_000_000


class HandingOver:
    """What one process hands over, numbered, and each thing once.

    Parameters
    ----------
    sender : str
        The token of this member.
    n_shards : int

    Examples
    --------
    >>> handing_over = HandingOver("me", n_shards=4)
    >>> handing_over.row("example.com", "found", {"url": "https://example.com/"}, now=5.0)
    Outgoing(shard=2, sender='me', number=1, kind='found', data={'url': 'https://example.com/'}, created_at=5.0)
    >>> handing_over.row("example.com", "found", {"url": "https://example.com/"}, now=6.0) is None
    True
    """

    def __init__(self, sender: str, n_shards: int) -> None:
        self._sender = sender
        self._n_shards = n_shards
        self._numbers = itertools.count(1)
        self._gone: set[bytes] = set()

    def row(self, host: str, kind: str, data: dict[str, Any], now: float) -> Outgoing | None:
        """Return what is to be written down; None if the same was handed over already."""
        name = blake2b(json.dumps([kind, data], sort_keys=True).encode(), digest_size=8).digest()
        if name in self._gone and not data.get("again"):
            return None
        if len(self._gone) >= _REMEMBERED:
            self._gone.clear()
        self._gone.add(name)
        return Outgoing(shard_of(host, self._n_shards), self._sender, next(self._numbers), kind, data, now)


class Elsewhere:
    """What a shard finds of other shards.

    Parameters
    ----------
    shard : Shard
    handing_over : HandingOver
        Of the process.
    """

    def __init__(self, shard: Shard, handing_over: HandingOver) -> None:
        self.owns = shard.owns
        self._handing_over = handing_over

    def found(self, page: FoundPage, now: float) -> Outgoing | None:
        """Hand over a URL that a site names."""
        data = {
            "url": page.url,
            "fingerprint": page.request_fingerprint.hex(),
            "host": page.host,
            "importance": page.importance,
            "template": None if page.template is None else page.template.data,
            "depth": page.depth,
            "stated": page.importance_stated,
        }
        return self._handing_over.row(page.host, FOUND, data, now)

    def source(self, kind: str, url: str, host: str, named_by: str | None, now: float) -> Outgoing | None:
        """Hand over a sitemap or feed."""
        data = {"kind": kind, "url": url, "named_by": named_by}
        return self._handing_over.row(host, SOURCE, data, now)


def found_again(data: Mapping[str, Any]) -> FoundPage:
    """Return the URL that was handed over."""
    return FoundPage(
        str(data["url"]),
        bytes.fromhex(data["fingerprint"]),
        str(data["host"]),
        float(data["importance"]),
        _template(data),
        int(data["depth"]),
        importance_stated=bool(data["stated"]),
    )


def _template(data: Mapping[str, Any]) -> RequestTemplate | None:
    return RequestTemplate(dict(data["template"])) if data["template"] else None
