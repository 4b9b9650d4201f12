"""`crawlsched import`: pages, importance and histories from files."""

import gzip
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from crawlsched.pages import LIVE, NEW
from crawlsched.planner import Planner, explain, plan
from crawlsched.store import Store
from crawlsched.store.records import last_plan
from tests.commands import failed, report, run_here, said

DAY = 86_400.0


def imported(folder: Path, text: str | bytes, *options: str, name: str = "file.csv") -> dict[str, object]:
    """Import a file into the collection 'news', and return what was reported."""
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    given = "--database", "sqlite:///crawl.db", "--collection", "news"
    return report("import", name, *given, *options, folder=folder)


@pytest.fixture
def columns(tmp_path: Path):
    """Give one stored column of the pages by their URLs."""

    def of(name: str) -> dict[str, float]:
        store = Store.open(f"sqlite:///{tmp_path}/crawl.db", "news")
        try:
            block = next(store.load())
            urls = [facts.url for facts in store.reader.facts(block["page"]) if facts is not None]
            return dict(zip(urls, block[name].tolist(), strict=True))
        finally:
            store.close()

    return of


def test_a_url_a_line_becomes_a_page(tmp_path: Path, columns) -> None:
    """Blank lines and notes are no pages, what stands twice is one, and what is wrong is named and left out."""
    text = "# ours\nhttp://a.example/1\n\nhttp://a.example/2\nhttp://a.example/1\n/p/3\nhttp://b.example/\xff\n"
    found = imported(tmp_path, text.encode("latin-1"), name="urls.txt")
    assert (found["lines"], found["new"], found["lines_left_out"]) == (7, 2, 2)
    assert [row["line"] for row in found["wrong"]] == [6, 7]
    assert columns("state") == {"http://a.example/1": NEW, "http://a.example/2": NEW}
    # A crawl will read the sitemaps that the new site names.
    store = Store.open(f"sqlite:///{tmp_path}/crawl.db", "news")
    assert [(source.kind, source.url) for source in store.reader.sources()] == [
        ("robots", "http://a.example/robots.txt")
    ]
    store.close()
    # Once more changes nothing; nor does a file that is packed.
    again = imported(tmp_path, gzip.compress(b"http://a.example/2\nhttp://c.example/"), name="urls.txt.gz")
    assert (again["new"], again["weighed"], again["lines_left_out"]) == (1, 0, 0)


def test_importance_is_stated_of_new_and_of_known_pages(tmp_path: Path, columns) -> None:
    """A CSV weighs pages; a wrong number, a row of another length and a URL in quotes with commas are what they are."""
    imported(tmp_path, "http://a.example/1\nhttp://a.example/2\n")
    text = (
        'Host,URL,importance\na,http://a.example/2,3\na,"http://a.example/q?x=1,2",0.5\na,http://a.example/4,-1\na,b\n'
    )
    found = imported(tmp_path, text)
    assert (found["new"], found["weighed"], found["columns_ignored"]) == (1, 1, ["host"])
    assert [row["line"] for row in found["wrong"]] == [4, 5]
    assert columns("importance") == {"http://a.example/1": 1, "http://a.example/2": 3, "http://a.example/q?x=1,2": 0.5}


def test_visits_are_what_a_crawl_would_have_left(tmp_path: Path, columns) -> None:
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


def test_the_first_plan_is_that_of_a_crawl_that_made_the_visits(tmp_path: Path) -> None:
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
    assert newest.data["threshold"] == pytest.approx(made.threshold, rel=0.15)
    listed = said("pages", "--columns", "url,change_rate", "--csv", "--database", "sqlite:///crawl.db", folder=tmp_path)
    rows = [line.split(",") for line in listed.splitlines()[1:]]
    known = {int(url.rpartition("/")[2]): float(rate) for url, rate in rows}
    alike = [known[page] / explain(crawled, page, now).change_rate for page in range(n_pages)]
    assert 0.9 < min(alike) < max(alike) < 1.1
    # Not far from the truth, most of the time.
    ratios = [known[page] / rates[page] for page in range(n_pages)]
    assert 0.7 < np.median(ratios) < 1.5
    assert np.mean([0.3 < ratio < 3.0 for ratio in ratios]) > 0.8


def test_what_cannot_be_imported_is_said(tmp_path: Path) -> None:
    """No collection named, no file, no time: a sentence each, and no database is made."""
    (tmp_path / "urls.txt").write_text("http://a.example/1\n")
    (tmp_path / "half.csv").write_text("url,changed\n")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"http://a.example/1\n" * 100)[:40])
    given, named = ("--database", "sqlite:///crawl.db"), ("--collection", "news")
    for arguments, words in (
        (("urls.txt", *given), "name it with --collection"),
        (("nothing.txt", *given, *named), "There is no file 'nothing.txt'"),
    ):
        assert words in failed(run_here(tmp_path, "import", *arguments))
    assert not (tmp_path / "crawl.db").exists()
    for name, words in (("half.csv", "no column time"), ("cut.gz", "cannot be read")):
        assert words in failed(run_here(tmp_path, "import", name, *given, *named))
