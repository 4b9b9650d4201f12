"""Sitemaps are fetched under the rate, read off the event loop, and their lastmods become ChangeSignals."""

import gzip
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from tests.crawling import YIELDS, Project, spider
from tests.site import Site

SELDOM = [["*", {"min_interval": 1000}]]


def _sitemap(*entries: str) -> str:
    listed = "".join(f"<url>{entry}</url>" for entry in entries)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{listed}</urlset>'


@pytest.fixture
def start(site):
    """The page with which crawls begin."""
    return site.page("/", "<p>start</p>")


def test_robots_index_and_gzip_lead_to_pages(site, start, tmp_path):
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
    project = Project(tmp_path, spider([start], YIELDS), pages=SELDOM, **settings)
    # Polled again by the job, and the spider never saw a sitemap.
    paths = [urlsplit(url).path for url in pages]
    crawl = project.run_until(lambda: len(site.visits("/pages.xml.gz")) > 1 and all(map(site.visits, paths)))
    assert set(crawl.outcomes()) == {start, *pages}
    assert sorted(item["url"] for item in crawl.items) == sorted({start, *pages})
    sources = {source.url: source for source in crawl.read(lambda store: store.reader.sources())}
    assert set(sources) == {site.url("/index.xml"), site.url("/pages.xml.gz")}
    assert sources[site.url("/pages.xml.gz")].n_entries == 5


def test_a_sitemap_that_has_moved_is_read_where_it_is_now(site, start, tmp_path):
    """Redirects are followed, also to another host, whose pages it may speak of then; one that goes round ends."""
    elsewhere = f"http://localhost:{site.port}"
    pages = [site.page("/old/1", "<p>1"), site.page("/new/2", "<p>2").replace("127.0.0.1", "localhost")]
    site.page("/old/sitemap.xml", "", status=301, Location="/between.xml")
    site.page("/between.xml", "", status=302, Location=f"{elsewhere}/new/sitemap.xml")
    site.page("/new/sitemap.xml", _sitemap(f"<loc>{pages[0]}</loc>", "<loc>2</loc>"))
    site.page("/round.xml", "", status=302, Location="/round.xml")
    urls = ",".join(site.url(path) for path in ("/round.xml", "/old/sitemap.xml"))
    # The round ends with its twentieth redirect; meanwhile the other sitemap may be read again, ever more rarely.
    crawl = Project(tmp_path, [start], pages=SELDOM, visits=8, source_urls=urls, source_interval=100).run()
    assert set(crawl.outcomes()) == {start, *pages}
    assert "Traceback" not in crawl.log
    assert crawl.stats["crawlsched/sources/failed"] == 1


def test_without_discovery_unknown_urls_stay_unknown(site, start, tmp_path):
    """They are counted, and nothing else."""
    site.page("/sitemap.xml", _sitemap(f"<loc>{site.url('/other')}</loc>"))
    settings = {"source_urls": site.url("/sitemap.xml"), "sitemap_discovery": False}
    crawl = Project(tmp_path, [start], seconds=3, **settings).run()
    assert set(crawl.outcomes()) == {start}
    assert crawl.stats["crawlsched/change_signals/unknown_url"] == 1


# The days that a sitemap names for its page, one reading after the other, and the last for ever.
DAYS = {
    "differs": ["2099-11-01", "2099-11-01", "2099-11-02"],
    "back": ["2099-11-03", "2099-11-02"],
    "seen": ["2026-11-02", "2026-11-03"],
}


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """A site and its crawl: a sitemap for each of `DAYS`, and an index that names a later day for one of its two."""

    def sitemap(name, days):
        page, readings = site.page(f"/{name}", "<p>x</p>"), iter(days[:-1])

        def answer(request):
            return web.Response(text=_sitemap(f"<loc>{page}</loc><lastmod>{next(readings, days[-1])}</lastmod>"))

        return site.page(f"/{name}.xml", answer)

    def index(request):
        day = "2026-11-01" if len(site.visits("/index.xml")) < 3 else "2026-11-02"
        listed = [(children[0], "2026-11-01"), (children[1], day)]
        named = "".join(f"<sitemap><loc>{url}</loc><lastmod>{day}</lastmod></sitemap>" for url, day in listed)
        return web.Response(text=f"<sitemapindex>{named}</sitemapindex>")

    with Site() as site:
        urls = [site.page("/index.xml", index), *(sitemap(name, days) for name, days in DAYS.items())]
        children = [
            site.page(f"/{name}.xml", _sitemap(f"<loc>{site.page(f'/{name}', '<p>x</p>')}</loc>"))
            for name in ("still", "moved")
        ]
        settings = {"source_urls": ",".join(urls), "source_interval": 1}
        folder = tmp_path_factory.mktemp("read")
        project = Project(folder, [site.url("/differs")], bandwidth="20/s", **settings)
        yield site, project.run_until(lambda: all(len(site.visits(urlsplit(url).path)) > 5 for url in urls))


