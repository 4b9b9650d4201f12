"""A crawl that begins with imported pages: it visits them, and delivers each of them once."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests.commands import run_here
from tests.crawling import Project
from tests.site import Site

SPIDER = """
import json
import scrapy

class Spider(scrapy.Spider):
    name = "test"

    async def start(self):
        return
        yield

    def parse(self, response):
        with open("delivered.jsonl", "a") as file:
            file.write(json.dumps([response.url, response.meta["crawlsched_changed"]]) + "\\n")
"""


def test_imported_pages_are_visited_and_delivered_once(tmp_path: Path) -> None:
    """Also those that others have visited: our spider has not seen them. What others learned is kept."""
    with Site() as site:
        for name in "abcd":
            site.page(f"/{name}", f"<p>{name}")
        site.page("/robots.txt", "", status=404)
        now = time.time()
        visits = [f"{site.url('/a')},{now - 3600 * n},{'' if n == 20 else n % 2}" for n in range(20, 0, -1)]
        (tmp_path / "visits.csv").write_text("\n".join(["url,time,changed", *visits]))
        (tmp_path / "urls.txt").write_text("\n".join(site.url(f"/{name}") for name in "bcd"))
        project = Project(tmp_path, SPIDER, CRAWLSCHED_BANDWIDTH="10/s", TEST_CLOSE_AFTER_RESOLVED="14")
        for name in ("visits.csv", "urls.txt"):
            answer = run_here(
                tmp_path, "import", name, "--database", project.database_url, "--collection", "test", "--json"
            )
            assert answer.returncode == 0, answer.stderr
        project.run()
        delivered = [json.loads(line) for line in (tmp_path / "delivered.jsonl").read_text().splitlines()]
        assert sorted(url for url, _ in delivered) == [site.url(f"/{name}") for name in "abcd"]
        assert all(changed for _, changed in delivered)
        why = json.loads(run_here(tmp_path, "why", site.url("/a"), "--database", project.database_url, "--json").stdout)
        # Half of nineteen visits an hour apart; the first of our own could not be compared with theirs.
        assert why["n_changes"] == 10
        assert why["n_crawls"] > 20
        assert why["visits"][0]["changed"] is not True
