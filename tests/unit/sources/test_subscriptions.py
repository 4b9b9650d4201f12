"""Subscriptions to hubs, as they are discovered in feeds."""

import pytest

from crawlsched.change_signals import Hubs, linked_hubs, read_sitemap
from crawlsched.crawl.subscriptions import Subscription

FEED = "https://a.example/feed"
HUB = "https://hub.example/"


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


def test_what_was_discovered_is_kept_until_it_is_another_and_its_hub_is_asked_once_a_day() -> None:
    """Another hub or name is another subscription; a reading that says the same changes nothing."""
    held = Subscription().after(Hubs([HUB], None), FEED)._replace(asked_at=5.0)
    assert held.after(Hubs([HUB], None), FEED) == held
    assert Subscription().after(Hubs(), FEED) == Subscription()
    assert [held.is_due(now) for now in (5.0, 86_404.0, 86_405.0)] == [False, False, True]
    renamed = held.after(Hubs([HUB], f"{FEED}/"), FEED)
    assert renamed == Subscription(HUB, f"{FEED}/")
    assert renamed.is_due(86_400.0)
    assert not Subscription(None, FEED).is_due(86_400.0)
