"""What a spider's requests become: pages, the newest request of each, and one for each session of a URL."""

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


def test_pages_beyond_a_floor_that_asks_for_more_than_the_rate_are_overdue(project: Project):
    """The second start knows the pages, which cannot all be kept to the interval."""
    project.run(visits=8)
    crawl = project.run(pages=[["*", {"max_interval": 1}]], bandwidth="2/s", visits=6)
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


SESSIONS = """
class Sessions(RequestFingerprinter):
    def fingerprint(self, request):
        return blake2b(super().fingerprint(request) + str(request.meta["cookiejar"]).encode(), digest_size=20).digest()
"""
START = """
async def start(self):
    for number, city in enumerate(["berlin", "paris", "rome"]):
        given = {"cookies": {"city": city}, "meta": {"cookiejar": number}, "cb_kwargs": {"what": city}}
        yield scrapy.Request("SITE/prices", self.told, dont_filter=True, **given)

def told(self, response, what):
    yield {"what": what, "text": response.text}
"""


@pytest.mark.parametrize("own", [False, True], ids=["Scrapy's fingerprints", "the project's fingerprints"])
def test_sessions_of_one_url(site, tmp_path, own):
    """Each gives an item; by fingerprints that tell them apart each is a page, visited by what is kept of it."""
    state = {"rome": "one"}

    def prices(request):
        city = request.cookies.get("city", "nobody")
        return f"<p>{city} {state.get(city, '')}</p>"

    site.page("/prices", prices)
    before = "from hashlib import blake2b\nfrom scrapy.utils.request import RequestFingerprinter\n" + SESSIONS
    asks = spider([], before=before, also=START.replace("SITE", site.url("")))
    classes = {"REQUEST_FINGERPRINTER_CLASS": "spider_under_test.Sessions"} if own else {}
    project = Project(tmp_path, asks, one_pass=True, starts_first=0, **classes)
    assert sorted(item["what"] for item in project.run().items) == ["berlin", "paris", "rome"]
    if own:
        project.rewrite(asks.replace("async def start", "async def not_start"))
        state["rome"] = "two"
        assert project.run().items == [{"what": "rome", "text": "<p>rome two</p>"}]
        assert len(site.visits("/prices")) == 6
