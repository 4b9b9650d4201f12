"""What goes wrong outside is counted or said in a sentence, and the crawl goes on where it can."""

import re
import resource
import time
from contextlib import closing

from crawlsched.store import Store
from tests.crawling import Project, spider
from tests.databases import rows
from tests.waiting import wait_until

SHORT_PATIENCE = """
from crawlsched.crawl import collection
collection._LAST_WRITES = 2.0
"""


def test_a_full_disk_stops_dispatching_and_loses_nothing(site, tmp_path):
    """One line says so; the crawl waits and goes on when there is room. What is not written at the end is said."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
    project = Project(tmp_path, spider(urls, before=SHORT_PATIENCE), bandwidth="20/s")
    process = project.start()

    def limit_files_to(size):  # of the database's log: for SQLite that is a full disk
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    wait_until(lambda: len(site.times) > 30)
    limit_files_to((tmp_path / "crawl.db-wal").stat().st_size)
    project.wait_for_log("Nothing can be written: ")
    wait_until(lambda: time.monotonic() - site.times[-1] > 0.7)
    limit_files_to(resource.RLIM_INFINITY)
    project.wait_for_log("nothing is lost.")
    n_before = len(site.times)
    wait_until(lambda: len(site.times) > n_before + 20)
    limit_files_to((tmp_path / "crawl.db-wal").stat().st_size)
    time.sleep(1.0)
    crawl = project.end(process)
    assert crawl.log.count("Nothing can be written: ") == 2
    assert crawl.log.count("The database can be written again after") == 1
    assert re.search(r"\d+ rows could not be written within 2 s of the end and are lost: ", crawl.log)
    # Nothing but what the last moments have brought, in which nothing could be written.
    in_store = sum(len(ends) for ends in crawl.outcomes().values())
    assert n_before - 1 <= in_store < crawl.stats["crawlsched/resolved"]
    assert crawl.stats["crawlsched/resolved"] == crawl.stats["crawlsched/dispatched"]


FILTER = """
from scrapy.dupefilters import RFPDupeFilter

class Raises(RFPDupeFilter):
    def request_seen(self, request):
        if "bad" in request.url:
            raise ValueError("no key")
        return super().request_seen(request)
"""
LINKS = """
yield response.follow("/bad")
yield response.follow("/good")
yield response.follow("/bad", method="POST")
yield {"url": response.url}
"""


def test_a_filter_that_raises_costs_its_request_alone(site, tmp_path):
    """As by plain Scrapy: what else the callback asked for is crawled, and the pass ends."""
    site.default = lambda request: "<p>x</p>"
    text = spider([site.url("/")], LINKS, before=FILTER)
    crawl = Project(tmp_path, text, DUPEFILTER_CLASS="spider_under_test.Raises", one_pass=True).run()
    assert crawl.stats["finish_reason"] == "finished"
    assert crawl.stats["crawlsched/delivered"] == 2
    assert len(crawl.items) == 2
    assert site.visits("/bad") == []


def test_a_crawl_whose_database_is_another_ones_ends_and_says_why(site, tmp_path):
    """Deleted under it, or taken over: the next heartbeat notices, and the exit code is 1."""
    told = {
        "deleted": ("crawlsched_database_replaced", "was deleted"),
        "taken": ("crawlsched_lease_lost", "taken over by another process"),
    }
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
    projects = {}
    for name in told:
        (tmp_path / name).mkdir()
        projects[name] = Project(tmp_path / name, urls, seconds=60)
    processes = {name: project.start() for name, project in projects.items()}
    for project in projects.values():
        project.wait_for_log("Spider opened")
    wait_until(lambda: len(site.requests) > 60)
    for file in (tmp_path / "deleted").glob("crawl.db*"):
        file.unlink()
    rows(projects["taken"].database_url, "UPDATE leases SET released_at = 1")
    with closing(Store.open(projects["taken"].database_url, "test")) as other:
        other.take_lease("another")
    crawls = {name: projects[name].finish(process) for name, process in processes.items()}
    for name, (reason, sentence) in told.items():
        assert crawls[name].returncode == 1
        assert crawls[name].stats["finish_reason"] == reason
        assert sentence in crawls[name].log
        assert not re.search("Traceback|no such table|nothing is lost", crawls[name].log)
    assert not (tmp_path / "deleted" / "crawl.db").exists()  # nor is an empty one made in its place


def test_requests_of_our_own_fail_in_silence(site, tmp_path):
    """A site closes the connection for what it does not know: robots.txt, a sitemap, pages that cannot exist."""
    began = time.monotonic()

    def answer(request):
        if not request.path.startswith("/p/"):
            request.transport.close()
        words = f"<p>{request.path} {int(time.monotonic() - began) // 3}</p>" * 3
        return f"<title>{request.path}</title>{words}"

    site.default = answer
    urls = [site.url(f"/p/{number}") for number in range(20)]
    settings = {"find_sources": True, "probes": True, "withhold": True, "source_urls": site.url("/sitemap.xml")}
    crawl = Project(tmp_path, urls, bandwidth="30/s", seconds=12, **settings).run()
    asked = [path for path, _ in site.requests]
    for path in ("/robots.txt", "/sitemap.xml"):  # twice where the connection had been kept, as any other
        assert 1 <= asked.count(path) <= 2
    assert " ERROR: " not in crawl.log
    for name in ("log_count/ERROR", "retry/count", "retry/max_reached", "downloader/exception_count"):
        assert crawl.stats.get(name, 0) == 0
