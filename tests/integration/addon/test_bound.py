"""One bound: no second has more than 1.25 R + 1 requests, whatever held them up, and however often a crawl restarts."""

import signal
import socketserver
import threading
import time

from tests.crawling import Project, spider
from tests.site import Site, most_in_a_second
from tests.waiting import wait_until

# A name server that answers nothing for some seconds, and then everything at once.
STALLED_NAMES = """
import time
from twisted.internet import defer, reactor
from scrapy.resolver import CachingThreadedResolver


class Resolver(CachingThreadedResolver):
    since = time.monotonic()

    def getHostByName(self, name, timeout=()):
        found = defer.Deferred()
        reactor.callLater(max(0.0, Resolver.since + 3.0 - time.monotonic()), found.callback, "127.0.0.1")
        return found
"""


class _ClosesKeptConnections(socketserver.BaseRequestHandler):
    """Answers the first request of a connection, and hangs up on the second."""

    times: list[float]

    def handle(self) -> None:
        with self.request.makefile("rb") as lines:
            for number in (1, 2):
                while (line := lines.readline()) not in (b"\r\n", b""):
                    if line.startswith(b"GET"):
                        self.times.append(time.monotonic())
                if number == 2 or not line:
                    return
                self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\nx")


def test_what_waited_for_a_name_leaves_at_the_rate(site, tmp_path):
    """Two hundred hosts whose names resolve all at once; waiting counts as no latency, and no page is lost."""
    site.default = lambda request: "<p>x</p>"
    names = spider([site.url("/", f"host{number}.test") for number in range(200)], before=STALLED_NAMES)
    settings = {"TWISTED_DNS_RESOLVER": "spider_under_test.Resolver", "AUTOTHROTTLE_ENABLED": True}
    project = Project(tmp_path, names, bandwidth="20/s", ROBOTSTXT_OBEY=False, **settings)
    crawl = project.run_until(lambda: len(site.times) > 80)
    times = site.times
    assert most_in_a_second(times) <= site.most_at(20)
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]


def test_a_request_is_sent_again_on_a_new_connection_in_a_turn_of_its_own(tmp_path):
    """Each is sent twice, and the site never sees more than the rate: Scrapy retries, and Twisted does not."""
    _ClosesKeptConnections.times = times = []
    # The site beside is asked for nothing: it knows how late this process is.
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _ClosesKeptConnections) as server, Site() as beside:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        urls = [f"http://127.0.0.1:{server.server_address[1]}/{number}" for number in range(20)]
        crawl = Project(tmp_path, urls, bandwidth="20/s").run_until(lambda: len(times) > 100)
        server.shutdown()
    assert most_in_a_second(times) <= beside.most_at(20)
    assert len(times) / (times[-1] - times[0]) < 1.1 * 20
    assert crawl.stats["retry/count"] >= 30
    assert crawl.stats["crawlsched/resolved/unchanged"] >= 30  # none of them is an error


def test_a_process_that_was_stopped_goes_on_without_a_burst(site, tmp_path):
    """As in a container that is frozen, or a machine that sleeps: the slots of the pause are not made up for."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
    project = Project(tmp_path, urls, bandwidth="20/s", seconds=0)
    process = project.start()
    project.wait_for_log("Spider opened")
    for seconds in (0.2, 0.5, 1.2):
        time.sleep(0.8)
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)
    came = len(site.times)
    wait_until(lambda: len(site.times) > came + 40)
    project.end(process)
    assert most_in_a_second(site.times) <= site.most_at(20)


def test_restarts_send_no_more_than_one_run_would(site, tmp_path):
    """Killed and started again, at twelve a minute: the grid goes on from the last request of the run before."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(9)]
    project = Project(tmp_path, urls, bandwidth="12/min", seconds=60)
    began = time.monotonic()
    for _ in range(3):
        process = project.start()
        project.wait_for_log("Spider opened")
        time.sleep(1.5)
        project.kill(process)
    passed = time.monotonic() - began
    assert 1 <= len(site.requests) <= passed / 5.0 + 1
