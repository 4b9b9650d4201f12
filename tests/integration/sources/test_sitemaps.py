"""Sitemaps are fetched under the rate, read off the event loop, and their lastmods become ChangeSignals."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from aiohttp import web

from tests.crawling import Project
from tests.site import Site

SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}

    def parse(self, response):
        with open("seen.txt", "a") as file:
            print(response.url, file=file)
"""


def _sitemap(*entries: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        + "".join(f"<url>{entry}</url>" for entry in entries)
        + "</urlset>"
    )


def test_robots_index_and_gzip_lead_to_pages(site: Site, tmp_path: Path) -> None:
    """robots.txt names an index, in two spellings, that a gzipped sitemap, and its URLs become pages under the rate."""
    pages = [site.page(f"/{number}", f"<p>{number}</p>") for number in range(5)]
    body = gzip.compress(_sitemap(*[f"<loc>{url}</loc>" for url in pages]).encode())
    index = site.url("/index.xml")
    site.page("/robots.txt", f"User-agent: *\nSitemap: {index}\nSitemap: {index.replace('index', '%69ndex')}\n")
    site.page(
        "/index.xml",
        '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        f"<sitemap><loc>{site.url('/pages.xml.gz')}</loc></sitemap></sitemapindex>",
    )
    site.page("/pages.xml.gz", lambda request: web.Response(body=body, content_type="application/gzip"))
    project = Project(
        tmp_path,
        SPIDER.format(urls=[site.page("/", "<p>start</p>")]),
        ROBOTSTXT_OBEY="True",
        CRAWLSCHED_PAGES='[["*", {"min_interval": 1000}]]',
        CRAWLSCHED_SOURCE_INTERVAL="2",
        CLOSESPIDER_TIMEOUT="5",
    )
    crawl = project.run()
    assert set(crawl.outcomes()) == {site.url("/"), *pages}
    assert sorted((tmp_path / "seen.txt").read_text().split()) == sorted({site.url("/"), *pages})
    store = crawl.store()
    sources = {source.url: source for source in store.reader.sources()}
    store.close()
    assert set(sources) == {site.url("/index.xml"), site.url("/pages.xml.gz")}
    assert sources[site.url("/pages.xml.gz")].n_entries == 5
    # Polled again by the job, and the spider never saw a sitemap.
    assert len(site.visits("/pages.xml.gz")) >= 2


def test_a_sitemap_that_has_moved_is_read_where_it_is_now(site: Site, tmp_path: Path) -> None:
    """Redirects are followed, also to another host, whose pages it may speak of then; one that goes round ends."""
    elsewhere = f"http://localhost:{site.port}"
    pages = [site.page("/old/1", "<p>1"), site.page("/new/2", "<p>2").replace("127.0.0.1", "localhost")]
    site.page("/old/sitemap.xml", lambda request: web.Response(status=301, headers={"Location": "/between.xml"}))
    site.page(
        "/between.xml", lambda request: web.Response(status=302, headers={"Location": f"{elsewhere}/new/sitemap.xml"})
    )
    site.page("/new/sitemap.xml", _sitemap(f"<loc>{pages[0]}</loc>", "<loc>2</loc>"))
    site.page("/round.xml", lambda request: web.Response(status=302, headers={"Location": "/round.xml"}))
    crawl = Project(
        tmp_path,
        SPIDER.format(urls=[site.page("/", "<p>start</p>")]),
        CRAWLSCHED_SOURCE_URLS=",".join([site.url("/round.xml"), site.url("/old/sitemap.xml")]),
        CRAWLSCHED_SOURCE_INTERVAL="100",
        CRAWLSCHED_PAGES='[["*", {"min_interval": 1000}]]',
        TEST_CLOSE_AFTER_RESOLVED="5",
    ).run()
    assert set(crawl.outcomes()) == {site.url("/"), *pages}
    assert "Traceback" not in crawl.log
    assert crawl.stats["crawlsched/sources/failed"] == 1


def test_without_discovery_unknown_urls_stay_unknown(site: Site, tmp_path: Path) -> None:
    """They are counted, and nothing else."""
    site.page("/sitemap.xml", _sitemap(f"<loc>{site.url('/other')}</loc>"))
    crawl = Project(
        tmp_path,
        SPIDER.format(urls=[site.page("/", "<p>start</p>")]),
        CRAWLSCHED_SOURCE_URLS=site.url("/sitemap.xml"),
        CRAWLSCHED_SITEMAP_DISCOVERY="False",
        CLOSESPIDER_TIMEOUT="3",
    ).run()
    assert set(crawl.outcomes()) == {site.url("/")}
    assert crawl.stats["crawlsched/change_signals/unknown_url"] == 1