def test_a_lastmod_that_differs_is_a_change_signal(read):
    """First sight announces nothing, the same date nothing, another date one ChangeSignal, also one that went back."""
    site, crawl = read
    assert crawl.stats["crawlsched/change_signals/received"] == len(DAYS)
    pages = {name: crawl.pages()[site.url(f"/{name}")].page for name in DAYS}
    found = crawl.read(lambda store: [store.reader.announcements_of(page) for page in pages.values()])
    assert [n for [(_, _, n)] in found] == [1, 1, 1]
    assert [row.n_signals for row in crawl.visits(pages["differs"]) if row.n_signals] == [1]


def test_an_index_spares_the_sitemaps_that_it_says_are_unchanged(read):
    """One of two sitemaps gets a new date in the index, and only that one is fetched again."""
    site, _ = read
    assert len(site.visits("/moved.xml")) == 2
    assert len(site.visits("/still.xml")) == 1


def test_many_sitemaps_leave_every_other_slot_to_pages(site, tmp_path):
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


TELLS = """
if not self.told and response.url.endswith("/last"):
    self.told = True
    urls = [self.start_urls[0], "http://unknown.example/"]
    self.crawler.stats.set_value("taken", self.crawler.engine.scheduler.signal(urls, source="shop system"))
"""


def test_feeds_and_texts_lead_to_pages_and_a_program_can_announce(site, tmp_path):
    """RSS, Atom and text each bring their page; what did not change is answered 304; a call is one ChangeSignal."""
    pages = {name: site.page(f"/{name}", f"<p>{name}</p>") for name in ("first", "last", "rss", "atom", "text")}
    bodies = {
        "rss.xml": f"<rss><channel><item><link>{pages['rss']}</link></item></channel></rss>",
        "feed.atom": "<feed xmlns='http://www.w3.org/2005/Atom'><entry>"
        f"<link href='{pages['atom']}'/><updated>2026-11-01T00:00:00Z</updated></entry></feed>",
        "urls.txt": f"{pages['text']}\n",
    }

    def answer(name):
        def of(request):
            if request.headers.get("If-None-Match") == f'"{name}"':
                return web.Response(status=304)
            return web.Response(text=bodies[name], headers={"ETag": f'"{name}"'})

        return of

    sources = [site.page(f"/{name}", answer(name)) for name in bodies]
    tells = spider([pages["first"], pages["last"]], TELLS, also="told = False")
    settings = {"source_urls": ",".join(sources), "source_interval": 1}
    project, paths = Project(tmp_path, tells, bandwidth="10/s", **settings), [*(f"/{name}" for name in pages)]
    crawl = project.run_until(
        lambda: all(map(site.visits, paths)) and all(len(site.visits(f"/{n}")) > 1 for n in bodies)
    )
    assert set(pages.values()) <= set(crawl.outcomes())
    for name in bodies:
        _, *again = site.visits(f"/{name}")
        assert {headers.get("if-none-match") for headers in again} == {f'"{name}"'}
    assert crawl.stats["taken"] == 1
    told = {source.url: source.kind for source in crawl.read(lambda store: store.reader.sources())}
    assert told["shop system"] == "ping"


@pytest.mark.parametrize("is_wanted", [True, False])
def test_feeds_and_sitemaps_that_pages_name_become_sources(site, tmp_path, is_wanted):
    """The first feed of a page on its own site, and what `rel=sitemap` names; none with FIND_SOURCES = False."""
    news = site.page("/news/1", "<p>news</p>")
    old = site.page("/old/1", "<p>old</p>")
    site.page("/feed", f"<rss><channel><item><link>{news}?utm_source=rss</link></item></channel></rss>")
    site.page("/comments", "<rss><channel></channel></rss>")
    site.page("/map.xml", f"<urlset><url><loc>{old}</loc></url></urlset>")
    head = (
        "<link rel='alternate' type='application/rss+xml' href='http://other.example/feed'>"
        "<link rel=alternate type=application/rss+xml href=/feed>"
        "<link rel=alternate type=application/rss+xml href=/comments>"
        "<link rel='sitemap' href='/map.xml'><link rel='alternate' type='application/json' href='/wp-json/1'>"
    )
    starts = [site.page(f"/{n}", f"<html><head>{head}</head><body>{n}</body></html>") for n in range(3)]
    crawl = Project(tmp_path, starts, bandwidth="10/s", find_sources=is_wanted, seconds=4).run()
    sources = crawl.read(lambda store: store.reader.sources())
    read = {source.url: source for source in sources if source.polled_at and source.kind != "robots"}
    assert set(read) == ({site.url("/feed"), site.url("/map.xml")} if is_wanted else set())
    assert ({news, old} <= set(crawl.outcomes())) == is_wanted
    if is_wanted:
        assert {source.quality["document"] for source in read.values()} == {"rss", "urlset"}
