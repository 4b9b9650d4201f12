"""A crawl that begins with imported pages: it visits them, and delivers each of them once."""

from __future__ import annotations

import time
from pathlib import Path

from crawlsched.crawl.importing import Import
from crawlsched.crawl.project import Requests
from crawlsched.crawl.url_lines import UrlLine
from crawlsched.settings import Settings
from crawlsched.store import Store
from tests.commands import said
from tests.crawling import Project, spider
from tests.site import Site

CHANGED = 'yield {"url": response.url, "changed": response.meta["crawlsched_changed"]}'


def test_imported_pages_are_visited_and_delivered_once(tmp_path: Path) -> None:
    """Also those that others have visited: our spider has not seen them. What others learned is kept."""
    with Site() as site:
        for name in "abcd":
            site.page(f"/{name}", f"<p>{name}")
        now = time.time()
        visits = [f"{site.url('/a')},{now - 3600 * n},{'' if n == 20 else n % 2}" for n in range(20, 0, -1)]
        (tmp_path / "visits.csv").write_text("\n".join(["url,time,changed", *visits]))
        (tmp_path / "urls.txt").write_text("\n".join(site.url(f"/{name}") for name in "bcd"))
        project = Project(tmp_path, spider([], CHANGED), bandwidth="10/s", visits=13)
        given = "--database", project.database_url, "--collection", "test"
        for name in ("visits.csv", "urls.txt"):
            said("import", name, *given, folder=tmp_path)
        crawl = project.run()
        assert sorted(item["url"] for item in crawl.items) == [site.url(f"/{name}") for name in "abcd"]
        assert all(item["changed"] for item in crawl.items)
        why = crawl.report("why", site.url("/a"))
        # Half of nineteen visits an hour apart; the first of our own could not be compared with theirs.
        assert why["n_changes"] == 10
        assert why["n_crawls"] > 20
        assert why["visits"][0]["changed"] is not True


def test_no_more_pages_are_imported_than_are_allowed(tmp_path: Path) -> None:
    """By CRAWLSCHED_MAX_PAGES, and by a rule; those that were there before count, and are weighed still."""
    database, requests = f"sqlite:///{tmp_path / 'crawl.db'}", Requests()
    given = {"CRAWLSCHED_MAX_PAGES": 4, "CRAWLSCHED_PAGES": [("*/calendar/*", {"max_pages": 1})]}
    settings = Settings.from_scrapy({**given, "CRAWLSCHED_DATABASE_URL": database}, "test")

    def imported(*names: str, importance: float | None = None) -> tuple[int, int, int]:
        importing = Import(settings, requests, time.time())
        found = [requests.page_of(UrlLine(1, f"http://a.example/{name}", importance)) for name in names]
        importing.take(found)
        importing.close()
        return importing.counts["new"], importing.counts["too_many"], importing.counts["weighed"]

    assert imported("calendar/1", "calendar/2", "a", "b") == (3, 1, 0)
    assert imported("calendar/3", "c", "d") == (1, 2, 0)
    assert imported("a", "e", importance=2.0) == (0, 1, 1)
    store = Store.open(database, "test")
    assert len(store.reader.pages_to_weigh(-1, 10, stated=True)) == 4
    store.close()
