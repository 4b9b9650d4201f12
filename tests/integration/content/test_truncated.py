"""A body that was cut short is evidence of nothing, by a real crawl."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from aiohttp import web

from tests.crawling import Project, spider
from tests.site import Site

STOPS = """
@classmethod
def from_crawler(cls, crawler):
    spider = super().from_crawler(crawler)
    crawler.signals.connect(spider.stop_after_the_headers, scrapy.signals.headers_received)
    return spider

def stop_after_the_headers(self, request):
    if request.url.endswith("/stopped"):
        raise scrapy.exceptions.StopDownload(fail=False)
"""
PARSE = 'yield {"path": response.url[-6:], "is_cut": bool({"dataloss", "download_stopped"} & set(response.flags))}'
# Which answers of each page are cut short, by their numbers.
CUT = {"/first": {0, 1}, "/later": {1, 2, 4}, "/every": set(range(1000)), "/stopped": set()}


def test_what_is_cut_short_is_delivered_once_and_counts_as_nothing(site: Site, tmp_path: Path) -> None:
    """Where nothing was delivered before, as by plain Scrapy; the whole body follows, and nothing has changed."""
    asked: Counter[str] = Counter()

    async def answer(request: web.Request) -> web.StreamResponse:
        body = "".join(f"<p>paragraph {number} of {request.path}</p>" for number in range(60)).encode()
        is_cut = asked[request.path] in CUT[request.path]
        asked[request.path] += 1
        response = web.StreamResponse(headers={"Content-Type": "text/html", "Content-Length": str(len(body))})
        await response.prepare(request)
        await response.write(body[: len(body) // (2 if is_cut else 1)])
        if is_cut:
            request.transport.close()
        return response

    urls = [site.page(path, answer) for path in CUT]
    project = Project(tmp_path, spider(urls, PARSE, also=STOPS), bandwidth="5/s", seconds=16)
    crawl = project.run(DOWNLOAD_FAIL_ON_DATALOSS=False)
    items = Counter((item["path"], item["is_cut"]) for item in crawl.items)
    first, other = {("/first", True): 1, ("/first", False): 1}, {("/later", False): 1}
    assert items == {**first, **other, ("/every", True): 1, ("topped", True): 1}
    assert "crawlsched/changes_found" not in crawl.stats
    assert crawl.stats["crawlsched/truncated"] >= 8
    assert crawl.log.count(" were cut short after an earlier body had been delivered") == 1
    for path in ("/every", "/stopped"):
        assert 3 <= asked[path] <= 6  # soon, and ever more rarely
