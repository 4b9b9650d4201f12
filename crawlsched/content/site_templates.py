"""The sites in memory: what is known of the edits of their templates, for those that are likely to be needed next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

from crawlsched.change_detection import (
    EarlierContents,
    Fingerprint,
    LivingBlocks,
    NoiseMask,
    PageBlocks,
    TemplateEdits,
    known_blocks,
)
from crawlsched.store import SITE

__all__ = ["SeenPage", "Sites"]


class SeenPage(NamedTuple):
    """A page, as it was just read.

    Attributes
    ----------
    url, template : str
    recipe : LivingBlocks
        By which it was read.
    blocks : PageBlocks
        What it says.
    """

    url: str
    template: str
    recipe: LivingBlocks
    blocks: PageBlocks

    @property
    def site(self) -> str:
        """Name of what is known of its site: of what the same recipe sees of one host's pages."""
        return f"{SITE}{self.template.partition('/')[0]} {self.recipe.id}"

    @property
    def group(self) -> int:
        """Number of the group of pages that it belongs to: those of one folder."""
        return crc32(self.template.rpartition("/")[0].encode("utf-8", "surrogatepass"))

    @property
    def number(self) -> int:
        """Number of the page."""
        return crc32(self.url.encode("utf-8", "surrogatepass"))


class _Site:
    def __init__(self, edits: TemplateEdits) -> None:
        self.edits = edits
        self.lock = threading.Lock()
        self.n_written = edits.n_learned


class Sites:
    """The `TemplateEdits` of each site, shared by its pages; pages may be read by several threads.

    Parameters
    ----------
    read : callable
        ``read(name)`` gives the data that is kept in the store of a site, or None.
    names : iterable of str
        The sites that have data in the store.
    limit : int
        So many sites stay in memory, and those that are newer than the store. At most 0.5 MB each, 50 KB as a rule.
    """

    def __init__(
        self, read: Callable[[str], Mapping[str, Any] | None], names: Iterable[str] = (), limit: int = 2_000
    ) -> None:
        self._read = read
        self._limit = limit
        self._sites: dict[str, _Site] = {}
        self._stored = set(names)
        self._pinned: dict[str, int] = {}
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._sites)

    def saw(self, page: SeenPage, *, is_first: bool) -> Mapping[str, Any] | None:
        """A page is as it was, or is seen for the first time; return the site's data if it is to be written."""
        site = self._of(page.site)
        with site.lock:
            site.edits.saw(page.number, page.group, page.blocks, is_first=is_first)
            return _to_write(site)

    def explains(
        self, page: SeenPage, mask: NoiseMask, recipe_id: str, digest: bytes, block_sketch: bytes
    ) -> tuple[bool | None, Mapping[str, Any] | None]:
        """Say whether a page that looks changed differs by edits of its template alone.

        Parameters
        ----------
        page : SeenPage
        mask : NoiseMask
            With which it was read before.
        recipe_id : str
            Of the fingerprint that it had then.
        digest : bytes
            The digest of that fingerprint.
        block_sketch : bytes
            The sketch of the blocks that it had.

        Returns
        -------
        bool or None
            As `TemplateEdits.explain` gives it.
        mapping or None
            The site's data, if it is to be written.
        """
        earlier: list[EarlierContents] = []

        def is_as_before(paths: Collection[int], others: PageBlocks) -> bool:
            if not earlier:
                earlier.append(EarlierContents(mask, page.blocks, Fingerprint(recipe_id, digest)))
            return earlier[0].has(paths, others)

        site = self._of(page.site)
        with site.lock:
            explained = site.edits.explain(
                page.number, page.group, page.blocks, is_as_before, partial(known_blocks, block_sketch)
            )
            return explained, _to_write(site)

    def kept(self, name: str, batch: int) -> None:
        """A site's data is carried to the store by this batch; the site stays in memory until it has been written."""
        self._pinned[name] = batch
        self._stored.add(name)

    def written(self, batch: int) -> None:
        """All batches up to this one are in the store."""
        self._pinned = {name: carrier for name, carrier in self._pinned.items() if carrier > batch}

    def _of(self, name: str) -> _Site:
        with self._changing:
            site = self._sites.pop(name, None)
            if site is not None:
                self._sites[name] = site  # the youngest
                return site
        data = self._read(name) if name in self._stored else None
        made = _Site(TemplateEdits() if data is None else TemplateEdits.from_dict(data))
        with self._changing:
            site = self._sites.setdefault(name, made)
            for old in list(self._sites)[: max(len(self._sites) - self._limit, 0)]:
                if old not in self._pinned and old != name:
                    del self._sites[old]
        return site


def _to_write(site: _Site) -> Mapping[str, Any] | None:
    if site.edits.n_learned == site.n_written:
        return None
    site.n_written = site.edits.n_learned
    return site.edits.to_dict()
