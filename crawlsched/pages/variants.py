"""Variants: several pages of one URL, such as the same prices for three log-ins or in two languages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b, sha1
from typing import Any

from crawlsched.pages.page_index import PageIndex

__all__ = ["MOST_OF_A_URL", "Variants", "asked_variant", "variant_fingerprint"]

#: How many variants a URL may have beside the page that the URL alone names.
MOST_OF_A_URL = 16
_SIZE = sha1().digest_size  # that of Scrapy's fingerprints


def asked_variant(meta: Mapping[str, Any]) -> str | None:
    """Return the name of the variant in a request's meta; None: there is none.

    >>> asked_variant({"crawlsched_page": "de"}), asked_variant({"cookiejar": 2}), asked_variant({})
    ('de', 'cookiejar 2', None)
    """
    if (name := meta.get("crawlsched_page")) is not None:
        return str(name)
    jar = meta.get("cookiejar")
    return None if jar is None else f"cookiejar {jar!r}"


def variant_fingerprint(request_fingerprint: bytes, variant: str | None) -> bytes:
    """Return the 20 bytes that identify a variant; for a page that is none, those of its URL."""
    if variant is None:
        return request_fingerprint
    return blake2b(request_fingerprint + variant.encode(), digest_size=_SIZE, person=b"crawlsched-varia").digest()


class Variants:
    """Find all pages of a URL.

    The index also has each variant under a fingerprint made of its URL's and a number. This takes twelve bytes a
    variant, and nothing for other pages.

    Examples
    --------
    >>> index = PageIndex()
    >>> variants = Variants(index)
    >>> index.add(b"fingerprint-of-a-url", 3)
    >>> variants.add(b"fingerprint-of-a-url", 5)
    >>> variants.pages(b"fingerprint-of-a-url")
    [3, 5]
    """

    def __init__(self, index: PageIndex) -> None:
        self._index = index
        self._any = False

    def load(self, known: Iterable[tuple[int, bytes]]) -> None:
        """Take in the variants of a store: page, and fingerprint of its URL."""
        for page, request_fingerprint in known:
            self.add(request_fingerprint, page)

    def add(self, request_fingerprint: bytes, page: int) -> None:
        """Add a variant of a URL; the caller has checked that there is room (`n`)."""
        self._any = True
        for place in _places(request_fingerprint):
            if self._index.page(place) < 0:
                self._index.add(place, page)
                return

    def n(self, request_fingerprint: bytes) -> int:
        """Count the variants of a URL."""
        return sum(self._index.page(place) >= 0 for place in _places(request_fingerprint)) if self._any else 0

    def pages(self, request_fingerprint: bytes) -> list[int]:
        """Return all pages of a URL; none if it is no page."""
        names = [request_fingerprint, *(_places(request_fingerprint) if self._any else ())]
        return [page for name in names if (page := self._index.page(name)) >= 0]


def _places(request_fingerprint: bytes) -> list[bytes]:
    return [
        blake2b(request_fingerprint + bytes([number]), digest_size=_SIZE, person=b"crawlsched-place").digest()
        for number in range(MOST_OF_A_URL)
    ]
