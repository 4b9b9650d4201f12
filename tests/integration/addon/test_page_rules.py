"""CRAWLSCHED_PAGES and CRAWLSCHED_HOST_SHARES in a crawl, and what `why` says of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.commands import run_here
from tests.crawling import VISITING_SPIDER, Project
from tests.site import Site


def test_rules_hold_for_new_and_for_stored_pages(tmp_path: Path) -> None:
    """Importance and intervals go by pattern, a host has its share; other rules count from the next start on."""
    with Site(("127.0.0.1", "127.0.0.2")) as site:
        names = ["often", "seldom", "plain1", "plain2", "plain3"]
        for name in names:
            site.page(f"/{name}", f"<p>{name}")
        site.page("/robots.txt", "", status=404)
        urls = [site.url(f"/{name}") for name in names] + [site.url(f"/plain{n}", "127.0.0.2") for n in (1, 2, 3)]
        rules = [
            ["*/often", {"importance": 3, "max_interval": 0.2}],
            ["*/seldom", {"min_interval": "1h"}],
        ]
        project = Project(
            tmp_path, VISITING_SPIDER.format(urls=urls), CRAWLSCHED_BANDWIDTH="16/s", TEST_CLOSE_AFTER_RESOLVED="56"
        )
        shares = json.dumps({"127.0.0.2": 0.2})
        crawl = project.run(CRAWLSCHED_PAGES=json.dumps(rules), CRAWLSCHED_HOST_SHARES=shares)
        visits = Counter(path for path, _ in site.requests)
        hosts = Counter(headers["host"].partition(":")[0] for path, headers in site.requests if path != "/robots.txt")
        assert visits["/seldom"] == 1
        assert visits["/often"] >= 10  # 56 visits take 3.5 s
        # A fifth of 16/s for 3.5 s, and its first request.
        assert 7 <= hosts["127.0.0.2"] <= 14
        assert crawl.stats["crawlsched/dispatched/overdue"] >= 3  # and some went by what they were worth
        said = run_here(tmp_path, "why", site.url("/often"), "--database", project.database_url)
        assert "CRAWLSCHED_PAGES, '*/often': importance 3, max_interval 0.2 s" in said.stdout
        said = run_here(tmp_path, "why", site.url("/plain1", "127.0.0.2"), "--database", project.database_url)
        assert "CRAWLSCHED_HOST_SHARES: at most 20 % of the bandwidth for its host" in said.stdout
        why = json.loads(
            run_here(tmp_path, "why", site.url("/seldom"), "--database", project.database_url, "--json").stdout
        )
        assert (why["importance"], why["binds"]) == (1, "min_interval")

        site.requests.clear()
        crawl = project.run(CRAWLSCHED_PAGES=json.dumps([["*/often", {"importance": 2}]]))
        visits = Counter(path for path, _ in site.requests)
        assert visits["/seldom"] > 1
        assert "crawlsched/dispatched/overdue" not in crawl.stats
        store = crawl.store()
        try:
            page = store.reader.find(site.url("/often"))
            assert page is not None
            assert next(store.load(pages=[page]))["importance"].tolist() == [2]
        finally:
            store.close()
