"""Rules for some pages of a host or a URL pattern: worth, crawl intervals, and how many there may be."""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from crawlsched.settings.values import (
    fits_no_url,
    read_count,
    read_positive_seconds,
    read_seconds,
    read_share,
    read_table,
)

__all__ = ["PageRule", "read_host_shares", "read_page_rules"]

_KEYS = ("importance", "min_interval", "max_interval", "max_pages")
_MOST = 255


class PageRule(NamedTuple):
    """What holds for the pages of a host or a pattern of URLs; None: what holds for all others.

    Attributes
    ----------
    where : str
        The name of a host, or a pattern in which ``*`` stands for anything.
    importance : float or None
        What a fresh copy is worth, where no request, file or sitemap says it.
    min_interval, max_interval : float or None
        Seconds.
    max_pages : int or None
        At most so many URLs are taken as pages.
    """

    where: str
    importance: float | None = None
    min_interval: float | None = None
    max_interval: float | None = None
    max_pages: int | None = None

    def said(self) -> list[Any]:
        """Return the rule as it can be written in the settings."""
        values = zip(_KEYS, self[1:], strict=True)
        return [self.where, {name: value for name, value in values if value is not None}]


def read_page_rules(value: object) -> tuple[PageRule, ...]:
    """Read rules: a list of pairs, a dictionary, or one of these as JSON.

    Examples
    --------
    >>> read_page_rules([("*/news/*", {"importance": 3, "max_interval": "1h"})])
    (PageRule(where='*/news/*', importance=3.0, min_interval=None, max_interval=3600.0, max_pages=None),)
    """
    allowed = "a list of pairs such as ('*/news/*', {'importance': 3, 'max_interval': '1h'})"
    if isinstance(value, str):
        try:
            value = json.loads(value or "[]")
        except json.JSONDecodeError:
            raise ValueError(allowed) from None
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list | tuple):
        raise ValueError(allowed)
    if len(pairs) > _MOST:
        raise ValueError(f"a list of {_MOST} pairs at most")
    return tuple(_rule(pair, allowed) for pair in pairs)


def _rule(pair: object, allowed: str) -> PageRule:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise ValueError(allowed)
    where, said = pair
    if not isinstance(where, str) or not isinstance(said, Mapping):
        raise ValueError(allowed)
    if fits_no_url(where):
        raise ValueError(f"{allowed}; {where!r} fits no URL: it is a host without port, or a pattern of URLs")
    if not said or (unknown := [name for name in said if name not in _KEYS]):
        named = f", not {unknown[0]!r}" if said else ""
        raise ValueError(f"{allowed}; {where!r} may have {', '.join(_KEYS)}{named}")
    try:
        importance = None if said.get("importance") is None else _importance(said["importance"])
        shortest = None if said.get("min_interval") is None else read_seconds(said["min_interval"])
        longest = None if said.get("max_interval") is None else read_positive_seconds(said["max_interval"])
        most = None if said.get("max_pages") is None else read_count(said["max_pages"])
    except ValueError as error:
        raise ValueError(f"{allowed}; a number of {where!r} must be {error}") from None
    if shortest is not None and longest is not None and longest < shortest:
        raise ValueError(f"{allowed}; the max_interval of {where!r} is shorter than its min_interval")
    return PageRule(where, importance, shortest, longest, most)


def _importance(value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not 0.0 <= number < math.inf:
        raise ValueError("0 or more")
    return number


def read_host_shares(value: object) -> tuple[tuple[str, float], ...]:
    """Read which share of the bandwidth hosts may have at most; ``*`` is each host that is not named.

    Examples
    --------
    >>> read_host_shares({"shop.example": 0.25, "*": "0.5"})
    (('shop.example', 0.25), ('*', 0.5))
    """
    allowed = "a dictionary of hosts and shares above 0 and at most 1, such as {'shop.example': 0.25, '*': 0.5}"
    try:
        pairs = read_table(value)
    except ValueError:
        raise ValueError(allowed) from None
    shares = []
    for host, share in pairs:
        try:
            number = read_share(share)
        except ValueError:
            raise ValueError(allowed) from None
        if number == 0.0 or (host != "*" and ("*" in host or fits_no_url(host))):
            raise ValueError(allowed)
        shares.append((host.lower(), number))
    return tuple(shares)
