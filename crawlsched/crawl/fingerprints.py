"""Request fingerprints: the project's own, of URLs without the parameters that are ignored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scrapy import Request
from scrapy.utils.python import global_object_name

from crawlsched.pages.parameters import named, without_parameters

__all__ = ["fingerprints"]


def fingerprints(fingerprinter: Any, ignored: Sequence[str]) -> tuple[str, Callable[[Request], bytes]]:
    """Return what names the request fingerprints of a project, and what makes them.

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
