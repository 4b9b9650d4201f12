"""Pauses: by hand, and by hours of the day. Nothing goes out, a restart changes nothing, and the crawl does not end."""

import time
from subprocess import Popen
from types import SimpleNamespace

import pytest

from tests import parts
from tests.commands import said
from tests.crawling import Project, spider
from tests.site import Site, most_in_a_second
from tests.waiting import wait_until

# The clock of the machine, so that a minute of the day ends soon; a crawl that would end soon if it used no slot; and
# requests that no slot was taken for, as media pipelines send them.
WATCHED = """
import time
from pathlib import Path
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from crawlsched.addon import extensions

assert extensions.LOOK_INTERVAL > 1.0 < extensions.PATIENCE
extensions.LOOK_INTERVAL, extensions.PATIENCE = 0.2, 1.0
machine, ahead = time.time, float(Path("ahead").read_text())
time.time = lambda: machine() + ahead
"""
BESIDE = """
def beside(self):
    request = scrapy.Request(self.start_urls[0] + "beside", dont_filter=True)
    deferred_from_coro(self.crawler.engine.download_async(request)).addErrback(lambda failure: None)
    call_later(0.5, self.beside)
"""
RATE = 20
# What is under way when a pause begins has arrived after this.
UNDER_WAY = 0.3
# More than twice that patience.
LONG = 2.5


class _Watched:
    """A site that is crawled, and what it saw when."""

    def __init__(self, site: Site, project: Project, process: Popen[str]) -> None:
        self.site, self.project, self.process = site, project, process

    def wait_for_requests(self, n: int = 8) -> None:
        """Wait until so many more have come."""
        wanted = len(self.site.requests) + n
        wait_until(lambda: len(self.site.requests) >= wanted, say=self.project.log)

    def sent_in_a_pause(self) -> int:
        """Return how many come in a pause that has just begun, once what was under way has arrived."""
        time.sleep(UNDER_WAY)
        before = len(self.site.requests)
        time.sleep(LONG)
        assert self.process.poll() is None, self.project.log()[-3000:]
        return len(self.site.requests) - before


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Two runs: hours without any, a bandwidth by hand, a pause; a start in the pause, and its end."""
    seen = SimpleNamespace()
    with Site() as site:
        site.default = lambda request: "<p>x</p>"
        site.page("/robots.txt", "")
        urls = [site.url(f"/{number}") for number in range(10)]
        ends = (time.time() // 60.0 + 2.0) * 60.0
        first, last = (time.strftime("%H:%M", time.gmtime(moment)) for moment in (ends, ends + 600.0))
        project = Project(
            tmp_path_factory.mktemp("paused"),
            spider(urls, "if response.url == self.start_urls[0]: self.beside()", before=WATCHED, also=BESIDE),
            bandwidth={f"{first}-{last}": 0, "else": f"{RATE}/s"},
            seconds=0,
        )
        ahead = project.folder / "ahead"  # seconds by which the crawl's clock is
        ahead.write_text(str(ends - 6.0 - time.time()))
        run = _Watched(site, project, project.start())
        run.wait_for_requests()
        project.wait_for_log("By the hours of CRAWLSCHED_BANDWIDTH nothing goes out from now on.")
        seen.by_hours = run.sent_in_a_pause()
        project.so_far().said("bandwidth", f"{RATE}/s")
        run.wait_for_requests()
        seen.said = project.so_far().said("bandwidth", "pause")
        seen.by_hand = run.sent_in_a_pause()
        seen.status = project.so_far().said("status")
        seen.first = project.end(run.process)

        ahead.write_text("0")
        run = _Watched(site, project, project.start(bandwidth=f"{RATE}/s"))
        # Slots begin with this line; a busy machine takes a second from "Spider opened" to it.
        project.wait_for_log("The crawl is paused and sends nothing")
        seen.after_a_restart = run.sent_in_a_pause()
        seen.went_on = project.so_far().said("bandwidth", "resume")
        n_before = len(site.times)
        run.wait_for_requests(2 * RATE)
        seen.after_the_pause, seen.allowed = site.times[n_before:], site.most_at(RATE)
        seen.second = project.end(run.process)
        yield seen


def test_nothing_goes_out_at_hours_without_a_bandwidth(seen):
    """From the minute on at which they begin, until a bandwidth is asked for by hand."""
    assert seen.by_hours == 0
    assert "By the hours of CRAWLSCHED_BANDWIDTH nothing goes out from now on." in seen.first.log


def test_nothing_goes_out_in_a_pause_whatever_it_was_sent_by(seen):
    """Pages by slots, and what a component sends beside them; `status` says that it pauses."""
    assert seen.by_hand == 0
    assert "sends nothing until `crawlsched bandwidth resume`" in seen.said
    assert "paused since" in seen.status


def test_a_pause_survives_a_restart_and_ends_without_a_burst(seen):
    """The next run says that it is paused, sends nothing, and goes on at its rate when it is let go."""
    assert "The crawl is paused and sends nothing" in seen.second.log
    assert seen.after_a_restart == 0
    assert "goes on" in seen.went_on
    assert most_in_a_second(seen.after_the_pause) <= seen.allowed


def test_a_pause_is_no_failure(seen):
    """The guard does not end it, its slots are counted, and what it kept is released at the end."""
    for run in (seen.first, seen.second):
        assert run.returncode == 0
        assert run.stats["finish_reason"] == "shutdown"
        assert "crawlsched/failures" not in run.stats
        assert "ERROR" not in run.log
        # To the last one: what had come since the crawl last looked would be paid back as a burst otherwise.
        assert run.stats["crawlsched/slots/paused"] >= (UNDER_WAY + LONG) * RATE - 2
        assert run.stats["crawlsched/dispatched"] == run.stats["crawlsched/resolved"]


def test_a_visit_is_not_given_up_while_its_request_waits_for_the_end_of_a_pause(sqlite_url):
    """Its nine minutes begin when the crawl goes on."""
    now = [1000.0]
    refresher = parts.refresher(parts.settings(sqlite_url, bandwidth=4.0), lambda: now[0])
    parts.ask(refresher, "http://a.example/")
    next(refresher.dispatcher.next_pages(now[0], parts.any_host), None)
    refresher.rate.pause(now[0])
    n_open = []
    for passed, resumes in ((5000.0, True), (500.0, False), (50.0, False)):
        now[0] += passed
        refresher.sweep(now[0])
        n_open.append(len(refresher.visits.older_than(now[0])))
        if resumes:
            refresher.rate.pause(now[0], paused=False)
    assert n_open == [1, 1, 0]
    parts.close(refresher)


def test_a_pause_is_written_down_although_a_heartbeat_is_under_way(sqlite_url):
    """It comes in the same moment as the heartbeat of the timer: a crash soon after must not end the pause."""
    refresher = parts.refresher(parts.settings(sqlite_url, bandwidth=4.0))
    refresher.heartbeat(time.time())
    refresher.rate.pause(time.time())

    def is_written():
        refresher.collection.aside.collect()
        return "paused since" in said("status", "--database", sqlite_url, "--collection", "test")

    wait_until(is_written)
    parts.close(refresher)
