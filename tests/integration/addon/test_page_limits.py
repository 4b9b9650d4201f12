"""What ends a growth without end: shares, how many URLs are pages, parameters that do not count, DEPTH_LIMIT."""

from __future__ import annotations

from pathlib import Path

from tests.crawling import FOLLOWS, Crawl, Project, spider
from tests.site import Site


def links(*paths: str) -> str:
    return "".join(f'<a href="{path}">{path}</a>' for path in paths)


def crawl(folder: Path, site: Site, visits: int, **settings: object) -> Crawl:
    given = {"bandwidth": "40/s", "visits": visits, **settings}
    return Project(folder, spider([site.url("/")], FOLLOWS), **given).run(timeout=90.0)


def withheld(run: Crawl) -> int:
    (host,) = run.read(lambda store: store.reader.hosts())
    return int(host.counts["withheld"]["max_pages"]["n"])


def n_asked(site: Site, *paths: str) -> int:
    return sum(len(site.visits(path)) > 0 for path in paths)


def test_an_archive_leaves_known_pages_their_share(site: Site, tmp_path: Path) -> None:
    """A crawl that finds an archive goes on with the pages that it knows."""
    shelf, archive = ([f"/{place}/{number}" for number in range(n)] for place, n in (("shelf", 10), ("archive", 300)))
    for path in (*shelf, *archive):
        site.page(path, f"<p>{path}</p>")
    site.page("/", links(*shelf))
    crawl(tmp_path, site, 20, bandwidth="20/s")
    site.page("/", links(*shelf, *archive))
    before = sum(len(site.visits(path)) for path in shelf)
    crawl(tmp_path, site, 150, bandwidth="20/s")
    assert n_asked(site, *archive) >= 25  # a busy machine takes its time to take 310 links in
    assert sum(len(site.visits(path)) for path in shelf) - before >= 10


def test_of_a_pattern_at_most_so_many_are_pages_also_after_a_restart(site: Site, tmp_path: Path) -> None:
    """What is not taken is counted, and said once."""
    rule = [["*/calendar/*", {"max_pages": 5}]]
    site.page("/", links("/news/1", "/calendar/0"))
    site.page("/news/1", "<p>news</p>")
    for day in range(30):
        site.page(f"/calendar/{day}", links(f"/calendar/{day + 1}", f"/calendar/{day + 2}"))
    crawl(tmp_path, site, 40, pages=rule)
    site.page("/", links("/calendar/20", "/calendar/21"))
    again = crawl(tmp_path, site, 40, pages=rule)
    assert n_asked(site, *(f"/calendar/{day}" for day in range(32))) == 5
    assert n_asked(site, "/news/1") == 1
    assert withheld(again) > 2
    assert again.log.count("are more than CRAWLSCHED_PAGES or CRAWLSCHED_MAX_PAGES lets in") == 1
    assert again.stats["crawlsched/withheld/max_pages"] >= 1


def test_a_collection_has_no_more_pages_than_it_may_have(site: Site, tmp_path: Path) -> None:
    """Those that come too late are counted."""
    paths = [f"/{number}" for number in range(20)]
    site.page("/", links(*paths))
    for path in paths:
        site.page(path, f"<p>{path}</p>")
    run = crawl(tmp_path, site, 30, max_pages=8)
    assert n_asked(site, *paths) == 7
    assert withheld(run) >= 13


def test_urls_that_differ_in_ignored_parameters_are_one_page_asked_for_by_the_url_found_last(
    site: Site, tmp_path: Path
) -> None:
    """Also those that were found before the setting was made: the first of them stays."""
    old = [f"/shelf?sid={number}" for number in range(10)]
    site.page("/", links(*old))
    site.page("/shelf", "<p>shelf</p>")
    crawl(tmp_path, site, 15)
    site.page("/", links("/shelf?sid=11"))
    run = crawl(tmp_path, site, 15, ignore_parameters="sid")
    n_old = [len(site.visits(path)) for path in old]
    again = crawl(tmp_path, site, 10, ignore_parameters="sid")
    assert [len(site.visits(path)) for path in old] == n_old
    assert len(site.visits("/shelf?sid=11")) > 2
    assert set(run.outcomes()) == set(again.outcomes()) == {site.url("/"), site.url("/shelf?sid=11")}
    assert "9 pages differ from others by CRAWLSCHED_IGNORE_PARAMETERS only" in run.log
    assert "by CRAWLSCHED_IGNORE_PARAMETERS only" not in again.log


def test_depth_limit_holds_over_restarts(site: Site, tmp_path: Path) -> None:
    """A page that is known has the depth at which it was found."""
    for level in range(9):
        site.page(f"/level/{level}" if level else "/", links(f"/level/{level + 1}"))
    for _ in range(3):
        crawl(tmp_path, site, 12, DEPTH_LIMIT=2)
    assert [n_asked(site, f"/level/{level}") for level in range(1, 6)] == [1, 1, 0, 0, 0]
