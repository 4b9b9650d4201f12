"""What a page is worth and how often it is visited: by rules, functions, requests, files and methods of the papers.

And what ends a growth without end: shares, how many URLs are pages, parameters that do not count, DEPTH_LIMIT.
"""

import time
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from tests import parts
from tests.commands import said
from tests.crawling import FOLLOWS, Crawl, Project, spider
from tests.databases import rows
from tests.site import Site
from tests.waiting import wait_until


def importance_of(crawl: Crawl) -> dict[str, float]:
    """Return what each page is worth, by the last part of its URL."""
    found = rows(crawl.database_url, "SELECT url, importance FROM pages")
    return {page["url"].rsplit("/", 1)[1]: page["importance"] for page in found}


def test_rules_hold_for_new_and_for_stored_pages(site, tmp_path):
    """Importance and intervals go by pattern, a host has its share; other rules count from the next start on."""
    urls = [site.page(f"/{name}", f"<p>{name}") for name in ("often", "seldom", "plain1", "plain2", "plain3")]
    urls += [site.url(f"/plain{n}", "127.0.0.2") for n in (1, 2, 3)]
    rules = [["*/often", {"importance": 3, "max_interval": 0.2}], ["*/seldom", {"min_interval": "1h"}]]
    project = Project(tmp_path, urls, bandwidth="16/s", visits=56)
    crawl = project.run(pages=rules, host_shares={"127.0.0.2": 0.2})
    visits = Counter(path for path, _ in site.requests)
    hosts = Counter(headers["host"].partition(":")[0] for _, headers in site.requests)
    assert visits["/seldom"] == 1
    assert visits["/often"] >= 10  # 56 visits take 3.5 s
    # A fifth of 16/s, and its first request.
    assert 7 <= hosts["127.0.0.2"] <= 0.2 * 16 * (site.times[-1] - site.times[0]) + 3
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


def test_stored_pages_ask_for_what_their_rules_say(sqlite_url):
    """Rules of a pattern too, which the stored pages have only after their URLs were read."""
    refresher = parts.refresher(parts.settings(sqlite_url, bandwidth=1.0))
    refresher.admission.named(parts.found(f"http://a.example/often/{number}" for number in range(5)), time.time())
    parts.close(refresher)
    refresher = parts.refresher(parts.settings(sqlite_url, bandwidth=1.0, pages=[("*/often/*", {"max_interval": 1})]))

    def demand():
        refresher.collection.aside.collect()
        refresher.long_work.go_on()
        return refresher.planner.overdue_demand()

    wait_until(lambda: demand() == 5.0)
    parts.close(refresher)


def test_the_first_minute_is_said_once(site, tmp_path):
    """It counts the copies of all pages, and tells by how much the rules ask for more than there is."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(3)]
    soon = "from crawlsched.addon import extensions\nextensions.FIRST_MINUTE, extensions._COUNTED_AT_ONCE = 2.0, 2\n"
    rules = [("*", {"max_interval": 0.1})]
    crawl = Project(tmp_path, spider(urls, before=soon), bandwidth="10/s", pages=rules, seconds=4).run()
    (said,) = [line for line in crawl.log.splitlines() if "The first minute: " in line]
    assert "3 pages known, 3 with a copy" in said
    assert "asks for 20 crawls a second more" in said


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


def test_importance_follows_whoever_says_so(site, tmp_path):
    """A changed function weighs all stored pages at the next start, but not those that somebody stated."""
    site.default = lambda request: f"<p>{request.path}</p>"
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


def test_an_archive_leaves_known_pages_their_share(site, tmp_path):
    """A crawl that finds an archive goes on with the pages that it knows."""
    shelf, archive = ([f"/{place}/{number}" for number in range(n)] for place, n in (("shelf", 10), ("archive", 300)))
    site.default = lambda request: f"<p>{request.path}</p>"
    site.page("/", links(*shelf))
    crawl(tmp_path, site, 20, bandwidth="20/s")
    site.page("/", links(*shelf, *archive))
    before = sum(len(site.visits(path)) for path in shelf)
    crawl(tmp_path, site, 150, bandwidth="20/s")
    assert n_asked(site, *archive) >= 25  # a busy machine takes its time to take 310 links in
    assert sum(len(site.visits(path)) for path in shelf) - before >= 10


def test_of_a_pattern_at_most_so_many_are_pages_also_after_a_restart(site, tmp_path):
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


def test_urls_that_differ_in_ignored_parameters_are_one_page_asked_for_by_the_url_found_last(site, tmp_path):
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


def test_depth_limit_holds_over_restarts(site, tmp_path):
    """A page that is known has the depth at which it was found."""
    for level in range(9):
        site.page(f"/level/{level}" if level else "/", links(f"/level/{level + 1}"))
    for _ in range(3):
        crawl(tmp_path, site, 12, DEPTH_LIMIT=2)
    assert [n_asked(site, f"/level/{level}") for level in range(1, 6)] == [1, 1, 0, 0, 0]


@pytest.fixture
def changing(site):
    """Six pages, of which 0, 1 and 2 are others at each visit and the rest stay; their URLs."""
    numbers = count()

    def answer(request):
        words = f"edition {next(numbers)}" if request.path < "/3" else "always the same"
        return f"<p>{words} of page {request.path}</p>"

    return [site.page(f"/{number}", answer) for number in range(6)]


def test_pages_in_turn_through_the_same_slots(site, changing, tmp_path):
    """By round robin each page gets as many visits as any other, however often it changes."""
    Project(tmp_path, changing, visits=60, crawl_value="round_robin").run()
    found = Counter(path for path, _ in site.requests)
    assert len(found) == len(changing)
    assert max(found.values()) - min(found.values()) <= 1


def test_a_plan_gives_pages_their_rates(site, changing, tmp_path):
    """By the square root of their change rates: what changes at each visit comes to be visited twice as often."""

    def is_so():
        newest = [path for path, _ in site.requests[-60:]]
        return len(newest) == 60 and sum(path < "/3" for path in newest) > 36

    Project(tmp_path, changing, crawl_value="square_root", estimator="bias_reduced").run_until(is_so)
