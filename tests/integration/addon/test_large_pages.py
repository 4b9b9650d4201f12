"""Large pages are read by a process of its own, once reading them takes much of the crawl's time."""

from __future__ import annotations

import os
from pathlib import Path

from aiohttp import web

from tests.crawling import VISITING_SPIDER, Project
from tests.site import Site

STAYS = "<p>Tea with milk and a little sugar, please.</p>" * 40_000
SAID = "a process of its own does it now"


def test_changes_of_large_pages_are_found_by_a_process_that_ends_with_the_crawl(tmp_path: Path) -> None:
    """One of four pages of 2 MB changes with each fetch: all of its visits find that, and none of the others do."""
    fetches = iter(range(1_000_000))
    with Site() as site:

        def changes(request: web.Request) -> web.Response:
            return web.Response(text=f"<p>Cup {next(fetches)} is drunk.</p>{STAYS}", content_type="text/html")

        def stays(request: web.Request) -> web.Response:
            return web.Response(text=STAYS, content_type="text/html")

        urls = [site.page("/changes", changes), *(site.page(f"/{name}", stays) for name in "abc")]
        crawl = Project(
            tmp_path,
            VISITING_SPIDER.format(urls=urls),
            CRAWLSCHED_BANDWIDTH="15/s",
            CRAWLSCHED_FINGERPRINT="visible_text",
            CLOSESPIDER_TIMEOUT="60",
            TEST_CLOSE_AFTER_RESOLVED="110",
        ).run(timeout=90.0)
        assert crawl.returncode == 0
        found = crawl.outcomes()
    assert crawl.log.count(SAID) == 1
    # Those that were open at the end tell nothing.
    assert set(found[urls[0]][1:]) - {"dropped"} == {"changed"}
    assert {outcome for url in urls[1:] for outcome in found[url][1:]} - {"dropped"} == {"unchanged"}
    readers = [pid for pid in os.listdir("/proc") if pid.isdigit() and _reads_for(tmp_path, pid)]
    assert not readers


def _reads_for(folder: Path, pid: str) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"crawlsched.content.reader_process" in command and Path(f"/proc/{pid}/cwd").resolve() == folder
    except OSError:
        return False
