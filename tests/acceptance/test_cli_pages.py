"""`crawlsched pages`, `export`, `import` and `db backup`: what a collection holds, for people and programs."""

import csv
import gzip
import json
import re
import sqlite3
import time
from contextlib import closing
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from crawlsched.pages import LIVE, NEW
from crawlsched.planner import Planner, explain, plan
from crawlsched.store import Store, copying
from crawlsched.store.database import Database
from crawlsched.store.records import last_plan
from tests import simulated
from tests.commands import failed, report, run_here, said
from tests.crawling import Project, spider
from tests.databases import rows
from tests.site import Site

GIVEN = "--database", "sqlite:///crawl.db"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a database of a day's crawl."""
    folder = tmp_path_factory.mktemp("pages")
    store = Store.open(f"sqlite:///{folder}/crawl.db", "news")
    simulated.crawl(store, time.time(), n_pages=60, days=1.0)
    store.close()
    return folder


def csv_rows(*arguments: str, folder: Path | None = None) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(said(*arguments, "--csv", folder=folder))))


def test_pages_are_listed_by_conditions_and_in_an_order(folder):
    """What fulfils all conditions, in the order asked for, as JSON and as CSV."""
    where = "--where", "n_changes >= 1", "--where", "url ~ http://127.0.0.1/*", "--where", "crawled_at > now-1d"
    found = report("pages", *where, "--order", "n_changes:desc", *GIVEN, folder=folder)["pages"]
    everything = report("pages", "--columns", "all", *GIVEN, folder=folder)["pages"]
    assert len(everything) == 60
    wanted = [p for p in everything if p["n_changes"] >= 1 and p["host"] == "127.0.0.1"]
    assert sorted(p["url"] for p in found) == sorted(p["url"] for p in wanted)
    assert 0 < len(found) < 60
    counts = [page["n_changes"] for page in found]
    assert counts == sorted(counts, reverse=True)
    first = csv_rows("pages", "--limit", "5", *GIVEN, folder=folder)
    assert [row["url"] for row in first] == [page["url"] for page in everything[:5]]
    assert first[0]["state"] == "live"


def test_tables_are_written_as_csv_and_as_lines_of_json(folder, tmp_path):
    """Each kind of file has the same rows."""
    said("export", str(tmp_path), "--format", "csv.gz", *GIVEN, folder=folder)
    with gzip.open(tmp_path / "visits.csv.gz", "rt", newline="") as file:
        packed = list(csv.DictReader(file))
    said("export", str(tmp_path / "visits.jsonl"), "--table", "visits", *GIVEN, folder=folder)
    lines = [json.loads(line) for line in (tmp_path / "visits.jsonl").read_text().splitlines()]
    assert [row["url"] for row in packed] == [line["url"] for line in lines] != []
    answer = run_here(folder, "export", "-", "--table", "visits", "--where", "changed = yes", *GIVEN)
    assert len(answer.stdout.splitlines()) == 1 + sum(line["changed"] == 1 for line in lines)


def test_a_backup_is_of_one_moment_while_others_write(folder, tmp_path, monkeypatch):
    """What is written meanwhile is not in it, and does not make it begin anew; it can be put back."""
    (tmp_path / "crawl.db").write_bytes(b"")
    run_here(folder, "db", "backup", str(tmp_path / "first.db"), *GIVEN)
    said("db", "restore", "first.db", "--yes", *GIVEN, folder=tmp_path)
    database = Database(f"sqlite:///{tmp_path}/crawl.db")
    heard = []

    def write(done, total):
        heard.append(done)
        with database.writing() as connection:
            connection.exec_driver_sql(f"UPDATE collections SET changes_given = {done}")

    monkeypatch.setattr(copying, "ROWS_AT_ONCE", 5)
    copying.copy_file(Database(f"sqlite:///{tmp_path}/crawl.db", read_only=True), tmp_path / "copy.db", write)
    database.close()
    assert len(heard) > 3
    assert heard == sorted(heard)
    (kept,) = sqlite3.connect(tmp_path / "copy.db").execute("SELECT changes_given FROM collections").fetchone()
    assert kept is None
    assert copying.require_sound(tmp_path / "copy.db")


def test_nothing_is_restored_while_a_crawl_runs(folder, tmp_path):
    """Its pages would be gone from under it."""
    said("db", "backup", str(tmp_path / "copy.db"), *GIVEN, folder=folder)
    with closing(Store.open(f"sqlite:///{folder}/crawl.db", "news")) as store:
        lease = store.take_lease("news")
        refused = run_here(folder, "db", "restore", str(tmp_path / "copy.db"), "--yes", *GIVEN)
        lease.release()
    assert "is being crawled" in failed(refused)


