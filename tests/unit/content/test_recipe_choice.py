"""Recipes as people write them, and what each kind of document needs."""

import logging

import pytest

from crawlsched.crawl.recipe_choice import Recipes
from crawlsched.settings import Settings
from crawlsched.store.forgetting import pattern


def test_a_wrong_word_of_a_request_is_logged_once_and_does_not_count(caplog: pytest.LogCaptureFixture) -> None:
    """The page goes by the settings."""
    recipes = Recipes(Settings.from_scrapy({"CRAWLSCHED_FINGERPRINT": "raw_bytes"}))
    with caplog.at_level(logging.ERROR):
        assert {recipes.of(f"http://a/{n}", meant={"method": "html"}).id for n in range(3)} == {"raw_bytes/1"}
    assert len(caplog.records) == 1
    assert "meta['crawlsched_recipe'] of http://a/0 is no recipe" in caplog.text


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
