"""What is large holds nothing up: a body, one that unfolds to a hundredfold, many of them."""

import gzip
from itertools import count

from aiohttp import web

from tests.crawling import Project, spider
from tests.waiting import wait_until


def test_a_huge_body_does_not_hold_up_the_others_and_its_changes_are_found(site, tmp_path):
    """A page of 50 MB that is another one at each fetch is read and judged while the slots go on."""
    body = b"<p>some text &amp; more</p>" * 2_000_000
    fetches = count()
    huge = site.page(
        "/huge",
        lambda request: web.Response(body=b"<h1>Cup %d</h1>" % next(fetches) + body, content_type="text/html"),
    )
    site.default = lambda request: "<p>x</p>"
    urls = [*(site.url(f"/{number}", "127.0.0.2") for number in range(20)), huge]
    settings = {"starts_first": 0, "pages": [["*/huge", {"max_interval": 1}]], "fingerprint": "visible_text"}
    process = (project := Project(tmp_path, urls, bandwidth="20/s", seconds=60, **settings)).start()
    wait_until(lambda: len(site.visits("/huge")) > 5, 60.0, project.log)
    outcomes = project.end(process).outcomes()
    # Those that were open at the end tell nothing.
    assert set(outcomes.pop(huge)) - {"dropped"} == {"changed"}
    assert {end for ends in outcomes.values() for end in ends[1:]} - {"dropped"} == {"unchanged"}
    # While the huge page was on its way and being read, the others were visited again and again.
    assert sum(map(len, outcomes.values())) > 60


def test_bodies_that_unfold_to_a_hundredfold_cost_little_more_than_without_us(site, tmp_path):
    """Pages of 66 MB that come as 128 KB, several at once: one is read at a time, up to a limit."""
    body = gzip.compress(b"<p>bomb</p>" * 6_000_000, 9)
    looks = 'self.crawler.stats.set_value("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)'
    peaks = []
    site.default = lambda request: web.Response(
        body=body, headers={"Content-Encoding": "gzip"}, content_type="text/html"
    )
    bombs = spider([site.url(f"/{number}") for number in range(2)], looks, before="import resource")
    for addons in ({"crawlsched.Addon": 500}, {}):
        folder = tmp_path / str(len(addons))
        folder.mkdir()
        crawl = Project(folder, bombs, ADDONS=addons, one_pass=True, RETRY_ENABLED=False).run()
        assert crawl.stats["response_received_count"] == 2
        peaks.append(crawl.stats["peak"])
    assert peaks[0] - peaks[1] < 300.0


# `close_spider` of a pipeline is the last that Scrapy does before the scheduler is closed, `closed` the first after it.