def test_a_lastmod_that_differs_is_a_change_signal(site: Site, tmp_path: Path) -> None:
    """First sight announces nothing, the same date nothing, another date one ChangeSignal."""
    url = site.page("/", "<p>start</p>")
    dates = iter(["2099-11-01", "2099-11-01"])

    def answer(request: web.Request) -> web.Response:
        return web.Response(text=_sitemap(f"<loc>{url}</loc><lastmod>{next(dates, '2099-11-02')}</lastmod>"))

    site.page("/sitemap.xml", answer)
    crawl = Project(
        tmp_path,
        SPIDER.format(urls=[url]),
        CRAWLSCHED_BANDWIDTH="10/s",
        CRAWLSCHED_SOURCE_URLS=site.url("/sitemap.xml"),
        CRAWLSCHED_SOURCE_INTERVAL="1",
        CLOSESPIDER_TIMEOUT="6",
    ).run()
    assert len(site.visits("/sitemap.xml")) >= 4
    assert crawl.stats["crawlsched/change_signals/received"] == 1
    store = crawl.store()
    [(_, _, n)] = store.reader.announcements_of(0)
    signalled = [row.n_signals for row in store.reader.observations_of(0, limit=1000) if row.n_signals]
    store.close()
    assert (n, signalled) == (1, [1])


def test_an_index_spares_the_sitemaps_that_it_says_are_unchanged(site: Site, tmp_path: Path) -> None:
    """One of two sitemaps gets a new date in the index, and only that one is fetched again."""
    dates = {"still": "2026-11-01", "moved": "2026-11-01"}
    asked = []

    def index(request: web.Request) -> web.Response:
        asked.append(1)
        dates["moved"] = "2026-11-01" if len(asked) < 3 else "2026-11-02"
        listed = "".join(
            f"<sitemap><loc>{site.url(f'/{name}.xml')}</loc><lastmod>{date}</lastmod></sitemap>"
            for name, date in dates.items()
        )
        return web.Response(text=f"<sitemapindex>{listed}</sitemapindex>")

    site.page("/index.xml", index)
    for name in dates:
        site.page(f"/{name}.xml", _sitemap(f"<loc>{site.page(f'/{name}', '<p>x</p>')}</loc>"))
    Project(
        tmp_path,
        SPIDER.format(urls=[site.page("/", "<p>start</p>")]),
        CRAWLSCHED_SOURCE_URLS=site.url("/index.xml"),
        CRAWLSCHED_SOURCE_INTERVAL="1",
        CRAWLSCHED_BANDWIDTH="10/s",
        CLOSESPIDER_TIMEOUT="7",
    ).run()
    assert len(asked) >= 4
    assert len(site.visits("/moved.xml")) == 2
    assert len(site.visits("/still.xml")) == 1


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [("2099-11-03", "2099-11-02", "backwards"), ("2026-11-02", "2026-11-03", "seen")],
)
def test_a_doubtful_date_is_counted_and_worth_little(
    site: Site, tmp_path: Path, before: str, after: str, counted: str
) -> None:
    """One that went back, or names a day before the last visit, counts for a source of its own.

    That has little weight until visits have shown that it deserves more.
    """
    url = site.page("/", "<p>start</p>")
    dates = iter([before])

    def answer(request: web.Request) -> web.Response:
        return web.Response(text=_sitemap(f"<loc>{url}</loc><lastmod>{next(dates, after)}</lastmod>"))

    site.page("/sitemap.xml", answer)
    crawl = Project(
        tmp_path,
        SPIDER.format(urls=[url]),
        CRAWLSCHED_BANDWIDTH="10/s",
        CRAWLSCHED_PAGES='[["*", {"min_interval": 1000}]]',
        CRAWLSCHED_SOURCE_URLS=site.url("/sitemap.xml"),
        CRAWLSCHED_SOURCE_INTERVAL="1",
        CLOSESPIDER_TIMEOUT="5",
    ).run()
    assert [crawl.stats[f"crawlsched/change_signals/{kind}"] for kind in ("backwards", "seen")] == [
        counted == "backwards",
        counted == "seen",
    ]
    assert crawl.stats["crawlsched/change_signals/received"] == 1
    store = crawl.store()
    kinds = {source.kind: source.source for source in store.reader.sources()}
    heard = {source: n for _, source, n, *_ in store.reader.further_sources()}
    plan = store.plans.newest()
    store.close()
    assert heard[kinds["backwards"]] == 1
    assert plan is not None
    assert plan.data["signal_weights"][kinds["backwards"]] == 0.05


def test_many_sitemaps_leave_every_other_slot_to_pages(site: Site, tmp_path: Path) -> None:
    """An index lists far more sitemaps than there are slots; pages go on being crawled all the same."""
    pages = [site.page(f"/{number}", "<p>x</p>") for number in range(3)]
    listed = [site.page(f"/{number}.xml", _sitemap(f"<loc>{pages[0]}</loc>")) for number in range(200)]
    index = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in listed)
    site.page("/index.xml", f"<sitemapindex>{index}</sitemapindex>")
    Project(
        tmp_path,
        SPIDER.format(urls=pages),
        CRAWLSCHED_BANDWIDTH="20/s",
        CRAWLSCHED_SOURCE_URLS=site.url("/index.xml"),
        CRAWLSCHED_SOURCE_INTERVAL="8",
        CONCURRENT_REQUESTS_PER_DOMAIN="16",
        CLOSESPIDER_TIMEOUT="5",
    ).run()
    polls = sum(len(site.visits(f"/{number}.xml")) for number in range(200))
    visits = sum(len(site.visits(f"/{number}")) for number in range(3))
    assert polls > 10
    assert visits > 0.8 * polls
