"""What Scrapy does not document may change with its next release: a crawl goes on without it, and says so once."""

import logging
from types import SimpleNamespace

import pytest
from scrapy import Spider
from scrapy.statscollectors import DummyStatsCollector, MemoryStatsCollector
from scrapy.utils.test import get_crawler

from crawlsched import scrapy_versions
from tests.crawling import YIELDS, Project, spider

DOWNLOADER = """
from scrapy.core.downloader import Downloader as Scrapys

class Downloader:
    # What Scrapy's engine asks of it, and nothing else: no `slots`, no `handlers`.
    def __init__(self, crawler):
        self._renamed = Scrapys(crawler)

    def __getattr__(self, name):
        if name in ("middleware", "active", "fetch", "needs_backout", "close"):
            return getattr(self._renamed, name)
        raise AttributeError(name)
"""


def test_a_downloader_without_slots_and_handlers_loses_no_page(site, tmp_path):
    """Each page is downloaded and delivered; each nicety that is lost is named in one line of the log."""
    urls = [site.page(f"/{n}", f"<p>Page {n}</p>") for n in range(12)]
    urls[0] = site.page("/old", "", status=302, Location=urls[0])
    settings = {"DOWNLOADER": "spider_under_test.Downloader", "AUTOTHROTTLE_ENABLED": False}
    crawl = Project(tmp_path, spider(urls, YIELDS, before=DOWNLOADER), visits=12, **settings).run()
    assert crawl.returncode == 0
    assert crawl.stats["item_scraped_count"] == 12
    assert "downloader/exception_count" not in crawl.stats
    for lost in ("delays are kept by Scrapy alone", "no second gate before the network", "redirects and retries wait"):
        assert crawl.log.count(lost) == 1


@pytest.mark.parametrize(
    ("ask", "without"),
    [
        (scrapy_versions.is_closing, False),
        (scrapy_versions.wake, None),
        (scrapy_versions.download_handlers, None),
        (lambda crawler: scrapy_versions.switch_off_retries(crawler, "http"), None),
    ],
)
def test_what_is_missing_has_an_answer_that_ends_nothing(ask, without, caplog):
    """An engine of another shape is asked; the answer is the one that costs no page."""
    with caplog.at_level(logging.WARNING):
        assert ask(SimpleNamespace(engine=SimpleNamespace())) == without


class Twice(MemoryStatsCollector):
    """A user's own collector, whose counts are twice as high."""

    def inc_value(self, key, count=1, start=0, spider=None):
        super().inc_value(key, 2 * count, start, spider)


@pytest.mark.parametrize("collector", [MemoryStatsCollector, DummyStatsCollector, Twice])
def test_counting_does_the_same_as_scrapys_own(collector):
    """Also where another component replaces or clears all stats meanwhile."""
    crawler = get_crawler(Spider)
    ours, scrapys = collector(crawler), collector(crawler)
    for stats, count in ((ours, scrapy_versions.counter(ours)), (scrapys, scrapys.inc_value)):
        count("visits", 3)
        stats.set_stats({"visits": 5})
        count("visits")
        count("failures", -2)
    assert ours.get_stats() == scrapys.get_stats()
