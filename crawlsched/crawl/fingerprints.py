"""The project's request fingerprints, made of URLs without the ignored parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from scrapy import Request
from scrapy.utils.python import global_object_name

__all__ = ["fingerprints", "named", "without_parameters"]


def named(names: Sequence[str]) -> Callable[[str], object]:
    """Return a function that tests whether a parameter (``name=value``) has one of the names; ``*`` is any text.

    >>> fits = named(["sid", "utm_*"])
    >>> [bool(fits(parameter)) for parameter in ("sid=7", "sid", "side=1", "utm_source=x")]
    [True, True, False, True]
    """
    patterns = (".*".join(map(re.escape, name.split("*"))) for name in names)
    return re.compile(f"(?:{'|'.join(patterns)})(?:=.*)?", re.DOTALL).fullmatch


def without_parameters(url: str, fits: Callable[[str], object]) -> str:
    """Return a URL without the parameters of its query that pass a test.

    >>> without_parameters("https://a.example/1?sid=7&b=%20#top", named(["sid"]))
    'https://a.example/1?b=%20#top'
    """
    start, _, fragment = url.partition("#")
    path, mark, query = start.partition("?")
    if not mark:
        return url
    kept = "&".join(parameter for parameter in query.split("&") if not fits(parameter))
    return path + (f"?{kept}" if kept or not query else "") + (f"#{fragment}" if fragment else "")


def fingerprints(fingerprinter: Any, ignored: Sequence[str]) -> tuple[str, Callable[[Request], bytes]]:
    """Return the name of a project's request fingerprints, and the function that makes them.

    >>> from scrapy.utils.request import RequestFingerprinter
    >>> name, fingerprint = fingerprints(RequestFingerprinter(), ["sid"])
    >>> fingerprint(Request("http://a.example/?sid=1")) == fingerprint(Request("http://a.example/?sid=2"))
    True
    """
    name = global_object_name(type(fingerprinter))
    if not ignored:
        return name, fingerprinter.fingerprint
    fits = named(ignored)

    def fingerprint(request: Request) -> bytes:
        found: bytes = fingerprinter.fingerprint(request.replace(url=without_parameters(request.url, fits)))
        return found

    return f"{name} without {' '.join(sorted(ignored))}", fingerprint
