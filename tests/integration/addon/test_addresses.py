"""Where a crawl goes: what a site names has to be allowed by the spider, be an address, and lead to no private one."""

import http.client
import json
import os
import socket
import stat
from collections import Counter
from contextlib import closing

import pytest
from aiohttp import web
from scrapy.settings import default_settings

from crawlsched.store import Batch, Source, Store
from tests.crawling import YIELDS, Project, spider
from tests.waiting import wait_until


def _allows(*domains: str) -> str:
    return f"allowed_domains = {list(domains)}"


def test_sitemaps_that_a_site_names_lead_nowhere_that_the_spider_does_not_allow(site, tmp_path):
    """127.0.0.1 is the site, .2 another one of the spider's, .3 a machine that nobody but the site has named."""
    secret = site.url("/latest/meta-data", "127.0.0.3")
    site.default = lambda request: "<p>x</p>"
    named = [secret, *(site.url(f"/{name}.xml") for name in ("moved", "index", "good"))]
    site.page("/robots.txt", "".join(f"Sitemap: {url}\n" for url in named))
    site.page("/moved.xml", "", status=302, Location=f"{secret}/moved")
    site.page("/index.xml", f"<sitemapindex><sitemap><loc>{secret}/child</loc></sitemap></sitemapindex>")
    site.page("/good.xml", f"<urlset><url><loc>{site.url('/listed')}</loc></url></urlset>")
    asks = spider([site.url("/"), site.url("/two", "127.0.0.2")], also=_allows("127.0.0.1"))
    settings = {"find_sources": True, "source_interval": 1, "ROBOTSTXT_OBEY": True}
    project = Project(tmp_path, asks, bandwidth="20/s", **settings)
    # Each was read once, and what it leads to was asked for or refused.
    crawl = project.run_until(lambda: all(len(site.visits(f"/{name}.xml")) > 1 for name in ("moved", "index", "good")))
    assert not [headers for _, headers in site.requests if headers["host"].startswith("127.0.0.3")]
    assert site.url("/listed") in crawl.outcomes()
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]
    # The spider's own requests go wherever it wants them to.
    assert site.visits("/two")
    assert stat.S_IMODE(os.stat(tmp_path / "crawl.db").st_mode) == 0o600


# Older versions of Scrapy have another name for it.
RESOLVER = "TWISTED_DNS_RESOLVER" if hasattr(default_settings, "TWISTED_DNS_RESOLVER") else "DNS_RESOLVER"
# A name server whose answer for what begins with "changes" is another one at each question; Scrapy keeps the first.
NAMES = """
from scrapy.resolver import CachingThreadedResolver, dnscache
from twisted.internet import defer


class Resolver(CachingThreadedResolver):
    asked = dict()

    def getHostByName(self, name, timeout=()):
        if name in dnscache:
            return defer.succeed(dnscache[name])
        Resolver.asked[name] = n_asked = Resolver.asked.get(name, 0) + 1
        is_inner = name.startswith("inner") or (name.startswith("changes") and n_asked % 2 == 0)
        return defer.succeed(self._cache_result("127.0.0.3" if is_inner else "127.0.0.1", name))
"""


