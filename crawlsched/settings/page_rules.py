"""Rules for the pages of a host or a URL pattern: importance, crawl intervals, and the number of pages."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from crawlsched.settings.values import (
    allowing,
    fits_no_url,
    read_count,
    read_positive_seconds,
    read_seconds,
    read_share,
    read_table,
)

__all__ = ["PageRule", "read_host_shares", "read_page_rules"]

# The number of a page's rule is stored in one byte, which limits the number of rules.
_MOST = int(np.iinfo(np.uint8).max)


class PageRule(NamedTuple):
    """The rule for the pages of a host or a pattern of URLs. If a value is None, the general setting applies."""

    where: str  # the name of a host, or a pattern in which ``*`` matches any characters
    importance: float | None = None  # the importance of pages for which no request, file or sitemap states another
    min_interval: float | None = None  # seconds
    max_interval: float | None = None
    max_pages: int | None = None  # at most this many URLs become pages

    def said(self) -> list[Any]:
        """Return the rule in the form of the setting."""
        return [self.where, {name: value for name, value in zip(_KEYS, self[1:], strict=True) if value is not None}]


def read_page_rules(value: object) -> tuple[PageRule, ...]:
    """Read rules from a list of pairs or a dictionary, also as JSON.

    >>> read_page_rules([("*/news/*", {"importance": 3, "max_interval": "1h"})])
    (PageRule(where='*/news/*', importance=3.0, min_interval=None, max_interval=3600.0, max_pages=None),)
    """
    written = allowing(_PAIRS)(json.loads)(value or "[]") if isinstance(value, str) else value
    pairs = list(written.items()) if isinstance(written, Mapping) else written
    if not isinstance(pairs, list | tuple):
        raise ValueError(_PAIRS)
    if len(pairs) > _MOST:
        raise ValueError(f"a list of {_MOST} pairs at most")
    return tuple(map(_rule, pairs))


@allowing("0 or more")
def _importance(value: Any) -> float:
    number = -1.0 if isinstance(value, bool) else float(value)
    if not 0.0 <= number < math.inf:
        raise ValueError
    return number


_PAIRS = "a list of pairs such as ('*/news/*', {'importance': 3, 'max_interval': '1h'})"
_KEYS: dict[str, Callable[[object], Any]] = {
    "importance": _importance,
    "min_interval": read_seconds,
    "max_interval": read_positive_seconds,
    "max_pages": read_count,
}


def _rule(pair: object) -> PageRule:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise ValueError(_PAIRS)
    where, written = pair
    if not isinstance(where, str) or not isinstance(written, Mapping):
        raise ValueError(_PAIRS)
    if fits_no_url(where):
        raise ValueError(f"{_PAIRS}; {where!r} fits no URL: write a host without port, or a pattern of URLs")
    if not written or (unknown := [name for name in written if name not in _KEYS]):
        named = f", not {unknown[0]!r}" if written else ""
        raise ValueError(f"{_PAIRS}; {where!r} may have {', '.join(_KEYS)}{named}")
    try:
        read = {name: _KEYS[name](value) for name, value in written.items() if value is not None}
    except ValueError as error:
        raise ValueError(f"{_PAIRS}; a number of {where!r} must be {error}") from None
    rule = PageRule(where, **read)
    if None not in (rule.min_interval, rule.max_interval) and rule.max_interval < rule.min_interval:  # type: ignore[operator]
        raise ValueError(f"{_PAIRS}; the max_interval of {where!r} is shorter than its min_interval")
    return rule


@allowing("a dictionary of hosts and shares above 0 and at most 1, such as {'shop.example': 0.25, '*': 0.5}")
def read_host_shares(value: object) -> tuple[tuple[str, float], ...]:
    """Read the largest share of the bandwidth for each host; ``*`` means each host that is not named.

    >>> read_host_shares({"shop.example": 0.25, "*": "0.5"})
    (('shop.example', 0.25), ('*', 0.5))
    """
    shares = tuple((host.lower(), read_share(share)) for host, share in read_table(value))
    if any(share == 0.0 or (host != "*" and ("*" in host or fits_no_url(host))) for host, share in shares):
        raise ValueError
    return shares
