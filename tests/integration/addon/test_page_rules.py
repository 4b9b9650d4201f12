"""What a page is worth and how often it is visited: by rules, functions, requests and files; and what `why` says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.commands import said
from tests.crawling import Crawl, Project, spider
from tests.site import Site


def importance_of(crawl: Crawl) -> dict[str, float]:
    """Return what each page is worth, by the last part of its URL."""
    found = {}
    for block in crawl.read(lambda store: list(store.load())):
        found |= dict(zip(block["page"].tolist(), block["importance"].tolist(), strict=True))
    return {url.rsplit("/", 1)[1]: found[page.page] for url, page in crawl.pages().items()}


def test_rules_hold_for_new_and_for_stored_pages(tmp_path: Path) -> None:
    """Importance and intervals go by pattern, a host has its share; other rules count from the next start on."""
    with Site(("127.0.0.1", "127.0.0.2")) as site:
        names = ["often", "seldom", "plain1", "plain2", "plain3"]
        for name in names:
            site.page(f"/{name}", f"<p>{name}")
        urls = [site.url(f"/{name}") for name in names] + [site.url(f"/plain{n}", "127.0.0.2") for n in (1, 2, 3)]
        rules = [["*/often", {"importance": 3, "max_interval": 0.2}], ["*/seldom", {"min_interval": "1h"}]]
        project = Project(tmp_path, urls, bandwidth="16/s", visits=56)
        crawl = project.run(pages=rules, host_shares={"127.0.0.2": 0.2})
        visits = Counter(path for path, _ in site.requests)
        hosts = Counter(headers["host"].partition(":")[0] for _, headers in site.requests)
        assert visits["/seldom"] == 1
        assert visits["/often"] >= 10  # 56 visits take 3.5 s
        # A fifth of 16/s for 3.5 s, and its first request.
        assert 7 <= hosts["127.0.0.2"] <= 14
        assert crawl.stats["crawlsched/dispatched/overdue"] >= 3  # and some went by what they were worth
        assert "CRAWLSCHED_PAGES, '*/often': importance 3, max_interval 0.2 s" in crawl.said("why", site.url("/often"))
        of_host = crawl.said("why", site.url("/plain1", "127.0.0.2"))
        assert "CRAWLSCHED_HOST_SHARES: at most 20 % of the bandwidth for its host" in of_host
        why = crawl.report("why", site.url("/seldom"))
        assert (why["importance"], why["binds"]) == (1, "min_interval")

        site.requests.clear()
        crawl = project.run(pages=[["*/often", {"importance": 2}]])
        assert len(site.visits("/seldom")) > 1
        assert "crawlsched/dispatched/overdue" not in crawl.stats
        assert importance_of(crawl)["often"] == 2


WEIGHS = """
def first(url, meta):
    return 2.0 if url.endswith("/a") else 1.0


def second(url, meta):
    return 3.0 if url.endswith("/a") else meta.get("weight", 1.5)
"""
STATES = """
async def start(self):
    (url,) = self.start_urls
    for name in "abcd":
        yield scrapy.Request(url + name, meta={"weight": 6.0} if name == "b" else {})
    for name, importance in {"stated": 7, **self.settings.getdict("SAID")}.items():
        yield scrapy.Request(url + name, meta={"crawlsched_importance": importance})
"""


def test_importance_follows_whoever_says_so(site: Site, tmp_path: Path) -> None:
    """A changed function weighs all stored pages at the next start, but not those that somebody stated."""
    for name in ("a", "b", "c", "d", "stated"):
        site.page(f"/{name}", f"<p>{name}</p>")
    first, second = "spider_under_test.first", "spider_under_test.second"
    project = Project(tmp_path, spider([site.url("/")], before=WEIGHS, also=STATES), visits=60)
    crawl = project.run(importance=first, visits=10)
    assert importance_of(crawl) == {"a": 2, "b": 1, "c": 1, "d": 1, "stated": 7}

    # Another function, and a request that names a known page with another importance.
    crawl = project.run(importance=second, SAID={"d": 9})
    assert importance_of(crawl) == {"a": 3, "b": 6, "c": 1.5, "d": 9, "stated": 7}
    assert crawl.stats["crawlsched/pages/importance_changed"] in (4, 5)  # d by the function first, if that was quicker

    # Once more the same function: nothing is touched.
    assert not project.run(importance=second).stats.get("crawlsched/pages/importance_changed")

    # What a file states is not asked of the function any more.
    (tmp_path / "weights.csv").write_text(f"url,importance\n{site.url('/a')},0.25\n")
    said("import", "weights.csv", "--database", project.database_url, folder=tmp_path)
    crawl = project.run(importance=first, visits=100)
    assert importance_of(crawl) == {"a": 0.25, "b": 1, "c": 1, "d": 9, "stated": 7}
