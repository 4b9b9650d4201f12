"""Variants: several pages of one URL are found by the URL, and each by its own name."""

import hashlib

from crawlsched.pages.page_index import PageIndex
from crawlsched.pages.variants import Variants, asked_variant, variant_fingerprint


def _name(url: str) -> bytes:
    return hashlib.sha1(url.encode()).digest()


def test_all_pages_of_a_url_are_found_whether_or_not_one_is_named_by_it_alone() -> None:
    """In the order in which they came; another URL has none of them."""
    index = PageIndex()
    variants = Variants(index)
    index.add(_name("a"), 0)
    for page in (1, 2):
        variants.add(_name("a"), page)
    variants.add(_name("b"), 3)
    assert [variants.pages(_name(url)) for url in "abc"] == [[0, 1, 2], [3], []]
    assert [variants.n(_name(url)) for url in "abc"] == [2, 1, 0]


def test_loaded_again_they_are_found_again() -> None:
    """From the store."""
    again = Variants(PageIndex())
    again.load([(1, _name("a")), (2, _name("a"))])
    assert again.pages(_name("a")) == [1, 2]


def test_what_names_a_variant() -> None:
    """The spider's own word, or its cookie jar; the jar 0 is one, too."""
    assert asked_variant({"crawlsched_page": "de", "cookiejar": 1}) == "de"
    assert asked_variant({"cookiejar": 0}) == "cookiejar 0"
    names = {variant_fingerprint(_name("a"), variant) for variant in (None, "de", "fr")}
    assert len(names) == 3
    assert all(len(name) == 20 for name in names)
