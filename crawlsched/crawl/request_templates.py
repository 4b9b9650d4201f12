"""Request templates: the data of a spider's newest request for a page, stored and made into requests again."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Mapping
from enum import Enum
from hashlib import blake2b
from pkgutil import resolve_name
from types import NoneType
from typing import Any

from itemadapter import ItemAdapter, is_item
from scrapy import Request, Spider
from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

__all__ = [
    "LEFT_OUT",
    "RequestTemplate",
    "build_request",
    "handed",
    "has_credentials",
    "meta_of",
    "request_digest",
    "template_of",
    "without_credentials",
]

# Keys that Scrapy and this add-on write into meta for one dispatch; they say nothing about the page.
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
# Keys whose values describe a link to the page, and not the page itself.
_PLACE_META = frozenset({"depth", "link_text"})
# The number of bits in a digest for all attributes of a template except `meta` and `cb_kwargs`.
_OTHERS = 39
# Headers that Scrapy's middlewares add to a sent request. A request made of a sent request has them, too.
_ADDED_WHEN_SENT = frozenset(
    {
        *("accept", "accept-encoding", "accept-language", "authorization", "cookie", "if-modified-since"),
        *("if-none-match", "proxy-authorization", "user-agent"),
    }
)
# Default values of a request, which need not be written down.
_PLAIN_REQUEST = Request("data:,").to_dict()

# Matches URLs that Scrapy would not change.
_needs_no_escaping = re.compile(
    r"https?://[a-z0-9.-]{1,60}(:[1-9][0-9]{0,4})?/[\w.~/-]*(\?[\w.~/=&-]+)?", re.ASCII
).fullmatch


class RequestTemplate:
    """What all requests for a page have in common, without the URL; equal templates share a row in the store."""

    __slots__ = ("data", "digest")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.digest = blake2b(_text(data), digest_size=16, person=b"crawlsched-templ").digest()


def request_digest(data: Mapping[str, Any] | None) -> int:
    """Return eight bytes, never 0, by which templates are compared; None is the template of a plain request.

    >>> kept, asked = request_digest({"meta": {"price": 10}}), request_digest({"meta": {"price": 12}})
    >>> other = request_digest({"meta": {"price": 10}, "callback": "look"})
    >>> kept == asked, handed(kept) == handed(asked), kept == other, handed(kept) == handed(other)
    (False, False, False, True)
    """
    data = data or {}
    meta = {name: value for name, value in data.get("meta", {}).items() if name not in _PLACE_META}
    with_it = {name: value for name, value in (("meta", meta), ("cb_kwargs", data.get("cb_kwargs"))) if value}
    apart = "meta", "cb_kwargs", "headers", "dont_filter"
    others = {name: value for name, value in data.items() if name not in apart}
    if headers := [pair for pair in data.get("headers", []) if pair[0].lower() != "referer"]:
        others["headers"] = headers
    return _bits(with_it, 24) << _OTHERS | _bits(others, _OTHERS - 1) << 1 | 1


def handed(digest: int) -> int:
    """Return the part of a digest for `meta` and `cb_kwargs`: the data that the callback gets with the response."""
    return digest >> _OTHERS


def _bits(value: Any, n: int) -> int:
    return int.from_bytes(blake2b(_text(value), digest_size=8).digest(), "big") >> 64 - n if value else 0


def _text(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def meta_of(template: RequestTemplate | None) -> dict[str, Any]:
    """Return the meta that a template's requests carry."""
    return {} if template is None else dict(_from_kept(template.data.get("meta", {})))


def template_of(request: Request, spider: Spider, *, was_sent: bool = False) -> RequestTemplate | None:
    """Return the data from which a spider's request can be made again; None for a plain request.

    If the request was made of a sent request (`was_sent`), the headers that middlewares added are left out. Data that
    cannot be stored raise ValueError.
    """
    attributes = request.to_dict(spider=spider)
    attributes["meta"] = {key: value for key, value in attributes["meta"].items() if not _is_passing(key)}
    del attributes["url"], attributes["body"]
    data = {name: value for name, value in attributes.items() if value not in (_PLAIN_REQUEST.get(name), None)}
    if "headers" in data:
        data["headers"] = _headers_to_text(data["headers"])
        if was_sent:
            data["headers"] = [pair for pair in data["headers"] if pair[0].lower() not in _ADDED_WHEN_SENT]
    for name in ("cookies", "cb_kwargs", "meta", "flags"):
        if name in data:
            try:
                data[name] = _to_kept(data[name])
            except ValueError as error:
                raise ValueError(f"request.{name} holds what cannot be kept: {error}.") from None
    return RequestTemplate(data) if data else None


