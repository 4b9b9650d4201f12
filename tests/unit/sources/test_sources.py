"""Sources: polled when their time has come, once; sooner while they bring news."""

from collections.abc import Iterable

import pytest

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
    assert sources.n_due(1.0) == 1


def test_a_due_source_waits_once_and_goes_when_its_host_may_be_asked() -> None:
    """A busy host keeps it in line."""
    sources = Sources(3600.0)
    sources.add("sitemap", "http://a/s.xml", "a", now=0.0)
    assert sources.next_due(1.0, lambda source: False) is None
    assert sources.n_due(2.0) == 1
    assert sources.next_due(2.0, lambda source: True) == 0
    assert sources.next_due(2.0, lambda source: True) is None


def _waits(sources: Sources, number: int, news: Iterable[bool | None], n_pages: int = 360) -> list[float]:
    """Poll a source at time 0, and return how long it waits each time; ten crawls a second."""
    polled = [sources.polled(number, 0.0, n_pages, 10.0, has_news=has_news) for has_news in news]
    return [row.next_poll_at or 0.0 for row in polled]


def test_a_source_is_polled_sooner_while_it_brings_news_and_ever_more_rarely_while_it_does_not() -> None:
    """From a sixth of the bandwidth on; twice as late each time, at least each day; hours after an error."""
    sources = Sources(3600.0)
    sources.add("sitemap", "http://a/s.xml", "a", now=0.0)
    # A sixth of a round of 36 seconds, and no sooner.
    assert _waits(sources, 0, [False, *[True] * 3]) == [6.0] * 4
    assert sources.n_due(7.0) == 1
    assert _waits(sources, 0, [False] * 3 + [True]) == [12.0, 24.0, 48.0, 24.0]
    waits = _waits(sources, 0, [False] * 20 + [True])
    assert waits[-2:] == [86_400.0, 3_600.0]
    again = Sources(3600.0)
    again.load(list(sources))
    assert _waits(again, 0, [True, None, None, True]) == [1_800.0, 7_200.0, 14_400.0, 3_600.0]


def test_in_one_pass_a_source_is_polled_once() -> None:
    """Another date in its index, or a notice, has it polled again."""
    sources = Sources(3600.0, once=True)
    sources.add("sitemap", "http://a/s.xml", "a", now=0.0)
    assert sources.next_due(0.0, lambda source: True) == 0
    _waits(sources, 0, [True])
    assert sources.n_due(1e6) == 0
    sources.poll(0)
    assert sources.n_due(0.0) == 1


def test_all_sources_together_take_a_sixth_of_the_bandwidth() -> None:
    """Those without news make room for those with."""
    sources = Sources(3600.0)
    for number in range(100):
        sources.add("sitemap", f"http://a/{number}.xml", "a", now=0.0)
        _waits(sources, number, [True], n_pages=10)
    assert max(_waits(sources, number, [True] * 9, n_pages=10)[-1] for number in range(100)) > 36.0
    for number in range(1, 100):
        _waits(sources, number, [False] * 20)
    assert _waits(sources, 0, [True] * 9, n_pages=10)[-1] == pytest.approx(0.6, rel=0.5)


def test_a_sitemap_whose_index_states_dates_waits_for_another_date() -> None:
    """Unless its own polls find that the index has missed changes."""
    sources = Sources(3600.0)
    for url in ("http://a/index.xml", "http://a/dated.xml"):
        sources.add("sitemap", url, "a", now=0.0, parent=0)
    sources.describe(1, listed_lastmod=100.0)
    assert _waits(sources, 1, [False, True, True]) == [86_400.0, 3_600.0, 1_800.0]


def test_a_source_that_was_asked_for_in_between_is_not_polled_twice() -> None:
    """The time that it had waited for passes without a poll; the next one is an interval after the last."""
    sources = Sources(3600.0)
    sources.load([Source(0, "sitemap", "http://a/s.xml", "a", next_poll_at=100.0)])
    sources.poll(0)
    assert sources.next_due(0.0, lambda source: True) == 0
    sources.polled(0, 50.0, n_pages=1, bandwidth=0.0, has_news=True)
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
    assert len(list(sources)) == 4
    again = Sources(interval=10.0, most_of_a_host=2)
    again.load(list(sources))
    assert again.add("sitemap", "http://a/3", "a", now=0.0) is None


def test_a_source_that_was_planned_under_another_interval_waits_no_longer_than_a_day() -> None:
    """A changed setting holds from the next poll on, and that comes within a day."""
    sources = Sources(interval=10.0)
    sources.load(
        [
            Source(0, "sitemap", "http://a/0", "a", next_poll_at=1e6),
            Source(1, "sitemap", "http://a/1", "a", next_poll_at=7_000.0),
        ],
        now=100.0,
    )
    assert [sources[number].next_poll_at for number in range(2)] == [86_500.0, 7_000.0]


def test_a_source_that_nobody_names_any_more_is_asked_no_more_until_it_is_named_again() -> None:
    """Nor what it lists; also if it is asked at that moment, or waits in line."""
    sources = Sources(3600.0)
    for number, name in enumerate(("index", "listed", "other")):
        sources.add("sitemap", f"http://a/{name}.xml", "a", now=0.0, parent=0 if name == "listed" else None)
        sources.polled(number, 0.0, 1, 0.0, has_news=True, fingerprint=b"x")
    sources.n_due(4000.0)
    assert [row.source for row in sources.leave(0)] == [0, 1]
    sources.polled(0, 4001.0, 1, 0.0, has_news=True)
    sources.poll(1)
    assert sources.next_due(4001.0, lambda source: True) == 2
    assert sources.n_due(1e9) == 0
    loaded = Sources(3600.0)
    loaded.load(sources)
    assert loaded.add("sitemap", "http://a/index.xml", "a", now=5000.0) is not None
    assert loaded.n_due(5000.0) == 2
    assert loaded[0].fingerprint is None  # so that it is read, and what it lists is named again
