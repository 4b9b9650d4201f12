"""Request templates: what a spider's request carried comes back as it was."""

import dataclasses
import json
from collections import Counter, deque
from datetime import date
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st
from scrapy import FormRequest, Request, Spider
from scrapy.http import JsonRequest

from crawlsched.crawl.request_templates import build_request, handed, request_digest, template_of


class _Spider(Spider):
    name = "kept"

    def parse_item(self, response, **kwargs):  # type: ignore[no-untyped-def]
        pass

    def failed(self, failure):  # type: ignore[no-untyped-def]
        pass


@pytest.fixture
def spider() -> _Spider:
    return _Spider()


def again(request: Request, spider: _Spider) -> Request:
    """Return what becomes of a request that is written down as JSON and made again."""
    template = template_of(request, spider)
    return build_request("http://a/", json.loads(json.dumps(template.data)), spider)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.from_regex(r"https?://[a-zA-Z0-9.-]{1,70}(:[0-9]{0,5})?/[\w.~/%é #-]*(\?[\w.~/=&+ -]*)?\n?", fullmatch=True))
def test_the_url_of_a_plain_request_is_what_scrapy_makes_of_it(url):
    """Where nothing needs escaping Scrapy is not asked, and does not see that it was not."""
    try:
        expected = Request(url)
    except ValueError:
        return
    made = build_request(url, None, Spider("s"))
    assert (made.url, made.meta) == (expected.url, {})


@given(
    meta=st.dictionaries(st.text(max_size=6), _JSON, max_size=3),
    cb_kwargs=st.dictionaries(st.text(max_size=6), _JSON, max_size=3),
)
def test_everything_comes_back_through_json(meta: dict[str, object], cb_kwargs: dict[str, object]) -> None:
    """Callback, errback, headers, cookies, cb_kwargs, meta and flags survive being written down."""
    spider = _Spider()
    request = Request(
        "http://a/",
        callback=spider.parse_item,
        errback=spider.failed,
        headers={"X-Kept": ["one", "two"], "Accept": "text/html"},
        cookies={"session": "abc"},
        cb_kwargs=cb_kwargs,
        meta=meta,
        flags=["kept"],
    )
    made = again(request, spider)
    for name in ("callback", "errback", "headers", "cookies", "cb_kwargs", "flags", "method"):
        assert getattr(request, name) == getattr(made, name)
    assert {k: v for k, v in meta.items() if not k.startswith("crawlsched_")} == made.meta


def test_what_describes_one_dispatch_is_not_kept(spider: _Spider) -> None:
    """Redirects, retries, our own marks and the headers of middlewares belong to a visit, not to the page."""
    meta = {"retry_times": 1, "redirect_urls": ["x"], "crawlsched_visit": 7, "category": "news"}
    sent = Request("http://a/", meta=meta, headers={"User-Agent": "x", "Cookie": "a=b", "X-Own": "1"})
    kept = template_of(sent, spider, was_sent=True)
    assert kept.data == {"meta": {"category": "news"}, "headers": [["X-Own", "1"]]}


def test_other_request_classes_come_back_as_such(spider: _Spider) -> None:
    """A subclass of Request is made again, with its own attributes."""
    request = JsonRequest("http://a/", method="GET", dumps_kwargs={"sort_keys": True})
    made = again(request, spider)
    assert isinstance(made, JsonRequest)
    assert made.dumps_kwargs == {"sort_keys": True}
    assert isinstance(again(FormRequest("http://a/", method="GET"), spider), FormRequest)


POPEN = {"$crawlsched": "item", "class": "subprocess:Popen", "value": {"args": "true"}}


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"_class": "os.system"}, r"names the class 'os.system', which is not a scrapy.Request"),
        ({"meta": {"item": POPEN}}, r"subprocess:Popen .* is no item"),
        ({"callback": "parse_old"}, "'parse_old' not found"),
    ],
)
def test_what_stands_in_a_database_cannot_make_this_process_call_anything(spider: _Spider, kept, said: str) -> None:
    """Nothing but requests, items and callbacks of the spider is made of it; one that is gone is named."""
    with pytest.raises(ValueError, match=said):
        build_request("http://a/", kept, spider)


@dataclasses.dataclass
class _Shop:
    name: str
    tags: list[str]


class _Article(scrapy.Item):
    title = scrapy.Field()
    shop = scrapy.Field()


def test_items_come_back_as_they_were(spider: _Spider) -> None:
    """What spiders hand from a list to its detail pages is data, by itemadapter and the class's path."""
    for value in (_Shop("one", ["a"]), [_Article(title="x", shop=_Shop("two", []))]):
        made = again(Request("http://a/", meta={"handed": value}, cb_kwargs={"item": value}), spider)
        for come_back in (made.meta["handed"], made.cb_kwargs["item"]):
            assert come_back == value
            assert type(come_back) is type(value)


class _Text(str):
    """As lxml's, of which the text of a link is."""

    def __str__(self) -> str:
        return self


def test_text_of_another_class_comes_back_as_text(spider: _Spider) -> None:
    """The rules of a CrawlSpider hand on the text of a link as lxml has given it."""
    come_back = again(Request("http://a/", meta={"link_text": _Text("tea")}), spider).meta["link_text"]
    assert (come_back, type(come_back)) == ("tea", str)


class _Point(NamedTuple):
    x: int


class _Size(StrEnum):
    BIG = "big"


@dataclasses.dataclass
class _Changed:
    name: str

    def __post_init__(self) -> None:
        self.name += "!"


def test_what_is_neither_json_nor_an_item_is_refused(spider: _Spider) -> None:
    """It would come back as something else, or not at all; the sentence names it."""

    @dataclasses.dataclass
    class Local:
        name: str

    with pytest.raises(ValueError, match=r"request.cb_kwargs holds what cannot be kept: <built-in function print> is"):
        template_of(Request("http://a/", cb_kwargs={"callback": print}), spider)
    others = ((1, 2), {3: 4}, {4}, {"$crawlsched": "item"}, b"x", float("inf"), date(2026, 1, 2), Decimal("1.10"))
    for value in (*others, Path("a"), _Point(1), _Size.BIG, Counter("tea"), deque([1]), np.int64(3)):
        with pytest.raises(ValueError, match=r"is neither JSON nor an item"):
            template_of(Request("http://a/", meta={"found": value}), spider)
    for value in (Local("x"), _Changed("x")):
        with pytest.raises(ValueError, match=r"made again"):
            template_of(Request("http://a/", meta={"item": value}), spider)


def _digest(spider: _Spider, **request: object) -> int:
    template = template_of(Request("http://a/", **request), spider)  # type: ignore[arg-type]
    return request_digest(template.data if template else None)


def test_the_digest_tells_whether_a_request_hands_on_other_data(spider: _Spider) -> None:
    """Meta and cb_kwargs are handed along; where a link stands is no difference at all."""
    plain = _digest(spider)
    for data in ({"meta": {"price": 1}}, {"cb_kwargs": {"price": 1}}):
        assert handed(_digest(spider, **data)) != handed(plain)
    for named in ({"callback": spider.parse_item}, {"headers": {"A": "b"}}, {"cookies": {"a": "b"}}, {"priority": 1}):
        other = _digest(spider, **named)
        assert (other == plain, handed(other) == handed(plain)) == (False, True)
    place = {"headers": {"Referer": "http://b/"}, "meta": {"depth": 3, "link_text": "here"}, "dont_filter": True}
    assert _digest(spider, **place) == plain
    assert 0 < plain < 2**63
