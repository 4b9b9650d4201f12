"""A crawl that is told to starts its page, fills its figures, and leaves no process behind, however it ends."""

import re
import socket

from crawlsched.store import Store
from crawlsched.store.records import samples_since
from tests import children
from tests.crawling import Project
from tests.integration.web.conftest import TOKEN, Answer, Served
from tests.site import Site
from tests.waiting import wait_until


def _listens(address: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(address.rpartition(":")[2].strip("/")))) == 0


def test_a_crawl_shows_itself_and_its_page_ends_with_it(tmp_path):
    """Health is well while it runs, figures come by themselves; after kill -9 nobody listens."""
    with children.all_ended(), Site() as site:
        urls = [site.page(f"/{number}", f"<p>{number}</p>") for number in range(12)]
        web = {"address": 0, "token": TOKEN}
        project = Project(tmp_path, [*urls, site.url("/gone")], web=web, bandwidth="20/s", seconds=90)
        crawl = project.start()
        project.wait_for_log("The page about this crawl is at")
        found = re.search(r"The page about this crawl is at (http://[\d.:]+/)\?token=", project.log())
        page = Served(found[1], project.database_url)
        with_store = Store.open(project.database_url, "test", read_only=True)
        wait_until(lambda: bool(samples_since(with_store, 0.0)))
        wait_until(lambda: Answer(page, "/healthz").status == 200)
        (sample, *_) = samples_since(with_store, 0.0)
        assert sample["used"] > 0
        assert 0.0 <= sample["expected_freshness"] <= 1.0
        with_store.close()
        assert 'crawlsched_up{collection="test"} 1.0' in Answer(page, "/metrics").text
        assert urls[3] in Answer(page, "/pages?order=oldest", Authorization=f"Bearer {TOKEN}").text
        project.kill(crawl)
        wait_until(lambda: not _listens(page.address))
        again = project.start()
        project.wait_for_log("The page about this crawl is at")
        ended = project.end(again)
        address = re.findall(r"The page about this crawl is at (http://[\d.:]+/)", ended.log)[-1]
        assert not _listens(address)
        assert [file.name for file in tmp_path.glob("crawl.db*")] == ["crawl.db"]
