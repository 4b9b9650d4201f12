"""JSON Feed: the entries of a feed that is written in JSON."""

import json
from typing import Any

from crawlsched.change_signals.collected import Collected
from crawlsched.change_signals.locations import is_web_url

__all__ = ["read_json_feed"]


def read_json_feed(text: str, collected: Collected) -> bool:
    """Read a JSON Feed (version 1.1); return whether the text is one.

    An item's page is its ``url``, otherwise an ``id`` that is a URL; its date is that of the last modification,
    otherwise of the publication.
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
