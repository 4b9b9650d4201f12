"""Feeds read by feedparser, where the extra ``[feeds]`` is installed: it knows more kinds, and mends more damage."""

from __future__ import annotations

import importlib.util
from time import struct_time
from typing import Any

from crawlsched.change_signals.collected import Collected
from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["has_feedparser", "read_feed"]

# Feeds are short; whatever is longer than that is read by our own reader, which gives the interpreter's lock away.
_MOST_BYTES = 2_000_000


def has_feedparser() -> bool:
    """Whether feedparser is installed."""
    return importlib.util.find_spec("feedparser") is not None


def read_feed(body: bytes, collected: Collected, problems: ProblemCounter) -> str | None:
    """Read a feed with feedparser.

    Parameters
    ----------
    body : bytes
        After decompression.
    collected : Collected
        Where its entries go.
    problems : ProblemCounter

    Returns
    -------
    str or None
        Its kind, ``rss`` or ``atom``; None if feedparser is not installed, does not know it for a feed, or fails.

    Notes
    -----
    Nothing is fetched: feedparser is given bytes. An entry's page is its link, otherwise an id that is a URL; its date
    is that of its last update, otherwise of its publication, as feedparser reads it: forms that sitemaps do not know
    count, too.

    Examples
    --------
    >>> from crawlsched.change_signals.limits import Limits
    >>> from crawlsched.change_signals.locations import Locations
    >>> problems = ProblemCounter()
    >>> collected = Collected("http://a/feed", Limits(), Locations("http://a/feed", (), problems), (), problems)
    >>> item = b"<item><link>http://a/1</link><pubDate>Sat, 21 Nov 2026 03:00 GMT</pubDate></item>"
    >>> read_feed(b"<rss version='2.0'><channel>" + item + b"</channel></rss>", collected, problems)
    'rss'
    >>> collected.entries.url, collected.entries.lastmod_text
    (['http://a/1'], ['2026-11-21T03:00:00Z'])
    """
    if len(body) > _MOST_BYTES or not has_feedparser():
        return None
    import feedparser

    try:
        # The texts are not looked at, so there is nothing to make harmless in them.
        feed: Any = feedparser.parse(body, sanitize_html=False, resolve_relative_uris=False)
    except Exception:  # whatever a body of bytes makes of a reader of many years: our own reads on
        return None
    kind = str(feed.get("version") or "")[:4].rstrip("0123456789")
    if kind not in ("rss", "atom", "cdf") or not feed.entries:
        return None
    if feed.get("bozo"):
        problems.add("damaged-feed", str(feed.get("bozo_exception", ""))[:200])
    for entry in feed.entries:
        location = entry.get("link") or entry.get("id") or ""
        # Not by its own `get`, which takes the publication for a missing update, and warns of doing so.
        moment = dict.get(entry, "updated_parsed") or dict.get(entry, "published_parsed")
        if not collected.page(location, _written(moment)):
            break
    return "atom" if kind == "atom" else "rss"


def _written(moment: struct_time | None) -> str | None:
    if moment is None:
        return None
    year, month, day, hour, minute, second = moment[:6]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
