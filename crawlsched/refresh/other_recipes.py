"""Other recipes: how many pages were last read by a recipe that is none of this crawl's, as after an upgrade."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from crawlsched.collection.shard import Shard
from crawlsched.collection.side_thread import Aside
from crawlsched.content.reading import is_current
from crawlsched.content.recipe_choice import Recipes

__all__ = ["OtherRecipes"]

logger = logging.getLogger(__name__)

# Pages that are counted at once: 12 MB in SQLite, and a tenth of a second in which the heartbeat waits, and what reads
# ahead.
_COUNTED_AT_ONCE = 250_000


class OtherRecipes:
    """Say at the start how many pages take a new baseline.

    All pages of a shard are counted, so this is done aside, and only where the recipes are not those of its last owner,
    or pages were left then.

    Parameters
    ----------
    recipes : Recipes
        Those of this crawl.

    Examples
    --------
    >>> from crawlsched.settings import Settings
    >>> OtherRecipes(Recipes(Settings.from_scrapy({}))).n_of({"blocks/4": 7, "blocks/6": 2, "blocks/6/clipped": 1})
    7
    """

    def __init__(self, recipes: Recipes) -> None:
        self._recipes = recipes.all()
        self._ids = [recipe.id for recipe in self._recipes]
        # By shard, how many were counted; None: they were not yet.
        self._n: dict[int, int | None] = {}

    def n_of(self, counts: Mapping[str, int]) -> int:
        """Return how many of the pages, counted by the recipe that they were read by, were read by another one."""
        return sum(n for kept, n in counts.items() if not any(is_current(kept, recipe) for recipe in self._recipes))

    def look_at(self, shard: Shard, aside: Aside) -> None:
        """Count those of a shard that has come beside the crawling thread, part by part; log how many there are."""
        last = shard.last_status.get("recipes")
        last = last if isinstance(last, Mapping) else {}
        if last.get("ids") == self._ids and last.get("others") == 0:
            self._n[shard.number] = 0
            return
        self._n[shard.number], n_pages = None, shard.next_page

        def count_from(first: int, n_before: int) -> None:
            part = range(first, min(first + _COUNTED_AT_ONCE, n_pages))

            def counted(counts: Mapping[str, int]) -> None:
                n = n_before + self.n_of(counts)
                if part.stop < n_pages:
                    count_from(part.stop, n)
                else:
                    self._say(shard, n)

            aside.run(f"counting recipes ({shard.number})", lambda: shard.store.reader.recipes(part), counted)

        count_from(0, 0)

    def _say(self, shard: Shard, n: int) -> None:
        self._n[shard.number] = n
        if n:
            logger.warning(
                "%d page(s) were last read by another recipe (CRAWLSCHED_FINGERPRINT, or an earlier version): each "
                "takes a new baseline at its next visit and is not delivered then, and `crawlsched withheld --reason "
                "recipe` lists it; `crawlsched recrawl --all` delivers them all.",
                n,
            )

    def status(self, shard: int) -> dict[str, Any]:
        """Return what the next owner of a shard has to know."""
        return {"ids": self._ids, "others": self._n.get(shard)}
