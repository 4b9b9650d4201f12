"""The page index: which page has this request fingerprint?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PageIndex"]

# New pages wait in a dictionary and join the sorted arrays when there are this many of them; a merge of ten million
# pages takes about 0.1 s, so it must be rare, and a dictionary entry takes about 150 bytes, so it cannot wait for ever.
_MERGE_AT_LEAST = 20_000
_MERGE_SHARE = 0.05


class PageIndex:
    """Find a page by its request fingerprint, in 12 bytes a page.

    The first 8 bytes of the fingerprint (a SHA-1) are the key: among ten million pages the chance that any two share
    theirs is 3 in a million.

    Lookups cost O(log n). `add` is O(1) amortised.

    Examples
    --------
    >>> index = PageIndex()
    >>> index.add(b"fingerprint-of-page-0", 0)
    >>> index.page(b"fingerprint-of-page-0"), index.page(b"another fingerprint  ")
    (0, -1)
    """

    def __init__(self) -> None:
        self._keys: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._pages: NDArray[np.int32] = np.empty(0, np.int32)
        self._new: dict[int, int] = {}

    def __len__(self) -> int:
        return int(np.count_nonzero(self._pages >= 0)) + len(self._new)

    @staticmethod
    def keys(fingerprints: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Return the keys of many fingerprints (uint8, shape (n, 8 or more)), as `load` takes them."""
        return np.ascontiguousarray(fingerprints[:, :8]).view(">u8").ravel().astype(np.uint64)

    def load(self, keys: NDArray[np.uint64], pages: NDArray[np.int32]) -> None:
        """Add many pages at once.

        Parameters
        ----------
        keys : ndarray of uint64, shape (n,)
            The pages' `keys`.
        pages : ndarray of int32, shape (n,)
            The pages.
        """
        self._merge(keys, pages)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the keys, ascending, and the page of each; `load_sorted` takes them back."""
        self._merge_new()
        return {"keys": self._keys, "pages": self._pages}

    def load_sorted(self, keys: NDArray[np.uint64], pages: NDArray[np.int32]) -> None:
        """Become what `arrays` was taken of; the arrays are kept."""
        self._keys, self._pages, self._new = keys, pages, {}

    def add(self, fingerprint: bytes, page: int) -> None:
        """Add one page, or give a known fingerprint to another page."""
        key = int.from_bytes(fingerprint[:8], "big")
        position = self._position(key)
        if position >= 0:
            self._pages[position] = page
            return
        self._new[key] = page
        if len(self._new) > max(_MERGE_AT_LEAST, _MERGE_SHARE * len(self._keys)):
            self._merge_new()

    def discard(self, pages: NDArray[np.integer]) -> None:
        """Forget the fingerprints of some pages; O(n)."""
        gone = set(pages.tolist())
        self._new = {key: page for key, page in self._new.items() if page not in gone}
        self._pages = np.where(np.isin(self._pages, pages), np.int32(-1), self._pages)

    def page(self, fingerprint: bytes) -> int:
        """Return the page with this request fingerprint, or -1."""
        key = int.from_bytes(fingerprint[:8], "big")
        page = self._new.get(key)
        if page is not None:
            return page
        position = self._position(key)
        return int(self._pages[position]) if position >= 0 else -1

    def _position(self, key: int) -> int:
        keys = self._keys
        position = int(keys.searchsorted(np.uint64(key)))
        return position if position < len(keys) and int(keys[position]) == key else -1

    def _merge_new(self) -> None:
        if self._new:
            keys = np.fromiter(self._new.keys(), np.uint64, len(self._new))
            self._merge(keys, np.fromiter(self._new.values(), np.int32, len(self._new)))
            self._new = {}

    def _merge(self, keys: NDArray[np.uint64], pages: NDArray[np.int32]) -> None:
        # New arrays are made and then put in place: a reader in another thread sees the old ones or the new ones.
        if len(self._keys):
            kept = self._pages >= 0
            keys = np.concatenate([self._keys[kept], keys])
            pages = np.concatenate([self._pages[kept], pages])
        order = np.argsort(keys, kind="stable")
        self._keys, self._pages = keys[order], pages[order]
