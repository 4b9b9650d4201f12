"""One of two sites refuses everything, and comes back: whoever looks is told, by whatever he looks at."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from crawlsched.store import Store
from crawlsched.web.metrics import metrics
from crawlsched.web.vitals import vitals
from tests import children
from tests.commands import run_here
from tests.crawling import VISITING_SPIDER, Project
from tests.site import Site

N_PAGES = 12


def test_a_site_that_refuses_everything_is_told_by_log_check_status_and_metrics(tmp_path: Path) -> None:
    """Nobody is told of it before, all are while it lasts, and nobody after."""
    refuses = [False]

    def answer(request: web.Request) -> web.Response:
        if refuses[0] and request.host.startswith("127.0.0.2"):
            return web.Response(status=403)
        return web.Response(text=f"<p>{request.path}</p>", content_type="text/html")

    def told() -> tuple[int, str, dict[str, Any], str]:
        check = run_here(tmp_path, "check", "--database", project.database_url)
        status = run_here(tmp_path, "status", "--database", project.database_url)
        store = Store.open(project.database_url, "test", read_only=True)
        try:
            seen = vitals(store)
        finally:
            store.close()
        return (
            check.returncode,
            check.stdout + check.stderr + status.stdout,
            seen.failing,
            metrics({"test": seen}).decode(),
        )

    def until(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 30.0
        while not condition():
            assert time.monotonic() < end, project.log()[-3000:]
            time.sleep(0.2)

    with children.all_ended(), Site(("127.0.0.1", "127.0.0.2")) as site:
        site.default = answer
        addresses = ("127.0.0.1", "127.0.0.2")
        urls = [site.url(f"/{number}", address) for number in range(N_PAGES) for address in addresses]
        project = Project(
            tmp_path,
            VISITING_SPIDER.format(urls=urls),
            CRAWLSCHED_BANDWIDTH="20/s",
            CRAWLSCHED_ERROR_INTERVAL="1",
            CRAWLSCHED_PAGES='[["*", {"max_interval": 1}]]',
            CLOSESPIDER_TIMEOUT="120",
        )
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
        assert json.loads(run_here(tmp_path, "status", "--database", project.database_url, "--json").stdout)[
            "freshness_pages"
        ] == {"wanted": 2 * N_PAGES, "failing": 0}
        crawl.terminate()
        log = project.finish(crawl).log
    assert log.count("WARNING: 127.0.0.2") == log.count("127.0.0.2 answers again") == 1
    assert "127.0.0.1 fails" not in log
