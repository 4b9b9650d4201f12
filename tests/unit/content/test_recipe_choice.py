"""Recipes as people write them, and what each kind of document needs."""

from __future__ import annotations

import logging

import pytest

from crawlsched.change_detection import Recipe
from crawlsched.content.kept_texts import packed, unpacked
from crawlsched.crawl.recipe_choice import Recipes
from crawlsched.settings import Settings, recipe_from
from crawlsched.store.forgetting import pattern


def changed(recipe: Recipe, before: str | bytes, after: str | bytes, content_type: str = "text/html") -> bool:
    one, two = (
        recipe.fingerprint(body.encode() if isinstance(body, str) else body, content_type, None, "http://a/")
        for body in (before, after)
    )
    return one != two


def test_every_way_to_write_a_recipe_gives_one() -> None:
    """A name, a function, its import path, a table."""
    assert recipe_from("visible_text").id == "visible_text/5"
    assert recipe_from(len).id.startswith("function/1/builtins.len/")
    assert recipe_from("posixpath.basename").id.startswith("function/1/posixpath.basename/")
    assert recipe_from({"drop": [".ad"]}).id.startswith("blocks/6+parts")
    assert recipe_from({"method": "main_text"}).id.startswith("main_text/2/trafilatura")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("html", r"^a recipe is one of blocks, .+ or the import path of one; got 'html'\.$"),
        ("no_such.module", r"^a recipe is one of .+ of one \(No module named 'no_such'\); got 'no_such\.module'\.$"),
        ({"drops": []}, r"^'drops' is no option of a recipe; options are method, keep, "),
        (7, r"^a recipe is one of .+; got 7\.$"),
    ],
)
def test_what_is_no_recipe_is_said_in_one_sentence(written: object, message: str) -> None:
    """It names what was written and what is allowed."""
    with pytest.raises(ValueError, match=message):
        recipe_from(written)


def test_blocks_can_be_selected() -> None:
    """What is dropped does not count, what is kept does, and the rest is cut into blocks as ever."""
    recipe = recipe_from({"keep": ["main"], "drop": [".ad"]})
    page = "<nav>{}</nav><main><p>{}</p><p class=ad>{}</p></main>"
    assert changed(recipe, page.format(1, 2, 3), page.format(9, 2, 9)) is False
    assert changed(recipe, page.format(1, 2, 3), page.format(1, 9, 3)) is True


@pytest.mark.parametrize("method", ["blocks", "visible_text"])
def test_links_and_images_count_where_they_are_kept(method: str) -> None:
    """A download link that moved is a change for who keeps where links lead."""
    one, two = ('<a href="/1.pdf">Get it</a><img src="/a.png">', '<a href="/2.pdf">Get it</a><img src="/a.png">')
    three = '<a href="/1.pdf">Get it</a><img src="/b.png">'
    kept = ([], ["html", "a::attr(href)"], ["html", "img::attr(src)"])
    plain, links, images = (recipe_from({"method": method, "keep": keep}) for keep in kept)
    assert (changed(plain, one, two), changed(links, one, two), changed(images, one, two)) == (False, True, False)
    assert (changed(plain, one, three), changed(links, one, three), changed(images, one, three)) == (False, False, True)
    assert len({plain.id, links.id, images.id}) == 3


def test_a_wrong_word_of_a_request_is_logged_once_and_does_not_count(caplog: pytest.LogCaptureFixture) -> None:
    """The page goes by the settings."""
    recipes = Recipes(Settings.from_scrapy({"CRAWLSCHED_FINGERPRINT": "raw_bytes"}))
    with caplog.at_level(logging.ERROR):
        assert {recipes.of(f"http://a/{n}", meant={"method": "html"}).id for n in range(3)} == {"raw_bytes/1"}
    assert len(caplog.records) == 1
    assert "meta['crawlsched_recipe'] of http://a/0 is no recipe" in caplog.text


@pytest.mark.parametrize("max_bytes", [1, 20, 200, 10_000])
def test_a_packed_text_never_takes_more_than_it_may(max_bytes: int) -> None:
    """What is left of a text that does not fit is its beginning."""
    text = " ".join(f"wörd{n * n}" for n in range(2_000))
    data = packed(text, max_bytes)
    assert len(data) <= max_bytes
    assert text.startswith(unpacked(data))
    assert max_bytes < 10_000 or unpacked(data) == text


@pytest.mark.parametrize("host", ["bücher.example", "BÜCHER.example", "xn--bcher-kva.example"])
def test_an_international_host_is_known_by_any_of_its_names(host: str) -> None:
    """URLs have the ASCII form; people write the other one."""
    recipes = Recipes(Settings.from_scrapy({"CRAWLSCHED_FINGERPRINTS": {host: "json"}}))
    assert recipes.of("https://xn--bcher-kva.example/tee").id.startswith("json/")


def test_patterns_take_no_longer_for_urls_that_nearly_fit() -> None:
    """However many stars there are: a site that knows them cannot make them slow."""
    url = "http://a.example" + "/a" * 20_000
    assert pattern("*" + "/a*" * 12 + "b").fullmatch(url) is None
    assert pattern("*" + "/a*" * 12 + "/a").fullmatch(url)
    assert pattern("http://*/a*/a").fullmatch(url)
    assert pattern("*a*ab*b").fullmatch("aab") is None
    assert pattern("*a*ab*b").fullmatch("aabab")
