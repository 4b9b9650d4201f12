"""The feed in a database: numbers never come twice, what is no longer kept is said, and shards are read together."""

import pytest

from crawlsched.exceptions import CrawlschedError
from crawlsched.feed import Cursor, Feed
from crawlsched.feed.feed import atom
from crawlsched.store import Batch, ChangeRow, KeptText
from tests.rows import NOW, new_page, observation


def deliver(store, *numbers, page=0, url="http://a.example/", text=None):
    """Write deliveries of one page; a change of number n was found and delivered at NOW + n."""
    batch = Batch(new_pages={page: new_page(page, url)})
    for number in numbers:
        batch.observations.append(observation(number, page))
        batch.changes.append(ChangeRow(number, page, NOW + number, "new" if number == 1 else "changed", number))
    if text is not None:
        batch.texts[page] = text
    store.save(batch)


def test_a_cursor_of_what_is_no_longer_kept_is_refused_and_the_oldest_is_named(store):
    """Pruned changes are missed in no silence; who stands at their end goes on; a time begins at the oldest."""
    deliver(store, *range(1, 11))
    while store.forgetting.prune(NOW + 5, limit=2):
        pass
    feed = Feed(store)
    with pytest.raises(CrawlschedError, match=r"0:3 are no longer kept: the oldest cursor .* is 0:4;"):
        feed.after(Cursor({0: 3}), 10)
    assert [change.id for change in feed.after(Cursor({0: 4}), 10)] == [5, 6, 7, 8, 9, 10]
    assert [change.id for change in feed.after(feed.at(0.0), 3)] == [5, 6, 7]
    assert [str(feed.at(NOW + time)) for time in (5, 7, 7.5, 99)] == ["0:4", "0:6", "0:7", "0:10"]
    with pytest.raises(CrawlschedError, match="ahead of the newest change, which is 0:10"):
        feed.after(Cursor({0: 11}), 10)


@pytest.mark.parametrize("delete", ["prune", "forget", "collection"])
def test_a_number_never_comes_twice(store, delete):
    """Not even when the newest changes are deleted, with their page or by age; a follower at the end goes on."""
    deliver(store, 1, 2, 3)
    if delete == "prune":
        store.forgetting.prune(NOW + 99)
    else:
        kind, value = ("host", "a.example") if delete == "forget" else ("collection", "spider")
        store.forgetting.forget(kind, value, NOW)
    assert store.reader.next_change() == 4
    assert Feed(store).after(Cursor({0: 3}), 10) == []
    assert str(Feed(store).end()) == "0:3"


def test_shards_are_read_together_and_none_is_passed_over(store, beside):
    """By time, each in its own order whatever its clock said; in steps of any size nothing is left out."""
    other = beside(shard=1)
    deliver(store, 1, 4, 5)
    deliver(other, 2, 3, 9)
    for limit in (1, 2, 3, 10):
        found, cursor = [], Cursor({})
        while some := Feed(store).after(cursor, limit):
            found += [(change.shard, change.id) for change in some]
            cursor = Cursor.read(some[-1].cursor)
        assert found == [(0, 1), (1, 2), (1, 3), (0, 4), (0, 5), (1, 9)]
        assert str(cursor) == "0:5,1:9"
    assert [change.id for change in Feed(store).newest(2)] == [9, 5]
    assert [change.id for change in Feed(other, own_shard=True).newest(9)] == [9, 3, 2]


def test_feeds_are_read_without_complaint_whatever_a_site_calls_its_pages(store):
    """Markup, quotes and what XML cannot say in URLs and texts; every entry has an identity, a time and a link."""
    import feedparser

    from crawlsched.store.kept_texts import packed

    url = 'http://a.example/<script>alert("1")</script>?\x0b&ü=\ud800'.encode("utf-8", "replace").decode()
    text = KeptText(NOW + 2, packed("<script>2</script> \x00", 999), NOW + 1, packed("<b>1</b>", 999))
    deliver(store, 1, 2, url=url, text=text)
    changes = Feed(store).newest(10, diff=True)
    assert changes[0].diff == ["@@ -1 +1 @@", "-<b>1</b>", "+<script>2</script> \x00"]
    assert changes[1].diff is None  # of a page that has changed again since
    read = feedparser.parse(atom(changes, "my/spider ü", "http://127.0.0.1:1/changes.atom?host=a", NOW))
    assert not read.bozo
    assert [entry.id for entry in read.entries] == ["urn:crawlsched:my%2Fspider%20%C3%BC:0:2", read.entries[1].id]
    assert len({entry.id for entry in read.entries}) == 2
    assert "<script>" not in read.entries[0].content[0].value
    assert "&lt;script&gt;2" in atom(changes, "x", "http://x", NOW).decode().replace("&amp;", "&")
    assert read.entries[0].updated == "2023-11-14T22:13:22Z"
