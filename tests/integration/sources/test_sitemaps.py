"""Sitemaps are fetched under the rate, read off the event loop, and their lastmods become ChangeSignals."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from aiohttp import web

from crawlsched.store.records import last_plan
from tests.crawling import YIELDS, Project, spider
from tests.site import Site

SELDOM = [["*", {"min_interval": 1000}]]


def _sitemap(*entries: str) -> str:
    listed = "".join(f"<url>{entry}</url>" for entry in entries)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{listed}</urlset>'


@pytest.fixture
def start(site: Site) -> str:
    """The page with which crawls begin."""
    return site.page("/", "<p>start</p>")


def test_robots_index_and_gzip_lead_to_pages(site: Site, start: str, tmp_path: Path) -> None:
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
    settings = {"ROBOTSTXT_OBEY": True, "find_sources": True, "source_interval": 2}
    project = Project(tmp_path, spider([start], YIELDS), pages=SELDOM, seconds=5, **settings)
    crawl = project.run()
    assert set(crawl.outcomes()) == {start, *pages}
    assert sorted(item["url"] for item in crawl.items) == sorted({start, *pages})
    sources = {source.url: source for source in crawl.read(lambda store: store.reader.sources())}
    assert set(sources) == {site.url("/index.xml"), site.url("/pages.xml.gz")}
    assert sources[site.url("/pages.xml.gz")].n_entries == 5
    # Polled again by the job, and the spider never saw a sitemap.
    assert len(site.visits("/pages.xml.gz")) >= 2


def test_a_sitemap_that_has_moved_is_read_where_it_is_now(site: Site, start: str, tmp_path: Path) -> None:
    """Redirects are followed, also to another host, whose pages it may speak of then; one that goes round ends."""
    elsewhere = f"http://localhost:{site.port}"
    pages = [site.page("/old/1", "<p>1"), site.page("/new/2", "<p>2").replace("127.0.0.1", "localhost")]
    site.page("/old/sitemap.xml", "", status=301, Location="/between.xml")
    site.page("/between.xml", "", status=302, Location=f"{elsewhere}/new/sitemap.xml")
    site.page("/new/sitemap.xml", _sitemap(f"<loc>{pages[0]}</loc>", "<loc>2</loc>"))
    site.page("/round.xml", "", status=302, Location="/round.xml")
    urls = ",".join(site.url(path) for path in ("/round.xml", "/old/sitemap.xml"))
    crawl = Project(tmp_path, [start], pages=SELDOM, visits=5, source_urls=urls, source_interval=100).run()
    assert set(crawl.outcomes()) == {start, *pages}
    assert "Traceback" not in crawl.log
    assert crawl.stats["crawlsched/sources/failed"] == 1


def test_without_discovery_unknown_urls_stay_unknown(site: Site, start: str, tmp_path: Path) -> None:
    """They are counted, and nothing else."""
    site.page("/sitemap.xml", _sitemap(f"<loc>{site.url('/other')}</loc>"))
    settings = {"source_urls": site.url("/sitemap.xml"), "sitemap_discovery": False}
    crawl = Project(tmp_path, [start], seconds=3, **settings).run()
    assert set(crawl.outcomes()) == {start}
    assert crawl.stats["crawlsched/change_signals/unknown_url"] == 1


def test_a_lastmod_that_differs_is_a_change_signal(site: Site, start: str, tmp_path: Path) -> None:
    """First sight announces nothing, the same date nothing, another date one ChangeSignal."""
    dates = iter(["2099-11-01", "2099-11-01"])

    def answer(request: web.Request) -> web.Response:
        return web.Response(text=_sitemap(f"<loc>{start}</loc><lastmod>{next(dates, '2099-11-02')}</lastmod>"))

    site.page("/sitemap.xml", answer)
    settings = {"source_urls": site.url("/sitemap.xml"), "source_interval": 1}
    crawl = Project(tmp_path, [start], bandwidth="10/s", seconds=6, **settings).run()
    assert len(site.visits("/sitemap.xml")) >= 4
    assert crawl.stats["crawlsched/change_signals/received"] == 1
    [(_, _, n)] = crawl.read(lambda store: store.reader.announcements_of(0))
    assert (n, [row.n_signals for row in crawl.visits() if row.n_signals]) == (1, [1])


def test_an_index_spares_the_sitemaps_that_it_says_are_unchanged(site: Site, start: str, tmp_path: Path) -> None:
    """One of two sitemaps gets a new date in the index, and only that one is fetched again."""
    dates = {"still": "2026-11-01", "moved": "2026-11-01"}

    def index(request: web.Request) -> web.Response:
        dates["moved"] = "2026-11-01" if len(site.visits("/index.xml")) < 3 else "2026-11-02"
        listed = "".join(
            f"<sitemap><loc>{site.url(f'/{name}.xml')}</loc><lastmod>{date}</lastmod></sitemap>"
            for name, date in dates.items()
        )
        return web.Response(text=f"<sitemapindex>{listed}</sitemapindex>")

    site.page("/index.xml", index)
    for name in dates:
        site.page(f"/{name}.xml", _sitemap(f"<loc>{site.page(f'/{name}', '<p>x</p>')}</loc>"))
    settings = {"source_urls": site.url("/index.xml"), "source_interval": 1}
    Project(tmp_path, [start], bandwidth="10/s", seconds=7, **settings).run()
    assert len(site.visits("/index.xml")) >= 4
    assert len(site.visits("/moved.xml")) == 2
    assert len(site.visits("/still.xml")) == 1


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [("2099-11-03", "2099-11-02", "backwards"), ("2026-11-02", "2026-11-03", "seen")],
)
def test_a_doubtful_date_is_counted_and_worth_little(
    site: Site, start: str, tmp_path: Path, before: str, after: str, counted: str
) -> None:
    """One that went back, or names a day before the last visit, counts for a source of its own.

    That has little weight until visits have shown that it deserves more.
    """
    dates = iter([before])

    def answer(request: web.Request) -> web.Response:
        return web.Response(text=_sitemap(f"<loc>{start}</loc><lastmod>{next(dates, after)}</lastmod>"))

    site.page("/sitemap.xml", answer)
    settings = {"source_urls": site.url("/sitemap.xml"), "source_interval": 1}
    crawl = Project(tmp_path, [start], bandwidth="10/s", pages=SELDOM, seconds=5, **settings).run()
    assert [crawl.stats[f"crawlsched/change_signals/{kind}"] for kind in ("backwards", "seen")] == [
        counted == "backwards",
        counted == "seen",
    ]
    assert crawl.stats["crawlsched/change_signals/received"] == 1
    kinds = {source.kind: source.source for source in crawl.read(lambda store: store.reader.sources())}
    heard = {source: n for _, source, n, *_ in crawl.read(lambda store: store.reader.further_sources())}
    plan = crawl.read(lambda store: last_plan(store))
    assert heard[kinds["backwards"]] == 1
    assert plan.data["signal_weights"][kinds["backwards"]] == 0.05


def test_many_sitemaps_leave_every_other_slot_to_pages(site: Site, tmp_path: Path) -> None:
    """An index lists far more sitemaps than there are slots; pages go on being crawled all the same."""
    pages = [site.page(f"/{number}", "<p>x</p>") for number in range(3)]
    listed = [site.page(f"/{number}.xml", _sitemap(f"<loc>{pages[0]}</loc>")) for number in range(200)]
    index = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in listed)
    site.page("/index.xml", f"<sitemapindex>{index}</sitemapindex>")
    settings = {"source_urls": site.url("/index.xml"), "source_interval": 8, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
    Project(tmp_path, pages, bandwidth="20/s", seconds=5, **settings).run()
    polls = sum(len(site.visits(f"/{number}.xml")) for number in range(200))
    visits = sum(len(site.visits(f"/{number}")) for number in range(3))
    assert polls > 10
    assert visits > 0.8 * polls
