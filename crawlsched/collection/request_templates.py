"""Request templates: what a spider's first request for a page carried, kept as data and made into requests again."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from scrapy import Request, Spider
from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

__all__ = ["RequestTemplate", "build_request", "template_of"]

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
_KEPT_META = frozenset({"crawlsched_recipe"})
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
}


class RequestTemplate:
    """What all dispatches of a page's request have in common, without its URL.

    Attributes
    ----------
    digest : bytes
        16 bytes that name the template; pages with equal templates share one row in the store.
    data : dict
        JSON-able.
    """

    __slots__ = ("data", "digest")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        self.digest = blake2b(text.encode(), digest_size=16, person=b"crawlsched-templ").digest()


def template_of(request: Request, spider: Spider) -> RequestTemplate | None:
    """Return what has to be kept of a spider's request so that it can be made again; None for a plain one.

    Parameters
    ----------
    request : scrapy.Request
        A request as the spider made it, before it was dispatched.
    spider : scrapy.Spider
        Owns the callback and errback.

    Raises
    ------
    ValueError
        If something in the request cannot be kept as data: a callback that is not a method of the spider, or a meta
        or cb_kwargs value that JSON would not give back as it was.
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
    for name in ("cookies", "cb_kwargs", "meta", "flags"):
        if name in data:
            _check_json(name, data[name])
    return RequestTemplate(data) if data else None


def build_request(url: str, data: Mapping[str, Any] | None, spider: Spider) -> Request:
    """Make the request of a page.

    Parameters
    ----------
    url : str
        The page's URL.
    data : mapping or None
        A template's data; None for a plain request.
    spider : scrapy.Spider
        Owns the callback and errback.

    Raises
    ------
    ValueError
        If the spider no longer has the callback or errback that the template names.
    """
    if not data:
        return Request(url)
    # A copy, because callbacks may change what they are given and the kept template must not change with it.
    attributes: dict[str, Any] = {"url": url, **copy.deepcopy(dict(data))}
    attributes.update(attributes.pop("more", {}))
    if "class" in attributes:
        attributes["_class"] = _request_class(attributes.pop("class"))
    if "headers" in attributes:
        attributes["headers"] = _headers_from_text(attributes["headers"])
    return request_from_dict(attributes, spider=spider)


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


def _check_json(name: str, value: Any) -> None:
    try:
        kept = json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError):
        kept = False
    if not kept:
        raise ValueError(
            f"request.{name} holds {_short(value)}, which JSON does not give back as it was; use text, numbers, "
            "booleans, None, lists and dictionaries with text keys, so that the request can be made again later."
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
