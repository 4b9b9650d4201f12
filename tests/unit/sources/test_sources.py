"""Sources: polled when their time has come, once."""

from crawlsched.crawl.sources import Sources
from crawlsched.store import Source


def test_two_spellings_of_one_url_are_one_source() -> None:
    """The order of its parameters, escapes, the case of its host and a fragment make no other sitemap of it."""
    sources = Sources(3600.0)
    first = sources.add("sitemap", "http://a.example/s.xml?b=2&a=~1", "a.example", now=0.0)
    for spelling in ("http://A.example/s.xml?a=%7E1&b=2", "http://a.example/s.xml?b=2&a=~1#top"):
        assert sources.add("sitemap", spelling, "a.example", now=0.0) is None
        assert sources.number("sitemap", spelling) == first.source
    assert sources.number("sitemap", "http://a.example/S.xml?b=2&a=~1") is None
    assert sources.mark_due(now=1.0) == 1


def test_a_due_source_waits_once_and_goes_when_its_host_may_be_asked() -> None:
    """A busy host keeps it in line."""
    sources = Sources(3600.0)
    sources.add("sitemap", "http://a/s.xml", "a", now=0.0)
    sources.mark_due(now=1.0)
    assert sources.mark_due(now=2.0) == 1
    assert sources.next_due(lambda source: False) is None
    assert sources.next_due(lambda source: True) == 0
    assert sources.next_due(lambda source: True) is None


def test_errors_make_the_next_poll_later_until_one_succeeds() -> None:
    """Two hours, four hours, and after a success one again."""
    sources = Sources(3600.0)
    sources.add("sitemap", "http://a/s.xml", "a", now=0.0)
    waits = []
    for ok in (False, False, True):
        waits.append(sources.polled(0, now=0.0, ok=ok).next_poll_at)
    assert waits == [7200.0, 14400.0, 3600.0]


def test_a_source_that_was_asked_for_in_between_is_not_polled_twice() -> None:
    """The time that it had waited for passes without a poll; the next one is an interval after the last."""
    sources = Sources(3600.0)
    sources.load([Source(0, "sitemap", "http://a/s.xml", "a", next_poll_at=100.0)])
    sources.poll(0)
    assert sources.next_due(lambda source: True) == 0
    sources.polled(0, now=50.0, ok=True)
    assert sources.mark_due(now=3649.0) == 0
    assert sources.mark_due(now=3650.0) == 1


def test_a_host_with_many_sitemaps_holds_up_no_other() -> None:
    """Hosts take turns, and one that may not be asked is looked at once, not once for each of its sitemaps."""
    sources, asked = Sources(3600.0), []
    for number in range(1000):
        sources.add("sitemap", f"http://many/{number}.xml", "many", now=0.0)
    for number in range(2):
        sources.add("sitemap", f"http://few/{number}.xml", "few", now=0.0)
    assert sources.mark_due(now=0.0) == 1002

    def is_few(source: Source) -> bool:
        asked.append(source.host)
        return source.host == "few"

    assert [sources.next_due(lambda source: True) for _ in range(4)] == [0, 1000, 1, 1001]
    sources.poll(1000)
    assert sources.next_due(is_few) == 1000
    assert sources.next_due(is_few) is None
    assert len(asked) == 3


def test_a_host_has_so_many_sitemaps_at_most() -> None:
    """Indexes below indexes could name any number; other hosts, and what only tells, are not touched by that."""
    sources = Sources(interval=10.0, most_of_a_host=2)
    taken = [sources.add("sitemap", f"http://a/{number}", "a", now=0.0) for number in range(4)]
    assert [source is not None for source in taken] == [True, True, False, False]
    assert sources.number("sitemap", "http://a/3") is None
    assert sources.add("sitemap", "http://b/1", "b", now=0.0) is not None
    assert sources.add("ping", "http://a/3", "a", now=0.0) is not None
    assert len(sources) == 4
    again = Sources(interval=10.0, most_of_a_host=2)
    again.load(list(sources))
    assert again.add("sitemap", "http://a/3", "a", now=0.0) is None


def test_a_source_that_was_planned_under_another_interval_waits_no_longer_than_this_one() -> None:
    """A changed setting holds from the next start on; what was planned under the same one stays."""
    sources = Sources(interval=10.0)
    planned = {"next_poll_at": 7_000.0}
    sources.load(
        [
            Source(0, "sitemap", "http://a/0", "a", quality={"interval": 3_600.0}, **planned),
            Source(1, "sitemap", "http://a/1", "a", quality={"interval": 10.0}, **planned),
            Source(2, "sitemap", "http://a/2", "a", next_poll_at=105.0),
        ],
        now=100.0,
    )
    assert [sources[number].next_poll_at for number in range(3)] == [110.0, 7_000.0, 105.0]


def test_a_source_that_nobody_names_any_more_is_asked_no_more_until_it_is_named_again() -> None:
    """Nor what it lists; also if it is asked at that moment, or waits in line."""
    sources = Sources(3600.0)
    for number, name in enumerate(("index", "listed", "other")):
        sources.add("sitemap", f"http://a/{name}.xml", "a", now=0.0, parent=0 if name == "listed" else None)
        sources.polled(number, now=0.0, ok=True, fingerprint=b"x")
    sources.mark_due(now=4000.0)
    assert [row.source for row in sources.leave(0)] == [0, 1]
    sources.polled(0, now=4001.0, ok=True)
    sources.poll(1)
    assert sources.next_due(lambda source: True) == 2
    assert sources.mark_due(now=1e9) == 0
    loaded = Sources(3600.0)
    loaded.load(sources)
    assert loaded.add("sitemap", "http://a/index.xml", "a", now=5000.0) is not None
    assert loaded.mark_due(now=5000.0) == 2
    assert loaded[0].fingerprint is None  # so that it is read, and what it lists is named again


def test_a_sitemap_is_skipped_while_the_date_in_its_index_proves_true() -> None:
    """Until the index states another; a date that has missed a change is not believed, and without one none is."""
    sources, skipped = Sources(3600.0), []
    index = sources.add("sitemap", "http://a/index.xml", "a", now=0.0).source
    dated, undated = (sources.add("sitemap", f"http://a/{n}.xml", "a", now=0.0, parent=index).source for n in range(2))
    for date, brought in ((100.0, None), *((100.0, n % 2 == 0) for n in range(4)), (200.0, None), (200.0, True)):
        sources.describe(dated, listed_lastmod=date)
        for child in (dated, undated) if brought is not None else ():
            sources.read(child, brought=brought)
        skipped.append(sources.may_skip(dated))
        assert not sources.may_skip(undated)
    assert skipped == [False, True, True, False, False, False, True]
