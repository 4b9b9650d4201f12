"""What a spider's request says of a page, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from crawlsched.crawl.request_templates import PLACE_META, RequestDigest, RequestTemplate
from crawlsched.crawl.visits import Call

__all__ = ["AdmissionResult", "PageRequest"]

# Meta of one dispatch of a request, which say nothing of its page.
_OF_ONE_DISPATCH = ("crawlsched_", "is_start_request", "_")


class AdmissionResult(StrEnum):
    """What became of a request."""

    #: There is a page now.
    NEW = "new"
    #: The page is known; what the request carries has been taken over where it was other.
    KNOWN = "known"
    #: The page is known, and the request goes out once, as it stands.
    ONCE = "once"
    #: It is for a shard that another process owns, and was handed over.
    ELSEWHERE = "elsewhere"
    #: It was forgotten on purpose.
    FORGOTTEN = "forgotten"
    #: There are as many pages as there may be.
    TOO_MANY = "too_many"


class PageRequest(NamedTuple):
    """What a spider's request says."""

    url: str
    request_fingerprint: bytes  # of the URL
    host: str
    template: RequestTemplate | None  # what has to be kept of it
    importance: float | None  # the importance that it states
    meta: Mapping[str, Any]
    again: bool  # ``dont_filter``
    call: Call | None = None  # the call that yielded it; None: not known

    @property
    def is_start(self) -> bool:
        """Whether start() made it."""
        return bool(self.meta.get("is_start_request"))

    def to_dict(self) -> dict[str, Any]:
        """Return what the owner of another shard needs, as JSON."""
        return {
            "url": self.url,
            "fingerprint": self.request_fingerprint.hex(),
            "host": self.host,
            "template": None if self.template is None else self.template.data,
            "importance": self.importance,
            "meta": _plain(self.meta),
            # start() yields the same requests in every process, and the owner of the shard has its own.
            "again": self.again and not self.is_start,
        }

    def says(self) -> list[Any]:
        """Return what tells this request from others, wherever the link to it stands, as JSON."""
        meta = {name: value for name, value in _plain(self.meta).items() if name not in PLACE_META}
        digest = RequestDigest.of(self.template.data if self.template else None)
        return [self.request_fingerprint.hex(), int(digest), self.importance, meta]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PageRequest:
        """Return the request that another process has handed over."""
        return cls(
            str(data["url"]),
            bytes.fromhex(data["fingerprint"]),
            str(data["host"]),
            RequestTemplate(dict(data["template"])) if data["template"] else None,
            data["importance"],
            dict(data["meta"]),
            bool(data["again"]),
        )


def _plain(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of a request's meta what can be written down; the template has the rest, as it is kept of any page."""
    kept: dict[str, Any] = {}
    for name, value in meta.items():
        if name == "crawlsched_page" or not str(name).startswith(_OF_ONE_DISPATCH):
            try:
                kept[str(name)] = json.loads(json.dumps(value))
            except (TypeError, ValueError):
                continue
    return kept
