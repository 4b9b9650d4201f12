"""Hubs: the servers at which the crawl can subscribe to a feed, and the name of the feed there (WebSub, section 4)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urljoin

from crawlsched.change_signals.locations import is_web_url

__all__ = ["Hubs", "linked_hubs"]

_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_RELATION = re.compile(r""";\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))""", re.IGNORECASE)
_MOST_HUBS = 10


@dataclass(slots=True)
class Hubs:
    """The hubs that a feed names.

    >>> hubs = Hubs()
    >>> hubs.add("hub", "/hub", "https://a.example/feed")
    >>> hubs.add("self", "https://a.example/feed/", "https://a.example/feed")
    >>> hubs
    Hubs(url=['https://a.example/hub'], topic='https://a.example/feed/')
    """

    url: list[str] = field(default_factory=list)
    # The feed's own name (rel="self"), by which the crawl subscribes. It can differ from the feed's address.
    topic: str | None = None

    def add(self, relation: str, reference: str, base: str) -> None:
        """Add a link of the feed if it leads to a hub or to the feed itself."""
        relations = relation.lower().split()
        if "hub" not in relations and "self" not in relations:
            return
        try:
            url = urljoin(base, reference.strip())
        except ValueError:
            return
        if not is_web_url(url) or " " in url:
            return
        if "hub" in relations and len(self.url) < _MOST_HUBS and url not in self.url:
            self.url.append(url)
        if "self" in relations and self.topic is None:
            self.topic = url


def linked_hubs(headers: Iterable[str], base: str) -> Hubs:
    """Return the hubs in ``Link`` headers, which have priority over hubs in the document.

    >>> linked_hubs(['<https://hub.example/>; rel="hub", <https://a.example/feed/>; rel=self'], "https://a.example/feed")
    Hubs(url=['https://hub.example/'], topic='https://a.example/feed/')
    """
    hubs = Hubs()
    for header in headers:
        for reference, parameters in _LINK.findall(header[:8_192]):
            if relation := _RELATION.search(parameters):
                hubs.add(relation[1] or relation[2] or "", reference, base)
    return hubs
