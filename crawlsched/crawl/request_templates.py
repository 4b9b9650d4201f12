"""Request templates: what a spider's newest request for a page carried, kept as data and made into requests again."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from scrapy import Request, Spider
from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

from crawlsched.crawl.kept_values import from_kept, to_kept

__all__ = ["RequestDigest", "RequestTemplate", "build_request", "template_of"]

# What Scrapy and this add-on write into meta while a request is on its way; it describes one dispatch, not the page.
_PASSING_META = frozenset(
    {
        "download_latency",
        "redirect_reasons",
        "redirect_times",
        "redirect_ttl",
        "redirect_urls",
        "retry_times",
        "is_start_request",
        "_auth_proxy",
        "_scheme_proxy",
    }
)
_OWN_META = "crawlsched_"
# What a page's later visits have to know, too.
_KEPT_META = frozenset({"crawlsched_page", "crawlsched_recipe"})
# What differs between the links to a page, and says where a link stands and nothing about the page.
PLACE_META = frozenset({"depth", "link_text"})
_PLACE_HEADER = "referer"
# What is handed along with a request.
_HANDED = ("meta", "cb_kwargs")
# What Scrapy's middlewares add to a request when it is sent; a request made of one that was sent has it, too.
_ADDED_WHEN_SENT = frozenset(
    {
        *("accept", "accept-encoding", "accept-language", "authorization", "cookie", "if-modified-since"),
        *("if-none-match", "proxy-authorization", "user-agent"),
    }
)
# Attributes of a request that a page's template keeps, with the values that need not be written down.
_KEPT: dict[str, Any] = {
    "callback": None,
    "errback": None,
    "method": "GET",
    "headers": {},
    "cookies": {},
    "cb_kwargs": {},
    "meta": {},
    "flags": [],
    "encoding": "utf-8",
    "dont_filter": False,
    "priority": 0,
}


# URLs that Scrapy would leave as they are.
_needs_no_escaping = re.compile(
    r"https?://[a-z0-9.-]{1,60}(:[1-9][0-9]{0,4})?/[\w.~/-]*(\?[\w.~/=&-]+)?", re.ASCII
).fullmatch


class RequestTemplate:
    """What all dispatches of a page's request have in common, without its URL; equal ones share a row in the store."""

    __slots__ = ("data", "digest")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.digest = blake2b(_text(data), digest_size=16, person=b"crawlsched-templ").digest()


class RequestDigest(int):
    """Eight bytes that tell whether a request is as the one before, and whether it hands on other data.

    >>> kept, asked = RequestDigest.of({"meta": {"price": 10}}), RequestDigest.of({"meta": {"price": 12}})
    >>> other = RequestDigest.of({"meta": {"price": 10}, "callback": "look"})
    >>> kept == asked, kept.handed == asked.handed, kept == other, kept.handed == other.handed
    (False, False, False, True)
    """

    @classmethod
    def of(cls, data: Mapping[str, Any] | None) -> RequestDigest:
        """Return the digest of a template's data; None: of a plain request."""
        data = data or {}
        meta = {name: value for name, value in data.get("meta", {}).items() if name not in PLACE_META}
        handed = {name: value for name, value in (("meta", meta), ("cb_kwargs", data.get("cb_kwargs"))) if value}
        others = {name: value for name, value in data.items() if name not in (*_HANDED, "headers", "dont_filter")}
        if headers := [pair for pair in data.get("headers", []) if pair[0].lower() != _PLACE_HEADER]:
            others["headers"] = headers
        # Never 0, which stands for a digest that is not known.
        return cls(_bits(handed, 24) << 39 | _bits(others, 38) << 1 | 1)

    @property
    def named(self) -> int:
        """Callback, headers, cookies and all else that does not differ from link to link."""
        return self & (1 << 39) - 1

    @property
    def handed(self) -> int:
        """`meta` and `cb_kwargs`: what the callback gets beside the page."""
        return self >> 39