def test_a_name_is_judged_by_the_address_that_is_connected_to(site, tmp_path):
    """Robots.txt lines, redirects, children of an index, their redirects, addresses, names that soon lead elsewhere.

    Only the site may be asked, and only the spider may ask whom it wants.
    """
    reached = []

    def other(request):
        # By the machine that was connected to, whatever it was called.
        if request.transport is not None and request.transport.get_extra_info("sockname")[0] == "127.0.0.3":
            reached.append(request.raw_path)
        return web.Response(text="<urlset></urlset>", content_type="text/xml")

    def named(name, path):
        return site.url(path, f"{name}.test")

    site.default = other
    site.page("/", "<p>x</p>")
    changing = [named(f"changes{number}", "/changes") for number in range(4)]
    lines = [named("inner1", "/line"), site.url("/literal", "127.0.0.3"), *changing]
    # The spider itself has asked inner5, so that its address is known when the site names it.
    lines += [named("site", "/moved.xml"), named("site", "/index.xml"), named("inner5", "/known")]
    site.page("/robots.txt", "".join(f"Sitemap: {line}\n" for line in lines))
    site.page("/moved.xml", "", status=302, Location=named("inner2", "/redirect"))
    site.page("/child.xml", "", status=301, Location=named("inner3", "/redirect-of-a-child"))
    children = (named("inner4", "/child"), named("site", "/child.xml"))
    locations = "".join(f"<sitemap><loc>{child}</loc></sitemap>" for child in children)
    site.page("/index.xml", f"<sitemapindex>{locations}</sitemapindex>")
    wanted = ("/moved.xml", "/index.xml", "/child.xml", "/changes")
    project = Project(
        tmp_path,
        spider([named("site", "/"), named("inner5", "/spiders-own")], before=NAMES),
        bandwidth="20/s",
        private_addresses="127.0.0.1/32",
        find_sources=True,
        source_interval=1,
        ROBOTSTXT_OBEY=True,
        **{RESOLVER: "spider_under_test.Resolver"},
    )
    crawl = project.run_until(lambda: all(len(site.visits(path)) > 1 for path in wanted))
    assert set(reached) == {"/spiders-own"}
    robots = [headers["host"] for path, headers in site.requests if path == "/robots.txt"]
    assert {host.split(".")[0] for host in robots if host.startswith("inner")} == {"inner5"}
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]


def test_a_start_request_allows_its_own_redirects_and_no_later_ones(site, tmp_path):
    """What start() marks dont_filter may lead anywhere when it goes; where the page leads later is asked about."""
    at_once = site.page("/at-once", "", status=302, Location=site.url("/first", "127.0.0.2"))

    def later(request):
        n_asked = len(site.visits("/turned"))
        if n_asked > 2:
            return web.Response(status=302, headers={"Location": site.url("/later", "127.0.0.2")})
        return f"<p>{n_asked}</p>"

    turned = site.page("/turned", later)
    site.default = lambda request: "<p>x</p>"
    spiders = spider([turned, at_once], also=_allows("127.0.0.1"))
    project = Project(tmp_path, spiders, bandwidth="10/s", error_interval=1)
    crawl = project.run_until(lambda: site.requests and len(project.so_far().outcomes().get(turned, [])) > 2)
    assert site.visits("/later") == []
    assert len(site.visits("/first")) == 1
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]


BY_WHOM = """
for link in response.css("a"):
    yield response.follow(link, self.item)
if not response.css("a"):
    yield {"by": "start", "path": response.url[-3:]}
"""
ITEM = """
def item(self, response):
    yield {"by": "link", "path": response.url[-3:]}
"""


@pytest.mark.parametrize("status", [301, 302])
def test_a_permanent_redirect_makes_its_target_the_page(site, tmp_path, status):
    """Four start requests and six links lead to five pages; a temporary redirect stays a page of its own."""
    said = {"word": "one"}

    def answer(request):
        name, _, number = request.path[1:].partition("/")
        if name.startswith("old"):
            return web.Response(status=status, headers={"Location": f"/new-{name[-1]}/{int(number) % 3}"})
        links = "".join(f'<a href="/old-l/{number}">x</a>' for number in range(6)) if name == "list" else ""
        # Each page in words of its own: what all say alike would be the site's.
        own = f"{request.path} {'abc'[int(number or 0) % 3]}{name[-1]}{said['word']}"
        return f"<p>{own}</p>{links}"

    site.default = answer
    urls = [site.url(path) for path in ("/list", "/old-s/0", "/old-s/3", "/old-s/1", "/old-s/4")]
    project = Project(tmp_path, spider(urls, BY_WHOM, also=ITEM), one_pass=True)
    runs = []
    for word in ("one", "one", "two"):
        said["word"] = word
        runs.append(Counter(f"{item['by']} {item['path']}" for item in project.run().items))
    each = 1 if status != 302 else 2
    by_start = {f"start s/{number}": each for number in range(2)}
    by_link = {f"link l/{number}": each for number in range(3)}
    # Start pages are delivered in each run, and the others when they have changed.
    assert runs == [by_start | by_link, by_start, by_start | by_link]


