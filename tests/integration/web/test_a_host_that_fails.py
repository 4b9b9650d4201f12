"""One of two sites refuses everything, and comes back: whoever looks is told, by whatever he looks at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from crawlsched.web.metrics import metrics
from crawlsched.web.vitals import vitals
from tests import children
from tests.crawling import Project
from tests.site import Site
from tests.waiting import wait_until

N_PAGES = 12


def test_a_site_that_refuses_everything_is_told_by_log_check_status_and_metrics(tmp_path: Path) -> None:
    """Nobody is told of it before, all are while it lasts, and nobody after."""
    refuses = [False]

    def answer(request: web.Request) -> web.Response:
        if refuses[0] and request.host.startswith("127.0.0.2"):
            return web.Response(status=403)
        return web.Response(text=f"<p>{request.path}</p>", content_type="text/html")

    def told() -> tuple[int, str, dict[str, Any], str]:
        crawl = project.so_far()
        check, seen = crawl.command("check"), crawl.read(vitals)
        said = check.stdout + check.stderr + crawl.said("status")
        return check.returncode, said, seen.failing, metrics({"test": seen}).decode()

    def until(condition: Callable[[], object]) -> None:
        wait_until(condition, say=project.log)

    with children.all_ended(), Site(("127.0.0.1", "127.0.0.2")) as site:
        site.default = answer
        addresses = ("127.0.0.1", "127.0.0.2")
        urls = [site.url(f"/{number}", address) for number in range(N_PAGES) for address in addresses]
        rules = [["*", {"max_interval": 1}]]
        project = Project(tmp_path, urls, bandwidth="20/s", error_interval=1, pages=rules, seconds=120)
        crawl = project.start()
        until(lambda: len(site.visits("/0")) > 3)
        until(lambda: told()[0] == 0)
        refuses[0] = True
        project.wait_for_log("127.0.0.2 fails (403)")
        until(lambda: bool(told()[2]))
        returncode, said, failing, measured = told()
        assert returncode == 1
        assert said.count("127.0.0.2 fails (403) for 0 min: ") == 2
        assert "of 24 pages; " in said
        assert list(failing) == ["127.0.0.2"]
        assert 'crawlsched_healthy{check="answering",collection="test"} 0.0' in measured
        assert 'crawlsched_failing_host_pages{collection="test",host="127.0.0.2",state="refused"}' in measured
        refuses[0] = False
        project.wait_for_log("127.0.0.2 answers again")
        until(lambda: told()[0] == 0)
        assert not told()[2]
        freshness_pages = project.so_far().report("status")["freshness_pages"]
        assert freshness_pages == {"wanted": 2 * N_PAGES, "failing": 0}
        crawl.terminate()
        log = project.finish(crawl).log
    assert log.count("WARNING: 127.0.0.2") == log.count("127.0.0.2 answers again") == 1
    assert "127.0.0.1 fails" not in log
