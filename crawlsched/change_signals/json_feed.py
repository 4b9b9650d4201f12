"""JSON Feed: the entries of a feed that is written in JSON."""

import json
from typing import Any

from crawlsched.change_signals.collected import Collected
from crawlsched.change_signals.locations import is_web_url

__all__ = ["read_json_feed"]


def read_json_feed(text: str, collected: Collected) -> bool:
    """Read a JSON Feed; return whether the text is one.

    Parameters
    ----------
    text : str
        The whole document.
    collected : Collected
        Where its entries go: the page is an item's ``url``, otherwise an ``id`` that is a URL; the date is that of its
        last modification, otherwise of its publication.

    References
    ----------
    .. [1] Simmons, Reece (2020), "JSON Feed version 1.1".

    Examples
    --------
    >>> from crawlsched.change_signals.limits import Limits
    >>> from crawlsched.change_signals.locations import Locations
    >>> from crawlsched.change_signals.problems import ProblemCounter
    >>> problems = ProblemCounter()
    >>> collected = Collected("http://a/feed.json", Limits(), Locations("http://a/", (), problems), (), problems)
    >>> item = '{"id": "1", "url": "/1", "date_published": "2026-11-20T09:15:30Z"}'
    >>> read_json_feed(f'{{"version": "https://jsonfeed.org/version/1.1", "items": [{item}]}}', collected)
    True
    >>> collected.entries.url, collected.entries.lastmod_text
    (['http://a/1'], ['2026-11-20T09:15:30Z'])
    """
    try:
        feed = json.loads(text)
    except (ValueError, RecursionError):
        return False
    items = feed.get("items") if isinstance(feed, dict) else None
    if not isinstance(items, list):
        return False
    says_so = "jsonfeed.org" in str(feed.get("version", ""))[:100]
    if not says_so and not any(isinstance(item, dict) and _texts(item, "url") for item in items):
        return False
    for hub in feed["hubs"] if isinstance(feed.get("hubs"), list) else ():
        if isinstance(hub, dict) and str(hub.get("type")).lower() == "websub":
            collected.hubs.add("hub", str(hub.get("url", "")), collected.url)
    collected.hubs.add("self", "".join(_texts(feed, "feed_url")), collected.url)
    for item in items:
        if not isinstance(item, dict):
            continue
        named = _texts(item, "id")
        places = _texts(item, "url") + [name for name in named if is_web_url(name)]
        if not collected.page(places, _texts(item, "date_modified", "date_published")):
            break
    return True


def _texts(item: dict[str, Any], *names: str) -> list[str]:
    return [item[name].strip() for name in names if isinstance(item.get(name), str) and item[name].strip()]
