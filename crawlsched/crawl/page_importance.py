"""What pages are worth: as a request, a file or a sitemap states it, or by CRAWLSCHED_IMPORTANCE, or 1."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from crawlsched.crawl.collection import Collection
from crawlsched.crawl.shard import Shard

__all__ = ["PageImportance", "checked"]

logger = logging.getLogger(__name__)

# Pages that CRAWLSCHED_IMPORTANCE is asked about between two looks at the clock, and those read for it at once.
_WEIGHED_AT_ONCE = 16
_READ_AT_ONCE = 4_000


class PageImportance:
    """How pages get their importance."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._function = collection.settings.importance
        self._count = collection.count
        # By shard, pages that were stated while `weigh_all` goes on, which may have read them before.
        self._stated_meanwhile: dict[int, set[int]] = {}

    def importance(self, url: str, meta: Mapping[str, Any], importance: float | None) -> float:
        """Return what a fresh copy of a page is worth."""
        if importance is None:
            rule = self._collection.rules.of(url)
            if rule is not None and rule.importance is not None:
                return rule.importance
            importance = self._function(url, meta) if self._function else 1.0
        return checked(importance, url)

    def weigh(self, pages: Sequence[int], importance: Sequence[float], now: float, *, stated: bool = True) -> int:
        """Take over what distinct pages are worth, at once; return how many changed."""
        for meanwhile in self._stated_meanwhile.values() if stated else ():
            meanwhile.update(pages)
        changed = self._collection.set_importance(
            np.array(pages, np.intp), np.array(importance, np.float64), now, stated=stated
        )
        self._count("crawlsched/pages/importance_changed", changed)
        return changed

    def weigh_all(self, shard: Shard, clock: Callable[[], float], add_work: Callable[[Iterator[None]], None]) -> None:
        """Ask CRAWLSCHED_IMPORTANCE about all stored pages without a stated importance, and apply the rules.

        It runs at each start, since nobody can see whether the function has changed. Pages are read beside the crawling
        thread and weighed in slices between the slots; those whose weight stays are not touched.
        """
        collection, rules = self._collection, self._collection.rules
        if self._function is None and not rules:
            return
        stated = self._stated_meanwhile[shard.number] = set[int]()

        def read(after: int) -> None:
            collection.aside.run(
                f"reading pages for CRAWLSCHED_IMPORTANCE ({shard.number})",
                lambda: shard.store.reader.pages_to_weigh(after, _READ_AT_ONCE, stated=bool(rules)),
                lambda found: add_work(weigh(found)),
            )

        def weigh(found: Sequence[tuple[int, str, Mapping[str, Any], bool]]) -> Iterator[None]:
            pages_of = collection.shards.rows_of(shard, [number for number, *_ in found]).tolist()
            rows = [(page, *rest) for page, (_, *rest) in zip(pages_of, found, strict=True) if page >= 0]
            for start in range(0, len(rows), _WEIGHED_AT_ONCE):
                some = rows[start : start + _WEIGHED_AT_ONCE]
                known = [row for row in some if collection.knows(row[0])]
                if (numbers := rules.numbers([row[1] for row in known])) is not None and numbers.any():
                    pages = np.array([row[0] for row in known])[numbers > 0]
                    collection.planner.set_intervals(pages, numbers[numbers > 0], clock())
                open_ones = [row for row in known if not row[3] and row[0] not in stated]
                importance = [self.importance(url, meta, None) for _, url, meta, _ in open_ones]
                if open_ones:
                    self.weigh([row[0] for row in open_ones], importance, clock(), stated=False)
                yield
            if len(found) == _READ_AT_ONCE:
                read(found[-1][0])
            elif self._stated_meanwhile.get(shard.number) is stated:
                del self._stated_meanwhile[shard.number]

        read(-1)


def checked(importance: float, url: str) -> float:
    """Return an importance as a number; 1, with a word in the log, where it is none."""
    try:
        number = float(importance)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0.0 <= number < float("inf"):
        logger.error("The importance of %s is %r; it has to be 0 or more, so it is taken as 1.", url, importance)
        return 1.0
    return number
