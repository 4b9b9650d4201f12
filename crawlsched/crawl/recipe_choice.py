"""The recipes of a crawl: which recipe makes the fingerprint of a page's content."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from crawlsched.change_signals import ascii_host
from crawlsched.settings import Settings, recipe_from
from crawlsched.store import host_of
from crawlsched.store.forgetting import pattern

if TYPE_CHECKING:
    from crawlsched.change_detection import Recipe

__all__ = ["Recipes", "matcher", "meant_for"]

logger = logging.getLogger(__name__)


class Recipes:
    """Choose a page's recipe.

    A recipe in the request (``meta["crawlsched_recipe"]``) has precedence. Without it, the first URL pattern or host in
    CRAWLSCHED_FINGERPRINTS that fits decides. If none of them fits, CRAWLSCHED_FINGERPRINT decides.

    Examples
    --------
    >>> chosen = {"*/api/*": "json", "a.example": "raw_bytes"}
    >>> recipes = Recipes(Settings.from_scrapy({"CRAWLSCHED_FINGERPRINTS": chosen}))
    >>> [recipes.of(url).id for url in ("http://a.example/api/1", "http://a.example/", "http://b.example/")]
    ['json/3', 'raw_bytes/1', 'blocks/7']
    >>> recipes.of("http://b.example/", meant="visible_text").id
    'visible_text/5'
    """

    def __init__(self, settings: Settings) -> None:
        self._general = settings.recipe()
        self._special = [(matcher(where), recipe_from(written)) for where, written in settings.fingerprints]
        self._by_request: dict[str, Recipe | None] = {}

    def of(self, url: str, meant: object = None) -> Recipe:
        """Return the recipe of a page; a recipe in its request that `recipe_from` cannot read is logged, once."""
        if meant is not None and (recipe := self._as_meant(url, meant)) is not None:
            return recipe
        return next((recipe for matches, recipe in self._special if matches(url)), self._general)

    def _as_meant(self, url: str, meant: object) -> Recipe | None:
        key = json.dumps(meant, sort_keys=True, default=repr)
        if key not in self._by_request:
            try:
                self._by_request[key] = recipe_from(meant)
            except (ValueError, TypeError) as error:
                logger.error("meta['crawlsched_recipe'] of %s is no recipe, so it does not count: %s", url, error)
                self._by_request[key] = None
        return self._by_request[key]


def meant_for(template: Mapping[str, Any] | None) -> object:
    """Return the recipe in a page's kept request; None if it has none."""
    return (template or {}).get("meta", {}).get("crawlsched_recipe")


def matcher(where: str) -> Callable[[str], object]:
    """Return a function that tests whether a URL fits a pattern (``*`` is any text) or is of a host."""
    if "*" in where or "/" in where:
        return pattern(where).fullmatch
    host = ascii_host(where)
    return lambda url: host_of(url) == host