def _bits(value: Any, n: int) -> int:
    return int.from_bytes(blake2b(_text(value), digest_size=8).digest(), "big") >> 64 - n if value else 0


def _text(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def template_of(request: Request, spider: Spider, *, was_sent: bool = False) -> RequestTemplate | None:
    """Return what has to be kept of a spider's request so that it can be made again; None for a plain one.

    A request made of one that was sent (`was_sent`: `response.request.replace()`) has headers that belong to the
    other's way. Something that cannot be kept as data raises ValueError.
    """
    if _is_plain(request):
        return None
    attributes = request.to_dict(spider=spider)
    attributes["meta"] = {key: value for key, value in attributes["meta"].items() if not _is_passing(key)}
    data = {name: attributes[name] for name, plain in _KEPT.items() if attributes.get(name) not in (plain, None)}
    if "_class" in attributes:
        data["class"] = attributes["_class"]
        data["more"] = {
            name: attributes[name]
            for name in getattr(type(request), "attributes", ())
            if name in attributes and name not in _KEPT and name not in {"url", "body", "priority"}
        }
    if "headers" in data:
        data["headers"] = _headers_to_text(data["headers"])
        if was_sent:
            data["headers"] = [pair for pair in data["headers"] if pair[0].lower() not in _ADDED_WHEN_SENT]
    for name in ("cookies", "cb_kwargs", "meta", "flags"):
        if name in data:
            try:
                data[name] = to_kept(data[name])
            except ValueError as error:
                raise ValueError(f"request.{name} holds what cannot be kept: {error}.") from None
    return RequestTemplate(data) if data else None


def build_request(url: str, data: Mapping[str, Any] | None, spider: Spider) -> Request:
    """Make the request of a page; ValueError if the spider has lost the callback or errback that `data` names."""
    if not data:
        return _plain_request(url)
    # A copy, because callbacks may change what they are given and the kept template must not change with it.
    attributes: dict[str, Any] = {"url": url, **copy.deepcopy(dict(data))}
    attributes.update(attributes.pop("more", {}))
    if "class" in attributes:
        attributes["_class"] = _request_class(attributes.pop("class"))
    if "headers" in attributes:
        attributes["headers"] = _headers_from_text(attributes["headers"])
    for name in ("cookies", "cb_kwargs", "meta", "flags"):
        if name in attributes:
            attributes[name] = from_kept(attributes[name])
    return request_from_dict(attributes, spider=spider)


def _plain_request(url: str) -> Request:
    """Return `Request(url)`, in half the time where nothing in the URL needs escaping: each slot makes one."""
    if not _needs_no_escaping(url):
        return Request(url)
    request = Request(url, meta={"verbatim_url": True})
    del request.meta["verbatim_url"]
    return request


def _is_plain(request: Request) -> bool:
    # Most pages of most crawls: this must be quick.
    return (
        type(request) is Request
        and request.callback is None
        and request.errback is None
        and request.method == "GET"
        and not request.headers
        and not request.cookies
        and not request.cb_kwargs
        and not request.flags
        and not request.dont_filter
        and request.priority == 0
        and request.encoding == "utf-8"
        and all(_is_passing(key) for key in request.meta)
    )


def _is_passing(key: Any) -> bool:
    return key in _PASSING_META or (str(key).startswith(_OWN_META) and key not in _KEPT_META)


def _request_class(path: str) -> str:
    # The path comes from a database; only what is a request may be made of it.
    loaded = load_object(path)
    if not (isinstance(loaded, type) and issubclass(loaded, Request)):
        raise ValueError(f"A request template names the class {path!r}, which is not a scrapy.Request.")
    return path


def _headers_to_text(headers: Mapping[bytes, list[bytes]]) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, values in headers.items() for value in values]


def _headers_from_text(headers: list[list[str]]) -> dict[bytes, list[bytes]]:
    restored: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        restored.setdefault(name.encode("latin-1"), []).append(value.encode("latin-1"))
    return restored
