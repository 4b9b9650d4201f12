"""Where a crawl goes: what a site names has to be allowed by the spider, and leads to no private address."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from aiohttp import web

from tests.crawling import Project
from tests.site import Site

SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}
    allowed_domains = {domains!r}

    def parse(self, response):
        pass
"""


def test_sitemaps_that_a_site_names_are_no_way_into_a_network(tmp_path: Path) -> None:
    """127.0.0.1 is the site, .2 another one of the spider's, .3 a machine that nobody but the site has named."""
    with Site(("127.0.0.1", "127.0.0.2", "127.0.0.3")) as site:
        secret = site.url("/latest/meta-data", "127.0.0.3")
        site.page("/", "<p>x</p>")
        site.page(
            "/robots.txt",
            f"Sitemap: {secret}\nSitemap: {site.url('/moved.xml')}\nSitemap: {site.url('/index.xml')}\n"
            f"Sitemap: {site.url('/good.xml')}\n",
        )
        site.page("/moved.xml", "", status=302, Location=f"{secret}/moved")
        site.page("/index.xml", f"<sitemapindex><sitemap><loc>{secret}/child</loc></sitemap></sitemapindex>")
        site.page("/good.xml", f"<urlset><url><loc>{site.url('/listed')}</loc></url></urlset>")
        site.page("/listed", "<p>x</p>")
        reached: list[str] = []

        def other(request: web.Request) -> web.Response:
            if request.host.startswith("127.0.0.3"):
                reached.append(request.path)
            return web.Response(text="<p>x</p>", content_type="text/html")

        site.default = other
        for domains, private in (
            (["127.0.0.1"], "127.0.0.0/8"),  # refused because the spider does not allow it
            ([], "127.0.0.1/32"),  # refused because it is private
        ):
            folder = tmp_path / str(len(domains))
            folder.mkdir()
            crawl = Project(
                folder,
                SPIDER.format(urls=[site.url("/"), site.url("/two", "127.0.0.2")], domains=domains),
                CRAWLSCHED_BANDWIDTH="20/s",
                CRAWLSCHED_PRIVATE_ADDRESSES=private,
                CRAWLSCHED_SOURCE_INTERVAL="5",
                ROBOTSTXT_OBEY="True",
                CLOSESPIDER_TIMEOUT="6",
            ).run()
            assert reached == []
            assert site.url("/listed") in crawl.outcomes()
            assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]
        # The spider's own requests go wherever it wants them to.
        assert site.visits("/two")
        mode = stat.S_IMODE(os.stat(tmp_path / "0" / "crawl.db").st_mode)
        assert mode == 0o600


# A name server whose answer for what begins with "changes" is another one at each question.
NAMES = """
from scrapy.resolver import CachingThreadedResolver
from twisted.internet import defer

class Resolver(CachingThreadedResolver):
    asked = dict()

    def getHostByName(self, name, timeout=()):
        Resolver.asked[name] = n_asked = Resolver.asked.get(name, 0) + 1
        is_inner = name.startswith("inner") or (name.startswith("changes") and n_asked % 2 == 0)
        return defer.succeed("127.0.0.3" if is_inner else "127.0.0.1")
"""


def test_a_name_is_judged_by_the_address_that_is_connected_to(tmp_path: Path) -> None:
    """Robots.txt lines, redirects, children of an index and their redirects, and names that soon lead elsewhere.

    Only the site may be asked, and only the spider may ask whom it wants.
    """
    with Site(("127.0.0.1", "127.0.0.3")) as site:
        reached: list[str] = []

        def other(request: web.Request) -> web.Response:
            # By the machine that was connected to, whatever it was called.
            if request.transport is not None and request.transport.get_extra_info("sockname")[0] == "127.0.0.3":
                reached.append(request.raw_path)
            return web.Response(text="<urlset></urlset>", content_type="text/xml")

        def named(name: str, path: str) -> str:
            return site.url(path, f"{name}.test")

        site.default = other
        site.page("/", "<p>x</p>")
        changing = [named(f"changes{number}", "/changes") for number in range(4)]
        lines = [named("inner1", "/line"), named("site", "/moved.xml"), named("site", "/index.xml"), *changing]
        site.page("/robots.txt", "".join(f"Sitemap: {line}\n" for line in lines))
        site.page("/moved.xml", "", status=302, Location=named("inner2", "/redirect"))
        site.page("/child.xml", "", status=301, Location=named("inner3", "/redirect-of-a-child"))
        children = (named("inner4", "/child"), named("site", "/child.xml"))
        locations = "".join(f"<sitemap><loc>{child}</loc></sitemap>" for child in children)
        site.page("/index.xml", f"<sitemapindex>{locations}</sitemapindex>")
        crawl = Project(
            tmp_path,
            NAMES + SPIDER.format(urls=[named("site", "/"), named("inner5", "/spiders-own")], domains=[]),
            CRAWLSCHED_BANDWIDTH="20/s",
            CRAWLSCHED_PRIVATE_ADDRESSES="127.0.0.1/32",
            CRAWLSCHED_SOURCE_INTERVAL="1",
            ROBOTSTXT_OBEY="True",
            TWISTED_DNS_RESOLVER="spider_under_test.Resolver",
            CLOSESPIDER_TIMEOUT="5",
        ).run()
        assert set(reached) == {"/spiders-own"}
        robots = [headers["host"] for path, headers in site.requests if path == "/robots.txt"]
        assert {host.split(".")[0] for host in robots if host.startswith("inner")} == {"inner5"}
        for path in ("/moved.xml", "/index.xml", "/child.xml", "/changes"):
            assert site.visits(path), f"{path} was never asked for"
        assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]


def test_a_start_request_allows_its_own_redirects_and_no_later_ones(tmp_path: Path) -> None:
    """What start() marks dont_filter may lead anywhere when it goes; where the page leads later is asked about."""
    with Site(("127.0.0.1", "127.0.0.2")) as site:
        at_once = site.page("/at-once", "", status=302, Location=site.url("/first", "127.0.0.2"))
        n_asked = 0

        def later(request: web.Request) -> web.Response:
            nonlocal n_asked
            n_asked += 1
            if n_asked > 2:
                return web.Response(status=302, headers={"Location": site.url("/later", "127.0.0.2")})
            return web.Response(text=f"<p>{n_asked}</p>", content_type="text/html")

        turned = site.page("/turned", later)
        for path in ("/first", "/later"):
            site.page(path, "<p>x</p>")
        crawl = Project(
            tmp_path,
            SPIDER.format(urls=[turned, at_once], domains=["127.0.0.1"]),
            CRAWLSCHED_BANDWIDTH="10/s",
            CRAWLSCHED_FIND_SOURCES="False",
            CRAWLSCHED_ERROR_INTERVAL="1",
            CLOSESPIDER_TIMEOUT="6",
        ).run()
        assert n_asked >= 3
        assert site.visits("/later") == []
        assert len(site.visits("/first")) == 1
        assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]