def test_pages_come_in_and_out_of_both_databases(database_url, tmp_path):
    """What is imported is listed and exported alike from SQLite and from PostgreSQL; a backup says what to use."""
    given = "--database", database_url
    said("db", "upgrade", *given, folder=tmp_path)
    (tmp_path / "visits.csv").write_text(
        "url,time,changed\nhttp://a.example/x_1,1700000000,\nhttp://a.example/x_1,1700086400,1\nhttp://b.example/,1700000000,\n"
    )
    said("import", "visits.csv", "--collection", "news", *given, folder=tmp_path)
    (page,) = report("pages", "--where", "url ~ *x_*", *given)["pages"]
    assert (page["url"], page["n_crawls"], page["n_changes"], page["state"]) == ("http://a.example/x_1", 2, 1, "live")
    for order in ("changed_at", "changed_at:desc"):  # what has no value comes last
        assert csv_rows("pages", "--order", order, *given)[-1]["url"] == "http://b.example/"
    assert "did you mean http://b.example/?" in run_here(tmp_path, "why", "b.example", *given).stderr
    said("export", "out", *given, folder=tmp_path)
    assert len((tmp_path / "out" / "pages.csv").read_text().splitlines()) == 3
    backup = run_here(tmp_path, "db", "backup", "copy.db", *given)
    assert (backup.returncode == 0) is database_url.startswith("sqlite")
    assert backup.returncode == 0 or "pg_dump" in backup.stderr


DAY = 86_400.0


def imported(folder: Path, text: str | bytes, *options: str, name: str = "file.csv") -> dict[str, object]:
    """Import a file into the collection 'news', and return what was reported."""
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    given = "--database", "sqlite:///crawl.db", "--collection", "news"
    return report("import", name, *given, *options, folder=folder)


@pytest.fixture
def columns(tmp_path):
    """Give one stored column of the pages by their URLs."""
    database = f"sqlite:///{tmp_path}/crawl.db"
    return lambda name: {page["url"]: page[name] for page in rows(database, f"SELECT url, {name} FROM pages")}


def test_a_url_a_line_becomes_a_page(tmp_path, columns):
    """Blank lines and notes are no pages, what stands twice is one, and what is wrong is named and left out."""
    text = "# ours\nhttp://a.example/1\n\nhttp://a.example/2\nhttp://a.example/1\n/p/3\nhttp://b.example/\xff\n"
    found = imported(tmp_path, text.encode("latin-1"), name="urls.txt")
    assert (found["lines"], found["new"], found["lines_left_out"]) == (7, 2, 2)
    assert [row["line"] for row in found["wrong"]] == [6, 7]
    assert columns("state") == {"http://a.example/1": NEW, "http://a.example/2": NEW}
    # A crawl will read the sitemaps that the new site names.
    sources = rows(f"sqlite:///{tmp_path}/crawl.db", "SELECT kind, url FROM sources")
    assert sources == [{"kind": "robots", "url": "http://a.example/robots.txt"}]
    # Once more changes nothing; nor does a file that is packed.
    again = imported(tmp_path, gzip.compress(b"http://a.example/2\nhttp://c.example/"), name="urls.txt.gz")
    assert (again["new"], again["weighed"], again["lines_left_out"]) == (1, 0, 0)


def test_a_file_of_which_no_line_is_a_url_is_a_failure(tmp_path):
    """It says which line, and what a URL begins with."""
    (tmp_path / "wrong.txt").write_text("a.example\n")
    answer = run_here(tmp_path, "import", "wrong.txt", *GIVEN, "--collection", "news")
    assert (answer.returncode, answer.stdout.count("line 1: a URL must begin with http")) == (1, 1)


def test_importance_is_stated_of_new_and_of_known_pages(tmp_path, columns):
    """A CSV weighs pages; a wrong number, a row of another length and a URL in quotes with commas are what they are."""
    imported(tmp_path, "http://a.example/1\nhttp://a.example/2\n")
    text = (
        'Host,URL,importance\na,http://a.example/2,3\na,"http://a.example/q?x=1,2",0.5\na,http://a.example/4,-1\na,b\n'
    )
    found = imported(tmp_path, text)
    assert (found["new"], found["weighed"], found["columns_ignored"]) == (1, 1, ["host"])
    assert [row["line"] for row in found["wrong"]] == [4, 5]
    assert columns("importance") == {"http://a.example/1": 1, "http://a.example/2": 3, "http://a.example/q?x=1,2": 0.5}


