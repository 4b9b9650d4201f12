"""The noise masks in memory: what was learned about the templates that are likely to be needed next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from crawlsched.change_detection import NoiseMask, PageBlocks, template_of

__all__ = ["NoiseMasks"]

# Where a folder has more different names than this, they are no templates but pages: /wiki/Tea, /wiki/Milk.
_MOST_NAMES = 4
# Masks that a template had before: pages which were seen by one of them can still be compared.
_MOST_EARLIER = 4


class NoiseMasks:
    """One mask for each site template, shared by its pages.

    A mask that is given out never changes: learning makes another one, which takes its place. So any thread may read
    one at any time, and its rules and their id always belong together.

    Parameters
    ----------
    read : callable
        ``read(template)`` gives the data of a mask that is kept in the store, or None.
    templates : iterable of str
        The templates that have a mask in the store.
    limit : int
        So many masks stay in memory, and those that are newer than the store.

    Examples
    --------
    >>> masks = NoiseMasks(read=lambda template: None)
    >>> template, mask = masks.of("https://example.com/news/2026/tea-is-back")
    >>> template, mask.n_probes
    ('example.com/news/#/*', 0)
    """

    def __init__(
        self, read: Callable[[str], Mapping[str, Any] | None], templates: Iterable[str] = (), limit: int = 20_000
    ) -> None:
        self._read = read
        self._limit = limit
        self._masks: dict[str, NoiseMask] = {}
        self._earlier: dict[str, dict[str, NoiseMask]] = {}  # by the id of their rules
        self._pinned: dict[str, int] = {}  # template to the number of the batch that carries its mask
        self._known: set[str] = set()
        self._stored = set(templates)
        self._names: dict[str, int] = {}  # how many templates each folder has
        self._changing = threading.Lock()
        self._learning = threading.Lock()
        for template in self._stored:
            self._count(template)

    def __len__(self) -> int:
        return len(self._masks)

    def of(self, url: str) -> tuple[str, NoiseMask]:
        """Return the template of a URL, and its mask."""
        template = template_of(url)
        with self._changing:
            if template not in self._known:
                folder = template.rpartition("/")[0]
                if self._names.get(folder, 0) >= _MOST_NAMES:
                    template = f"{folder}/*"
                self._count(template)
            mask = self._masks.get(template)
        if mask is None:
            data = self._read(template) if template in self._stored else None
            mask = NoiseMask() if data is None else NoiseMask.from_dict(data)
            with self._changing:
                mask = self._masks.setdefault(template, mask)
                self._shrink()
        return template, mask

    def learn(self, template: str, fetches: Sequence[PageBlocks]) -> tuple[NoiseMask, bool]:
        """Learn from fetches of one page, seconds apart.

        Returns
        -------
        NoiseMask
            The mask that is in force from now on.
        bool
            Whether there was noise that was not known.
        """
        with self._learning:  # one after the other, or one would learn nothing of what the other did
            mask = self._masks.get(template)
            before = NoiseMask() if mask is None else mask
            mask = before.copy()
            is_surprised = mask.learn(fetches)
            with self._changing:
                if mask.rules_id != before.rules_id:
                    earlier = self._earlier.setdefault(template, {})
                    earlier[before.rules_id] = before
                    if len(earlier) > _MOST_EARLIER:
                        del earlier[next(iter(earlier))]
                self._masks.pop(template, None)  # so that it becomes the youngest
                self._masks[template] = mask
        return mask, is_surprised

    def earlier(self, template: str, rules_id: str) -> NoiseMask | None:
        """Return the mask that had these rules; None if that is too long ago, or was before this process began."""
        return self._earlier.get(template, {}).get(rules_id)

    def save(self, template: str, batch: int) -> Mapping[str, Any]:
        """Return a mask as data; it stays in memory until the batch that carries it has been written."""
        self._pinned[template] = batch
        self._stored.add(template)
        return self._masks[template].to_dict()

    def written(self, batch: int) -> None:
        """All batches up to this one are in the store."""
        self._pinned = {template: carrier for template, carrier in self._pinned.items() if carrier > batch}

    def _count(self, template: str) -> None:
        if template not in self._known:
            self._known.add(template)
            folder = template.rpartition("/")[0]
            self._names[folder] = self._names.get(folder, 0) + 1

    def _shrink(self) -> None:
        excess = len(self._masks) - self._limit
        for template in list(self._masks)[: max(excess, 0)]:
            if template not in self._pinned:
                del self._masks[template]
                self._earlier.pop(template, None)