def build_request(url: str, data: Mapping[str, Any] | None, spider: Spider) -> Request:
    """Make the request of a page; raise ValueError if the spider lacks the callback or errback that `data` names."""
    if not data:
        return _plain_request(url)
    # The data are copied, since callbacks may change their arguments, and the template must stay the same.
    attributes: dict[str, Any] = {"url": url, **copy.deepcopy(dict(data))}
    if "_class" in attributes:
        _check_class(attributes["_class"])
    if "headers" in attributes:
        attributes["headers"] = [[text.encode("latin-1") for text in pair] for pair in attributes["headers"]]
    for name in ("cookies", "cb_kwargs", "meta", "flags"):
        if name in attributes:
            attributes[name] = _from_kept(attributes[name])
    return request_from_dict(attributes, spider=spider)


def _plain_request(url: str) -> Request:
    """Return `Request(url)`; if nothing in the URL needs escaping, this takes half the time of `Request(url)`."""
    if not _needs_no_escaping(url):
        return Request(url)
    request = Request(url, meta={"verbatim_url": True})
    del request.meta["verbatim_url"]
    return request


def _is_passing(key: Any) -> bool:
    # The page's later visits need its recipe, too.
    return key in _PASSING_META or (str(key).startswith(_OWN_META) and key != "crawlsched_recipe")


def _check_class(path: str) -> None:
    # The path comes from a database, so only classes of requests are allowed.
    loaded = load_object(path)
    if not (isinstance(loaded, type) and issubclass(loaded, Request)):
        raise ValueError(f"A request template names the class {path!r}, which is not a scrapy.Request.")


def _headers_to_text(headers: Mapping[bytes, list[bytes]]) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, values in headers.items() for value in values]


# An item is written as {_TAG: "item", "class": its path, "value": its fields}.
_TAG = "$crawlsched"


def _to_kept(value: Any) -> Any:
    """Return a value as JSON from which `_from_kept` makes an equal value, or raise ValueError.

    The value may consist of JSON's types and of items: `scrapy.Item`, dataclasses, attrs and pydantic classes that can
    be imported. Other values, such as a tuple, would be read back as another type.
    """
    kind = type(value)
    if kind in (int, bool, NoneType) or (kind is float and math.isfinite(value)):
        return value
    if isinstance(value, str) and not isinstance(value, Enum):  # for example lxml's strings, such as the text of a link
        return str.__str__(value)
    if kind is list:
        return [_to_kept(one) for one in value]
    if kind is dict and _TAG not in value and all(type(key) is str for key in value):
        return {key: _to_kept(one) for key, one in value.items()}
    if not is_item(value) or isinstance(value, dict):
        raise ValueError(f"{value!r:.100} is neither JSON nor an item")
    fields = {name: _to_kept(one) for name, one in ItemAdapter(value).items()}
    kept = {_TAG: "item", "class": f"{kind.__module__}:{kind.__qualname__}", "value": fields}
    if (made := _from_kept(kept)) != value or type(made) is not kind:
        raise ValueError(f"{value!r:.100} cannot be made again from its fields")
    return kept


def _from_kept(value: Any) -> Any:
    """Return the value that `_to_kept` has written; ValueError if an item's class is gone or has other fields now."""
    if isinstance(value, list):
        return [_from_kept(one) for one in value]
    if not isinstance(value, dict):
        return value
    if _TAG not in value:
        return {key: _from_kept(one) for key, one in value.items()}
    path = str(value.get("class"))
    try:
        kind = resolve_name(path)
        # The path may come from a database, so only classes of items are allowed.
        if not ItemAdapter.is_item_class(kind) or issubclass(kind, dict):
            raise TypeError("it is no item")
        return kind(**_from_kept(value["value"]))
    except Exception as error:  # errors of the import, or of the item's class
        raise ValueError(f"The item {path} in meta or cb_kwargs cannot be made again: {error}") from error


_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
#: A key in place of credentials that were struck out, so that the request is never sent without them.
LEFT_OUT = "credentials_left_out"


def has_credentials(data: Mapping[str, Any]) -> bool:
    """Whether a template's data carry cookies or Authorization headers."""
    return bool(data.get("cookies")) or any(str(name).lower() in _HEADERS for name, _ in data.get("headers") or ())


def without_credentials(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a template's data without possible credentials; None if the data carry no credentials.

    >>> without_credentials({"headers": [["Authorization", "Bearer x"]], "callback": "parse"})
    {'callback': 'parse', 'credentials_left_out': True}
    >>> without_credentials({"callback": "parse"})
    """
    if not has_credentials(data):
        return None
    return {**{name: kept for name, kept in data.items() if name not in ("cookies", "headers")}, LEFT_OUT: True}
