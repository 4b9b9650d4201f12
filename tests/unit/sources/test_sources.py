"""Sources: polled when their time has come, once; sooner while they bring news."""

import pytest

from crawlsched.crawl.sources import Sources, shortest_interval
from crawlsched.store import Source


def test_two_spellings_of_one_url_are_one_source() -> None:
    """The order of its parameters, escapes, the case of its host and a fragment make no other sitemap of it."""
    sources = Sources(3600.0)
    first = sources.add("sitemap", "http://a.example/s.xml?b=2&a=~1", "a.example", now=0.0)
    for spelling in ("http://A.example/s.xml?a=%7E1&b=2", "http://a.example/s.xml?b=2&a=~1#top"):
        assert sources.add("sitemap", spelling, "a.example", now=0.0) is None
        assert sources.number("sitemap", spelling) == first.source
    assert sources.number("sitemap", "http://a.example/S.xml?b=2&a=~1") is None
    assert sources.n_due(1.0) == 1


def test_a_due_source_waits_once_and_goes_when_its_host_may_be_asked() -> None:
    """A busy host keeps it in line."""
    sources = Sources(3600.0)
    sources.add("sitemap", "http://a/s.xml", "a", now=0.0)
    assert sources.next_due(1.0, lambda source: False) is None
    assert sources.n_due(2.0) == 1
    assert sources.next_due(2.0, lambda source: True) == 0
    assert sources.next_due(2.0, lambda source: True) is None


def test_a_source_is_polled_sooner_while_it_brings_news_and_ever_more_rarely_while_it_does_not() -> None:
    """From what all sources can have on; twice as late at most each time, an error counts, too; at least each day."""
    sources = Sources(3600.0)
    sources.add("sitemap", "http://a/s.xml", "a", now=0.0)
    waits = []
    for has_news in (True, False, False, False, True, True, True, True, *[False] * 12):
        waits.append(sources.polled(0, 0.0, 60.0, has_news=has_news).next_poll_at)
    assert waits[:8] == [60.0, 120.0, 240.0, 480.0, 240.0, 120.0, 60.0, 60.0]
    assert waits[-2:] == [86_400.0, 86_400.0]
    again = Sources(3600.0)
    again.load(list(sources))
    assert again.polled(0, 0.0, 60.0, has_news=True).next_poll_at == 43_200.0


def test_a_sitemap_whose_index_states_dates_waits_for_another_date() -> None:
    """Unless its own polls find that the index has missed changes."""
    sources = Sources(3600.0)
    for url in ("http://a/index.xml", "http://a/dated.xml"):
        sources.add("sitemap", url, "a", now=0.0, parent=0)
    sources.describe(1, listed_lastmod=100.0)
    waits = [sources.polled(1, 0.0, 60.0, has_news=has_news).next_poll_at for has_news in (False, True, True)]
    assert waits == [86_400.0, 43_200.0, 21_600.0]


@pytest.mark.parametrize(
    ("longest", "n_pages", "n_sources", "bandwidth", "seconds"),
    [
        (3600.0, 1_200, 1, 10.0, 6.0),  # a twentieth of a round
        (3600.0, 120, 60, 10.0, 120.0),  # sixty sources in two minutes: a twentieth of 1,200 crawls
        (2.0, 1_200, 1, 10.0, 2.0),  # what the settings say
        (3600.0, 10**6, 1, 10.0, 3600.0),
        (3600.0, 120, 1, 0.0, 3600.0),
    ],
)
def test_polls_take_a_twentieth_of_the_bandwidth(
    longest: float, n_pages: int, n_sources: int, bandwidth: float, seconds: float
) -> None:
    """And no source is read more often than 20 times while each page is crawled once."""
    assert shortest_interval(longest, n_pages, n_sources, bandwidth) == pytest.approx(seconds)


def test_a_source_that_was_asked_for_in_between_is_not_polled_twice() -> None:
    """The time that it had waited for passes without a poll; the next one is an interval after the last."""
    sources = Sources(3600.0)
    sources.load([Source(0, "sitemap", "http://a/s.xml", "a", next_poll_at=100.0)])
    sources.poll(0)
    assert sources.next_due(0.0, lambda source: True) == 0
    sources.polled(0, 50.0, 3600.0)
    assert sources.n_due(3649.0) == 0
    assert sources.n_due(3650.0) == 1


def test_a_host_with_many_sitemaps_holds_up_no_other() -> None:
    """Hosts take turns, and one that may not be asked is looked at once, not once for each of its sitemaps."""
    sources, asked = Sources(3600.0), []
    for number in range(1000):
        sources.add("sitemap", f"http://many/{number}.xml", "many", now=0.0)
    for number in range(2):
        sources.add("sitemap", f"http://few/{number}.xml", "few", now=0.0)
    assert sources.n_due(0.0) == 1002

    def is_few(source: Source) -> bool:
        asked.append(source.host)
        return source.host == "few"

    assert [sources.next_due(0.0, lambda source: True) for _ in range(4)] == [0, 1000, 1, 1001]
    sources.poll(1000)
    assert sources.next_due(0.0, is_few) == 1000
    assert sources.next_due(0.0, is_few) is None
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
        sources.polled(number, 0.0, 3600.0, fingerprint=b"x")
    sources.n_due(4000.0)
    assert [row.source for row in sources.leave(0)] == [0, 1]
    sources.polled(0, 4001.0, 3600.0)
    sources.poll(1)
    assert sources.next_due(4001.0, lambda source: True) == 2
    assert sources.n_due(1e9) == 0
    loaded = Sources(3600.0)
    loaded.load(sources)
    assert loaded.add("sitemap", "http://a/index.xml", "a", now=5000.0) is not None
    assert loaded.n_due(5000.0) == 2
    assert loaded[0].fingerprint is None  # so that it is read, and what it lists is named again
