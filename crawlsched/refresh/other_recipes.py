"""Other recipes: how many pages were last read by a recipe that is none of this crawl's, as after an upgrade."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from crawlsched.collection.side_thread import Aside
from crawlsched.content.reading import is_current
from crawlsched.content.recipe_choice import Recipes
from crawlsched.store import Store

__all__ = ["OtherRecipes"]

logger = logging.getLogger(__name__)

# Pages that are counted at once: 12 MB in SQLite, and a tenth of a second in which the heartbeat waits, and what reads
# ahead.
_COUNTED_AT_ONCE = 250_000


class OtherRecipes:
    """Say at the start how many pages take a new baseline.

    All pages are counted, so this is done aside, and only where the recipes are not those of the last crawl, or pages
    were left then.

    Parameters
    ----------
    recipes : Recipes
        Those of this crawl.
    last : object
        What `status` gave at the end of the last crawl; anything else where there was none.

    Examples
    --------
    >>> from crawlsched.settings import Settings
    >>> other = OtherRecipes(Recipes(Settings.from_scrapy({})), None)
    >>> other.may_be, other.n_of({"blocks/4": 7, "blocks/5": 2, "blocks/5/clipped": 1})
    (True, 7)
    """

    def __init__(self, recipes: Recipes, last: object) -> None:
        self._recipes = recipes.all()
        self._ids = [recipe.id for recipe in self._recipes]
        last = last if isinstance(last, Mapping) else {}
        #: How many were counted; None: they were not, or not yet.
        self.n: int | None = 0 if last.get("ids") == self._ids and last.get("others") == 0 else None

    @property
    def may_be(self) -> bool:
        """Whether there may be any."""
        return self.n is None

    def n_of(self, counts: Mapping[str, int]) -> int:
        """Return how many of the pages, counted by the recipe that they were read by, were read by another one."""
        return sum(n for kept, n in counts.items() if not any(is_current(kept, recipe) for recipe in self._recipes))

    def count(self, aside: Aside, store: Store) -> None:
        """Count them beside the crawling thread, part by part, and log how many there are."""
        n_pages = store.reader.next_page()

        def count_from(first: int, n_before: int) -> None:
            part = range(first, min(first + _COUNTED_AT_ONCE, n_pages))

            def counted(counts: Mapping[str, int]) -> None:
                n = n_before + self.n_of(counts)
                if part.stop < n_pages:
                    count_from(part.stop, n)
                else:
                    self._say(n)

            aside.run("counting recipes", lambda: store.reader.recipes(part), counted)

        count_from(0, 0)

    def _say(self, n: int) -> None:
        self.n = n
        if n:
            logger.warning(
                "%d page(s) were last read by another recipe (CRAWLSCHED_FINGERPRINT, or an earlier version): each "
                "takes a new baseline at its next visit and is not delivered then, and `crawlsched withheld --reason "
                "recipe` lists it; `crawlsched recrawl --all` delivers them all.",
                n,
            )

    def status(self) -> dict[str, Any]:
        """Return what the next crawl has to know."""
        return {"ids": self._ids, "others": self.n}
