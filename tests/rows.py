"""Rows of a collection, as a crawl would hand them to its store."""

import hashlib
from collections.abc import Iterable
from typing import Any

from crawlsched.store import NewPage, ObservationRow

NOW = 1.7e9


def name_of(url: str) -> bytes:
    """Name a page by its URL, in place of Scrapy's fingerprint."""
    return hashlib.sha1(url.encode()).digest()


def new_page(page: int, url: str | None = None, template: bytes | None = None, **facts: Any) -> NewPage:
    """Return a page that is new, by default one of three hosts."""
    url = url or f"http://host{page % 3}.example/{page}"
    return NewPage(page, url, url.split("/")[2].split(":")[0], name_of(url), NOW, template, **facts)


def new_pages(pages: Iterable[int]) -> dict[int, NewPage]:
    """Return new pages by their numbers."""
    return {page: new_page(page) for page in pages}


def observation(id: int, page: int = 0, time: float | None = None, **more: Any) -> ObservationRow:
    """Return a visit that found a change a minute after the one before."""
    row = {"elapsed": 60.0, "n_signals": 0, "source": -1, "changed": True, "outcome": "changed"}
    return ObservationRow(id, page, NOW + id if time is None else time, **{**row, **more})
