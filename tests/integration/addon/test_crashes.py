"""kill -9 loses next to nothing, a change is never lost to the spider, SIGTERM loses nothing."""

import signal
from pathlib import Path

from tests.crawling import FOLLOWS, YIELDS, Project, spider
from tests.site import Site
from tests.waiting import wait_until

PIPELINE = """
import asyncio, os


class Pipeline:
    async def process_item(self, item, spider=None):
        if os.path.exists("hang.txt"):
            open("hanging.txt", "w").close()
            await asyncio.sleep(60)
        with open("delivered.txt", "a") as file:
            print(item["url"], file=file)
        if item["url"].endswith("/found") and os.path.exists("kill.txt"):
            os.kill(os.getpid(), 9)
        return item
"""
PAGES = """
async def start(self):
    for url in self.start_urls:
        given = {"cb_kwargs": {"kept": url[-3:]}, "meta": {"kept": [1, 2]}}
        yield scrapy.Request(url, self.parse_page, headers={"X-Kept": "yes"}, cookies={"c": "1"}, **given)

def parse_page(self, response, kept):
    assert response.meta["kept"] == [1, 2] and kept == response.url[-3:]
    yield {"url": response.url}
"""
WITH_IT = {"spider_under_test.Pipeline": 1}


def _project(site: Site, folder: Path, **settings: str) -> Project:
    urls = [site.page(f"/{number}", f"<p>{number}</p>") for number in range(100, 300)]
    seldom = [["*", {"min_interval": 1000}]]
    text = spider(urls, before=PIPELINE, also=PAGES)
    return Project(folder, text, pages=seldom, ITEM_PIPELINES=WITH_IT, **settings)


def _wait_until_stored(site: Site, project: Project, pages: int, visited: int) -> None:
    """Wait until the store of a running crawl holds so many pages, of which so many have been visited."""
    wait_until(lambda: site.requests)  # the store is open

    def is_stored() -> bool:
        outcomes = project.so_far().outcomes()
        return len(outcomes) >= pages and sum(map(bool, outcomes.values())) >= visited

    wait_until(is_stored)


def test_after_kill_9_the_rest_is_crawled_with_the_same_requests(site, tmp_path):
    """The last moment alone is forgotten; headers, cookies, cb_kwargs, meta and callback are those of the first."""
    project = _project(site, tmp_path, bandwidth="10/s", CONCURRENT_REQUESTS_PER_DOMAIN=30)
    process = project.start()
    _wait_until_stored(site, project, pages=200, visited=20)
    process.kill()
    process.wait()
    answered_before = sum(when < site.times[-1] - 1.0 - site.late for when in site.times)
    outcomes = project.so_far().outcomes()
    assert len(outcomes) == 200
    assert sum(map(bool, outcomes.values())) >= answered_before
    before = len(site.requests)
    # The second crawl's spider starts nothing: what it crawls comes from the store.
    project.file.write_text(
        project.file.read_text().replace("async def start(self):", "async def start(self):\n        return")
    )

    def delivered():
        return set(project.lines("delivered.txt"))

    project.run_until(lambda: len(delivered()) == 200, bandwidth="100/s")
    later = [headers for path, headers in site.requests[before:] if path != "/robots.txt"]
    assert later
    assert all(headers["x-kept"] == "yes" and headers["cookie"] == "c=1" for headers in later)


def test_a_change_that_was_not_delivered_comes_again_after_a_crash(site, tmp_path):
    """The pipeline hangs, the process is killed, and the next one delivers the same page at once."""
    project = _project(site, tmp_path)
    (tmp_path / "hang.txt").write_text("")
    process = project.start()
    wait_until((tmp_path / "hanging.txt").exists)
    # The observations are in the store then, the fingerprints must not be.
    _wait_until_stored(site, project, pages=200, visited=1)
    process.kill()
    process.wait()
    assert not (tmp_path / "delivered.txt").exists()
    (tmp_path / "hang.txt").unlink()
    crawl = project.run_until(lambda: len(project.lines("delivered.txt")) >= 200)
    assert "changes had not been delivered when the last crawl ended; they go first." in crawl.log
    assert sorted(project.lines("delivered.txt")) == sorted(site.url(f"/{number}") for number in range(100, 300))


ONCE = """
async def start(self):
    if not os.path.exists("started"):
        open("started", "w").close()
        yield scrapy.Request(self.start_urls[0])
"""


def test_a_page_that_is_in_no_row_when_its_item_is_delivered_is_found_again(site, tmp_path):
    """Killed at once: the page that named it does not count as delivered either, and names it again."""
    listed = site.page("/list", "<p>nothing yet</p>")
    text = spider([listed], f"{YIELDS}\n{FOLLOWS}", before=PIPELINE, also=ONCE)
    project = Project(tmp_path, text, ITEM_PIPELINES=WITH_IT, bandwidth="100/s")
    (tmp_path / "kill.txt").touch()
    process = project.start()
    _wait_until_stored(site, project, pages=1, visited=1)
    site.page("/found", "<p>x</p>")
    site.page("/list", "<p>here it is</p><a href=/found>found</a>")
    process.wait(20)
    assert process.returncode == -signal.SIGKILL
    (tmp_path / "kill.txt").unlink()
    crawl = project.run(visits=30)
    assert site.url("/found") in crawl.outcomes()
    assert project.lines("delivered.txt").count(site.url("/found")) == 2  # the second time after the kill