HANDLER = """
class Elsewhere:
    lazy = True

    def __init__(self, *arguments):
        pass

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    def _answer(self, request):
        return scrapy.http.HtmlResponse(request.url, body=b"<p>fetched elsewhere</p>", request=request)

    if scrapy.version_info >= (2, 14):
        async def download_request(self, request):
            return self._answer(request)

        async def close(self):
            pass
    else:
        def download_request(self, request, spider):
            from twisted.internet.defer import succeed
            return succeed(self._answer(request))
"""
FAILED = """
async def start(self):
    for url in self.start_urls:
        yield scrapy.Request(url, errback=self.failed)

def failed(self, failure):
    yield {"failed": failure.request.url}
"""


def test_a_handler_is_asked_whatever_the_resolver_says(tmp_path):
    """Names are the handler's business: those of the project deliver, Scrapy's own reports what it cannot find."""
    known = ["http://only-the-handler-knows.invalid/a", "s3://a-bucket-of-ours/key"]
    asks = spider([*known, "https://nobody.invalid/"], YIELDS, before=HANDLER, also=FAILED)
    handlers = dict.fromkeys(("http", "s3"), "spider_under_test.Elsewhere")
    crawl = Project(tmp_path, asks, DOWNLOAD_HANDLERS=handlers, one_pass=True, RETRY_ENABLED=False).run()
    wanted = [{"failed": "https://nobody.invalid/"}, *({"url": url} for url in known)]
    assert sorted(crawl.items, key=str) == sorted(wanted, key=str)
    assert crawl.stats["finish_reason"] == "finished"


KEY = "0123456789abcdef"


def _pinged(project: Project, *urls: str, key: str = KEY) -> int:
    body = json.dumps({"host": "127.0.0.1", "key": key, "urlList": urls}).encode()
    with closing(http.client.HTTPConnection(*project.receiver_address(), timeout=10)) as connection:
        connection.request("POST", "/indexnow", body)
        return connection.getresponse().status


def test_urls_that_nothing_can_ask_for_stop_nothing(site, tmp_path):
    """A port that is none in robots.txt, in a sitemap and in pings: the rest is read, and the crawl goes on.

    Nor does what is no HTTP fill the log with tracebacks, for which nobody would need a key.
    """
    names = "".join(f"Sitemap: http://{name}/sitemap.xml\n" for name in ("127.0.0.1:99999", "127.0.0.1:abc", "[::1"))
    site.page("/robots.txt", f"User-agent: *\n{names}Sitemap: /sitemap.xml\n")
    hosts = "127.0.0.1:99999", "127.0.0.1:abc", f"127.0.0.1:{site.port}"
    site.page("/sitemap.xml", f"<urlset>{''.join(f'<url><loc>http://{h}/a</loc></url>' for h in hosts)}</urlset>")
    site.page("/a", "<p>listed behind those")
    start = site.page("/", "<p>start")
    settings = {"receiver": {"address": 0, "key": KEY}, "find_sources": True, "source_interval": 2}
    project = Project(tmp_path, [start], ROBOTSTXT_OBEY=True, seconds=0, **settings)
    # Kept by an earlier version, which looked at URLs less closely.
    old = Source(0, "sitemap", "http://127.0.0.1:99999/old.xml", "127.0.0.1", next_poll_at=0.0)
    with closing(Store.open(project.database_url, "test")) as store:
        store.save(Batch(sources={0: old}))
    process = project.start()
    bad = ("http://127.0.0.1:99999/", "http://127.0.0.1:abc/", "http://127.0.0.1/\ud800")
    answers = [_pinged(project, url) for url in bad]
    answers.append(_pinged(project, *bad, key="\ud800"))
    with socket.create_connection(project.receiver_address(), timeout=10) as connection:
        connection.sendall(b"POST /indexnow HTTP/1.1\r\nContent-Encoding: deflate\r\nContent-Length: 3\r\n\r\nabc")
        assert b" 400 " in connection.recv(1000)
    answers.append(_pinged(project, start))
    n = len(site.requests)
    wait_until(lambda: site.visits("/a") and len(site.requests) > n + 20)
    crawl = project.end(process)
    assert answers == [400, 400, 400, 403, 202]
    assert "The request for http://127.0.0.1:99999/old.xml cannot be made" in crawl.log
    assert "Traceback" not in crawl.log
    assert crawl.outcomes().keys() == {start, site.url("/a")}
    assert crawl.stats["crawlsched/change_signals/received"] == 1
