"""What a spider's requests become: pages, the newest request of each, and one for each session of a URL."""

from collections import Counter

import pytest

from tests.crawling import Project, spider

FOLLOWS = """
for link in response.css("a::attr(href)").getall():
    yield response.follow(link, self.parse_linked)
"""
MORE = """
async def start(self):
    async for request in super().start():
        yield request
    url = self.start_urls[0]
    yield scrapy.Request(url + "untracked", self.once, meta={"crawlsched_track": False})
    yield scrapy.Request(url + "not-data", lambda response: None)
    yield scrapy.Request(url + "by-meta", meta={"crawlsched_importance": 7})

def parse_linked(self, response):
    yield {"url": response.url}

def once(self, response):
    pass
"""


@pytest.fixture
def site(site):
    site.page("/", '<a href="/linked">one</a> <a href="/important">two</a> <a href="/linked">again</a>')
    for path in ("linked", "important", "untracked", "not-data", "by-meta"):
        site.page(f"/{path}", f"<p>{path}</p>")
    return site


@pytest.fixture
def project(site, tmp_path) -> Project:
    return Project(tmp_path, spider([site.url("/")], FOLLOWS, also=MORE))


def test_links_become_pages_and_the_rest_is_crawled_once(site, project: Project):
    """Links are refreshed; what opted out or cannot be written down is crawled once, by the fallback scheduler."""
    crawl = project.run(visits=20)
    assert set(crawl.outcomes()) == {site.url(path) for path in ("/", "/linked", "/important", "/by-meta")}
    assert len(site.visits("/linked")) >= 3
    assert len(site.visits("/untracked")) == len(site.visits("/not-data")) == 1
    assert crawl.log.count("is crawled once and not kept fresh (this is logged once a callback)") == 1
    # The second link to /linked is known already.
    assert crawl.stats["crawlsched/known"] == 1


def test_a_floor_that_asks_for_more_than_the_rate_is_said_at_the_start(project: Project):
    """The second start knows the pages, and says that they cannot all be kept to the interval."""
    project.run(visits=8)
    crawl = project.run(pages=[["*", {"max_interval": 1}]], bandwidth="2/s", visits=6)
    assert "CRAWLSCHED_PAGES asks for 4 crawls a second of these 4 pages" in crawl.log
    assert crawl.stats["crawlsched/dispatched/overdue"] >= 4


def test_a_restart_goes_on_where_it_stopped(site, project: Project):
    """start() names its page again: no new page, but visited first and delivered; the others are left in peace."""
    seldom = [["*", {"min_interval": 1000}]]
    project.run(pages=seldom, visits=4)
    before = len(site.visits("/linked"))
    crawl = project.run(pages=seldom, seconds=3)
    assert len(site.visits("/linked")) == before == 1
    assert len(site.visits("/")) == 2
    assert crawl.stats["crawlsched/dispatched/start"] == 2
    assert "crawlsched/pages/found" not in crawl.stats


@pytest.mark.parametrize(
    ("setting", "value"),
    [("TWISTED_REACTOR_ENABLED", False), ("TWISTED_REACTOR", "twisted.internet.epollreactor.EPollReactor")],
    ids=["no reactor", "not asyncio"],
)
def test_other_event_loops_do_as_well(project: Project, setting, value):
    """Without a Twisted reactor, and with one that is not asyncio's."""
    crawl = project.run(visits=20, **{setting: value})
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"] >= 20
    assert len(crawl.outcomes()) == 4


START = """
async def start(self):
    for number, city in enumerate(["berlin", "paris", "rome"]):
        given = {"cookies": {"city": city}, "meta": {"cookiejar": number}, "cb_kwargs": {"what": city}}
        yield scrapy.Request("SITE/prices", self.told, dont_filter=True, **given)
    for language in ("de", "fr"):
        given = {"headers": {"Accept-Language": language}, "cb_kwargs": {"what": "language"}}
        yield scrapy.Request("SITE/lang", self.told, dont_filter=True, **given)

def told(self, response, what):
    yield {"what": what, "text": response.text}
"""


def test_sessions_of_one_url_are_pages_of_their_own(site, tmp_path):
    """Five requests for two URLs give five items; each session is kept fresh by itself; commands reach all."""
    state = {"rome": "one"}

    def prices(request):
        city = request.cookies.get("city", "nobody")
        return f"<p>{city} {state.get(city, '')}</p>"

    def language(request):
        return f"<p>{request.headers['Accept-Language']}</p>"

    site.page("/prices", prices)
    site.page("/lang", language)
    asks = spider([], also=START.replace("SITE", site.url("")))
    project = Project(tmp_path, asks, one_pass=True, starts_first=0)
    crawl = project.run()
    assert Counter(item["what"] for item in crawl.items) == {"berlin": 1, "paris": 1, "rome": 1, "language": 2}
    assert crawl.stats["crawlsched/variants"] == 3
    # Without start(), to see that each is visited by what is kept of its own request.
    project.rewrite(asks.replace("async def start", "async def not_start"))
    state["rome"] = "two"
    assert project.run().items == [{"what": "rome", "text": "<p>rome two</p>"}]
    assert len(site.visits("/prices")) == 6
    for command in ("recrawl", "signal"):
        crawl.said(command, site.url("/prices"))
    crawl = project.run()
    assert sorted(item["what"] for item in crawl.items) == ["berlin", "paris", "rome"]
    assert crawl.stats["crawlsched/change_signals/received"] == 3
    assert crawl.said("why", site.url("/prices")).count("variant 'cookiejar") == 3

    # A redirect takes each of them along; the pages of another address are new ones.
    site.page("/moved", prices)
    site.page("/prices", "", status=301, Location="/moved")
    assert sorted(item["what"] for item in project.run().items) == ["berlin", "paris", "rome"]
    assert crawl.said("why", site.url("/moved")).count("variant 'cookiejar") == 3
    assert "3 pages deleted" in crawl.said("forget", site.url("/prices"), "--yes")