def test_visits_are_what_a_crawl_would_have_left(tmp_path, columns):
    """The newest visit is the copy's, changes are counted, also by digests; what is impossible is named."""
    lines = [
        "url,time,changed,digest",
        "http://a.example/1,2024-01-01T00:00:00Z,,aa",
        "http://a.example/1,20240103000000,,bb",
        "http://a.example/1,2024-01-02,,aa",
        "http://a.example/2,1704067200,1,",
        "http://a.example/2,1704153600,0,",
        "http://a.example/3,yesterday,0,",
        "http://a.example/3,4000000000,0,",
        "http://a.example/3,1704153600,maybe,",
        "http://a.example/3,,1,",
    ]
    found = imported(tmp_path, "\n".join(lines))
    assert (found["visits"], found["new"], found["plan_made"]) == (5, 2, True)
    assert [row["line"] for row in found["wrong"]] == [7, 8, 9, 10]
    assert columns("crawled_at") == {"http://a.example/1": 1704240000.0, "http://a.example/2": 1704153600.0}
    assert columns("n_crawls") == {"http://a.example/1": 3, "http://a.example/2": 2}
    assert columns("n_changes") == {"http://a.example/1": 1, "http://a.example/2": 0}  # a first visit has no before
    assert set(columns("state").values()) == {LIVE}
    # A second time they are visits that the pages have already.
    again = imported(tmp_path, "\n".join(lines))
    assert (again["visits"], again["visits_of_their_own"]) == (0, 2)
    assert columns("n_crawls")["http://a.example/1"] == 3


def test_the_first_plan_is_that_of_a_crawl_that_made_the_visits(tmp_path):
    """With twenty visits a page it says of each page, and of what a crawl is worth, what that crawl's planner says."""
    rng, n_pages, n_visits, now = np.random.default_rng(5), 150, 20, time.time()
    rates = rng.lognormal(np.log(1 / (3 * DAY)), 1.5, n_pages)
    times = np.sort(now - rng.random((n_pages, n_visits)) * 60 * DAY)
    changed = rng.random(times.shape) < -np.expm1(-rates[:, np.newaxis] * np.diff(times, axis=1, prepend=np.nan))
    crawled = Planner(1.0)
    crawled.add(np.arange(n_pages) % 3, times.min() - 1.0)
    lines = ["url,time,changed"]
    for page, visit in zip(*np.unravel_index(np.argsort(times, axis=None), times.shape), strict=True):
        at, found = float(times[page, visit]), bool(changed[page, visit])
        crawled.crawled(int(page), at, None if visit == 0 else found)
        lines.append(f"http://h{page % 3}.example/{page},{at!r},{'' if visit == 0 else int(found)}")
    made = plan(crawled.snapshot(), 1.0)
    crawled.adopt(made, now)
    assert imported(tmp_path, "\n".join(lines))["visits"] == n_pages * n_visits

    with closing(Store.open(f"sqlite:///{tmp_path}/crawl.db", "news")) as store:
        newest = last_plan(store)
    assert newest["threshold"] == pytest.approx(made.threshold, rel=0.15)
    listed = said("pages", "--columns", "url,change_rate", "--csv", "--database", "sqlite:///crawl.db", folder=tmp_path)
    pages = [line.split(",") for line in listed.splitlines()[1:]]
    known = {int(url.rpartition("/")[2]): float(rate) for url, rate in pages}
    alike = [known[page] / explain(crawled, page, now)["change_rate"] for page in range(n_pages)]
    # Both keep rows of 8 bits, and each rounds in its own way.
    assert 0.85 < min(alike) < max(alike) < 1.15
    # Not far from the truth, most of the time.
    ratios = [known[page] / rates[page] for page in range(n_pages)]
    assert 0.7 < np.median(ratios) < 1.5
    assert np.mean([0.3 < ratio < 3.0 for ratio in ratios]) > 0.8


CHANGED = 'yield {"url": response.url, "changed": response.meta["crawlsched_changed"]}'


def test_imported_pages_are_visited_and_delivered_once(tmp_path):
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


def test_no_more_pages_are_imported_than_are_allowed(tmp_path, columns):
    """By CRAWLSCHED_MAX_PAGES, and by a rule; those that were there before count, and are weighed still."""
    rule = 'CRAWLSCHED_PAGES=[["*/calendar/*", {"max_pages": 1}]]'
    for lines, counts in (
        ("calendar/1,\ncalendar/2,\na,\nb,", (3, 1, 0)),
        ("calendar/3,\nc,\nd,", (1, 2, 0)),
        ("a,2\ne,2", (0, 1, 1)),
    ):
        text = "url,importance\n" + re.sub("^", "http://a.example/", lines, flags=re.MULTILINE)
        found = imported(tmp_path, text, "-s", "CRAWLSCHED_MAX_PAGES=4", "-s", rule)
        assert (found["new"], found["too_many"], found["weighed"]) == counts
    assert len(columns("state")) == 4
