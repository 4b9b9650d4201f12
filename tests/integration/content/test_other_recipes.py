"""Other recipes: the pages that were last read by one that is none of this crawl's are counted while it runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crawlsched.collection.shard import Shard
from crawlsched.collection.side_thread import Aside
from crawlsched.content.recipe_choice import Recipes
from crawlsched.refresh import other_recipes
from crawlsched.refresh.other_recipes import OtherRecipes
from crawlsched.settings import Settings
from crawlsched.store import Batch, NewPage, Store

READ_BY = ["blocks/4", "blocks/6", None, "text/1", "blocks/6/clipped", "blocks/4", "blocks/4"]


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Seven pages; the request of the last one names its recipe."""
    opened = Store.open(database_url, "spider", upgrade=True)
    pages = {n: NewPage(n, f"http://a/{n}", "a", n.to_bytes(20, "big"), 1.7e9) for n in range(len(READ_BY))}
    pages[6] = pages[6]._replace(template=b"named")
    contents = {n: {"recipe": recipe} for n, recipe in enumerate(READ_BY) if recipe}
    named = {b"named": {"meta": {"crawlsched_recipe": "blocks"}}, b"other": {"meta": {"depth": 1}}}
    opened.save(Batch(new_pages=pages, contents=contents, templates=named))
    yield opened
    opened.close()


@pytest.mark.parametrize("at_once", [1, 3, 7, 100])
def test_all_are_counted_whatever_the_parts(store: Store, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Not those whose request names a recipe, nor those that were never read."""
    monkeypatch.setattr(other_recipes, "_COUNTED_AT_ONCE", at_once)
    aside, others = Aside(), OtherRecipes(Recipes(Settings.from_scrapy({})))
    others.look_at(Shard(store), aside)
    while aside._running:
        aside.collect()
    assert others.status(0)["others"] == 3
    assert aside.close()


def test_what_comes_meanwhile_does_not_wait_for_all_of_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are read ahead, and heartbeats written, between two parts: SQLite holds only the rows of one in memory."""
    monkeypatch.setattr(other_recipes, "_COUNTED_AT_ONCE", 3)
    aside, others = Aside(), OtherRecipes(Recipes(Settings.from_scrapy({})))
    others.look_at(Shard(store), aside)
    known: list[int | None] = []
    aside.run("a heartbeat", lambda: None, lambda _: known.append(others.status(0)["others"]))
    while aside._running:
        aside.collect()
    assert known == [None]
    assert aside.close()


def test_of_a_store_without_pages_none_is_counted(database_url: str) -> None:
    """And nothing is said of them."""
    store = Store.open(database_url, "empty", upgrade=True)
    aside, others = Aside(), OtherRecipes(Recipes(Settings.from_scrapy({})))
    others.look_at(Shard(store), aside)
    aside.close()
    assert others.status(0)["others"] == 0
    store.close()
