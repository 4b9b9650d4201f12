"""The command line talks to a running crawl: a real spider in a process of its own, on a real server."""

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from crawlsched.cli.next import say
from tests.commands import failed
from tests.crawling import Project
from tests.site import Site, most_in_a_second
from tests.waiting import wait_until

N_PAGES = 20


class Running(NamedTuple):
    site: Site
    urls: list[str]
    project: Project
    pid: int

    def report(self, *arguments: str) -> Any:
        return self.project.so_far().report(*arguments)

    def refused(self, *arguments: str) -> str:
        """Return the sentence with which a command about the crawl failed."""
        return failed(self.project.so_far().command(*arguments))


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Running]:
    """A crawl of twenty pages at 5/s which goes on as long as the tests do."""
    with Site(("127.0.0.1", "127.0.0.2")) as site:
        for number in range(N_PAGES):
            site.page(f"/{number}", f"<p>{number}</p>")
        urls = [site.url(f"/{number}", f"127.0.0.{1 + number % 2}") for number in range(N_PAGES)]
        project = Project(tmp_path_factory.mktemp("running"), urls, bandwidth="5/s", seconds=400)
        process = project.start()
        try:
            wait_until(lambda: len(site.requests) >= N_PAGES, 60.0)
            yield Running(site, urls, project, process.pid)
        finally:
            project.end(process)


def test_status_sees_the_crawl(running: Running):
    """It runs, in that process, at that bandwidth, and uses its slots."""
    wait_until(lambda: bool(running.report("status")["budget"]["dispatched"]))
    status = running.report("status")
    assert status["owner"]["running"] is True
    assert status["owner"]["pid"] == running.pid
    assert status["budget"]["bandwidth"] == 5.0
    assert status["budget"]["slots"]["used"] > 0
    assert status["pages"]["states"]["live"] == N_PAGES
    assert 0.0 < status["expected_freshness"] <= 1.0


def test_the_bandwidth_changes_without_a_restart(running: Running):
    """After `bandwidth 20/s` the server sees up to 20 requests a second, and 5 again after going back."""
    assert running.report("bandwidth", "20/s") == {"collection": "test", "bandwidth": 20.0, "before": 5.0}
    assert 10 < most_in_a_second(next_times(running, 50)) <= running.site.most_at(20)
    assert running.report("bandwidth", "5/s")["before"] == 20.0
    assert most_in_a_second(next_times(running, 12)) <= running.site.most_at(5)
    assert os.path.exists(f"/proc/{running.pid}")


def test_a_bandwidth_without_a_unit_or_ten_times_the_present_one_is_not_taken_unasked(running: Running):
    """A slip of the finger does not fall on somebody's servers: usage, or a question that nobody answers."""
    without = running.project.so_far().command("bandwidth", "20000")
    assert (without.returncode, "needs a unit here, such as 20000/s" in without.stderr) == (2, True)
    assert "--yes" in running.refused("bandwidth", "500/s")
    wait_until(lambda: running.report("bandwidth")["bandwidth"] == 5.0)  # the crawl writes its status every few seconds


def next_times(running: Running, n: int) -> list[float]:
    """Return when the next requests come, but for those that may be on their way."""
    since = len(running.site.times) + 2
    wait_until(lambda: len(running.site.times) >= since + n)
    return running.site.times[since:]


def test_recrawl_goes_next(running: Running):
    """A page that somebody asks for is crawled within a few slots, before the nineteen that wait."""
    for url in running.urls[3:6]:
        path = "/" + url.rpartition("/")[2]
        before = len(running.site.visits(path))
        answer = running.report("recrawl", url, running.site.url("/nowhere"))
        assert (answer["running"], answer["pages"]) == (True, 1)
        assert answer["unknown"] == [running.site.url("/nowhere")]
        sent_at = len(running.site.requests)
        wait_until(lambda path=path, before=before: len(running.site.visits(path)) > before)
        assert len(running.site.requests) - sent_at <= 6


def test_next_names_first_what_has_been_asked_for_and_not_answered(running: Running):
    """Its visit ends before those that have not begun: the site keeps one page back while `next` is asked."""
    path, may_answer = "/" + running.urls[0].rpartition("/")[2], threading.Event()
    at_once = running.site.answers[path]

    async def late(request):
        while not may_answer.is_set():
            await asyncio.sleep(0.02)
        return at_once(request)

    running.site.page(path, late)
    try:
        before = len(running.site.visits(path))
        running.report("recrawl", running.urls[0])
        wait_until(lambda: len(running.site.visits(path)) > before)
        answer = running.report("next", "-n", "4")
    finally:
        may_answer.set()
        running.site.answers[path] = at_once
    first, *others = answer["pages"]
    assert first["url"] == running.urls[0]
    assert first["sent_at"] < answer["time"]
    assert len(others) == 3
    assert running.urls[0] not in [page["url"] for page in others]
    assert "under way" in say(answer)
    assert "announced" not in say(answer)
    often = {**answer, "announced_share": 0.4126}
    assert "41.3 % of the newest visits followed an announcement of their page" in say(often)


def test_the_log_says_where_it_begins(running: Running):
    """One line names the collection, the database, the bandwidth, the end, and where to look."""
    log = running.project.log()
    assert "Collection 'test' in sqlite:///" in log
    assert "no page is known yet. It is kept fresh at 5/s until you stop it; `crawlsched status`" in log


def test_what_is_forgotten_is_not_asked_for_again(running: Running):
    """`forget` of a page of the running crawl ends its visits, at once and for good."""
    path = "/9"
    assert running.report("forget", running.urls[9], "--yes")["pages"] == 1
    seen = len(running.site.visits(path))
    rest = len(running.site.requests)
    wait_until(lambda: len(running.site.requests) > rest + 2 * N_PAGES, 30.0)
    assert len(running.site.visits(path)) <= seen + 1  # one may have been on its way
    assert running.report("status")["pages"]["total"] == N_PAGES - 1
    assert "was forgotten (" in running.refused("why", running.urls[9])
    running.project.so_far().said("forget", "--undo", running.urls[9])
    assert running.report("forget", "--list")["forgotten"] == []


def test_a_running_crawl_is_handed_pages(running: Running, tmp_path):
    """New URLs become pages, importance counts, wrong lines are named; visits are refused with a sentence."""
    lines = [f"{running.urls[5]},6", "http://127.0.0.1:1/handed,3", "/nothing,1"]
    lines += [f"http://127.0.0.1:1/many/{number}," for number in range(600)]
    (tmp_path / "pages.csv").write_text("\n".join(["url,importance", *lines]))
    told = running.report("import", str(tmp_path / "pages.csv"))
    assert (told["pages"], told["new"], told["weighed"], told["lines_left_out"]) == (602, 601, 1, 1)
    assert running.report("why", running.urls[5])["importance"] == 6
    assert running.report("why", "http://127.0.0.1:1/handed")["importance"] == 3
    assert running.report("import", str(tmp_path / "pages.csv"))["new"] == 0
    assert running.report("forget", "--pattern", "http://127.0.0.1:1/*", "--yes")["pages"] == 601
    (tmp_path / "visits.csv").write_text(f"url,time,changed\n{running.urls[5]},1700000000,1\n")
    assert "End it to import visits of others" in running.refused("import", str(tmp_path / "visits.csv"))
