"""What is noted of a source at each reading: its announcements, and the hub that it names."""

from typing import Any

import numpy as np
import pytest

from crawlsched.change_signals import Hubs, SitemapDocument, linked_hubs, read_sitemap
from crawlsched.crawl.source_quality import tallied
from crawlsched.crawl.source_reading import SourceRead
from crawlsched.store import Source

FEED = "https://a.example/feed"
HUB = "https://hub.example/"


def _tallied(quality: dict[str, Any], announced: list[bool], hubs: Hubs) -> dict[str, Any]:
    read = SourceRead(b"", SitemapDocument(FEED, "rss", hubs=hubs), announced=np.array(announced))
    return tallied(Source(0, "sitemap", FEED, "a.example", quality=quality), read)


def test_announcements_are_counted() -> None:
    """Over all readings, and what else is known of the source stays."""
    quality: dict[str, Any] = {"interval": 60.0}
    for _ in range(3):
        quality = _tallied(quality, [True, True, False], Hubs())
    assert (quality["announced"], quality["interval"], quality["hub"]) == (6, 60.0, {})


def test_a_hub_is_kept_until_the_feed_names_another_or_none() -> None:
    """Another hub or name is another subscription, which was not asked for yet; what is no web address is no hub."""
    new = {"url": HUB, "topic": FEED}
    asked = {**new, "asked_at": 5.0}
    renamed = {"url": HUB, "topic": f"{FEED}/"}
    for before, hubs, after in (
        ({}, Hubs(["ftp://hub.example/", HUB], None), new),
        (asked, Hubs([HUB], None), asked),
        (asked, Hubs([HUB], f"{FEED}/"), renamed),
        (asked, Hubs(), {}),
    ):
        assert _tallied({"hub": before}, [], hubs)["hub"] == after


@pytest.mark.parametrize(
    "body",
    [
        f"<feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub' href='{HUB}'/><link rel='self' href='/feed/'/>"
        "<entry><link rel='hub' href='http://other.example/'/><link href='/1'/></entry></feed>",
        "<rss version='2.0' xmlns:a='http://www.w3.org/2005/Atom'><channel>"
        f"<a:link rel='self' href='{FEED}/'/><a:link rel='hub' href='{HUB}'/><item><link>/1</link></item>"
        "</channel></rss>",
        f'{{"version": "https://jsonfeed.org/version/1.1", "feed_url": "{FEED}/", "hubs": '
        f'[{{"type": "rssCloud", "url": "http://x.example/"}}, {{"type": "WebSub", "url": "{HUB}"}}], "items": []}}',
    ],
)
def test_hub_and_self_are_found_in_feeds(body: str) -> None:
    """WebSub, section 4: links of the feed itself, in Atom, RSS and JSON Feed, and none of an entry's."""
    assert read_sitemap(body.encode(), FEED).hubs == Hubs([HUB], f"{FEED}/")


def test_link_headers_name_hubs_in_every_way_of_writing_them() -> None:
    """RFC 8288: several in one header, quotes or none, several relations, other parameters, relative references."""
    headers = ["</hub>; rel=hub; title=x, <ftp://a.example/>; rel=hub", f'<{HUB}>; a="b"; rel="x HUB"', "<>; rel=self"]
    assert linked_hubs(headers, FEED) == Hubs(["https://a.example/hub", HUB], FEED)
    assert linked_hubs(["</next>; rel=next", "nonsense", "<http://[>; rel=hub"], FEED) == Hubs()
