"""A crawl of a noisy site in a process of its own: precision and recall of "changed", counted against its truth."""

from bisect import bisect_right
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crawlsched.crawl.validators import standings
from tests import children
from tests.changing_site import HOSTS, LYING, PAGES_PER_HOST, WALLED
from tests.crawling import Crawl, Project, spider

pytestmark = pytest.mark.statistics

SECONDS = 50.0
LEARNING = 15.0  # seconds in which the crawl finds out what changes by itself: what it tells until then does not count
SEEN = 'yield {"is_wall": "Please log in" in response.text}'


class Found(NamedTuple):
    """Visits to pages that had changed and were found so, that had not and were, that had and were not."""

    true: int
    false: int
    missed: int


@pytest.fixture(scope="module")
def crawled(tmp_path_factory) -> tuple[Crawl, Path]:
    """What is left of a crawl of 50 seconds, and the folder where it and the site have written."""
    folder = tmp_path_factory.mktemp("crawl")
    port = children.serve("tests.changing_site", folder / "served.txt")
    urls = [f"http://{host}:{port}/news/{page}" for host in HOSTS for page in range(PAGES_PER_HOST)]
    settings = {"probes": True, "withhold": True, "conditional_requests": True, "error_interval": 0.5}
    often = [["*", {"max_interval": 3}]]
    project = Project(folder, spider(urls, SEEN), bandwidth="35/s", pages=often, seconds=SECONDS, **settings)
    return project.run(timeout=SECONDS + 60), folder


def served(folder: Path) -> dict[tuple[str, int], list[tuple[float, int]]]:
    """Read what the site served: for each page the times and the versions."""
    versions: dict[tuple[str, int], list[tuple[float, int]]] = {}
    for line in (folder / "served.txt").read_text().splitlines():
        at, host, page, version = line.split()
        versions.setdefault((host, int(page)), []).append((float(at), int(version)))
    return versions


def found(crawl: Crawl, folder: Path, hosts: tuple[str, ...]) -> Found:
    """Compare what visits found with the versions that the site had for them and had served to the visits before."""
    true = false = missed = 0
    versions = served(folder)
    known_from = min(times[0][0] for times in versions.values()) + LEARNING
    for url, facts in crawl.pages().items():
        host, page = url.split("/")[2].partition(":")[0], int(url.rpartition("/")[2])
        if host not in hosts:
            continue
        last = None
        for row in crawl.visits(facts.page):
            if row.outcome not in ("changed", "unchanged", "not_modified", "flapping"):
                continue
            # A page is fetched once at a time, so this visit's answer is the last that left before it was judged.
            now = versions[host, page][bisect_right(versions[host, page], (row.time, 10**9)) - 1][1]
            if last is not None and row.time >= known_from:
                true += row.changed is True and now != last
                false += row.changed is True and now == last
                missed += row.changed is not True and now != last
            if row.outcome != "not_modified":  # a 304 showed nothing that the next visit could be compared to
                last = now
    return Found(true, false, missed)


def notes_of(crawl: Crawl, name: str) -> dict[str, Any]:
    (notes,) = [host.counts for host in crawl.read(lambda store: store.reader.hosts()) if host.host == name]
    return notes


def test_precision_and_recall_of_changed(crawled: tuple[Crawl, Path]):
    """Clocks, counters, headlines, advertisements, trials and log-in walls are no changes; one-word edits are."""
    crawl, folder = crawled
    counts = found(crawl, folder, HOSTS[:2])
    assert counts.true >= 60, (counts, crawl.stats)
    assert counts.true / (counts.true + counts.false) >= 0.95, (counts, crawl.stats)
    assert counts.true / (counts.true + counts.missed) >= 0.95, (counts, crawl.stats)


def test_an_etag_that_lies_is_found_out(crawled: tuple[Crawl, Path]):
    """From then on it is neither sent nor believed, and the host's edits are found; until then, it hides them."""
    crawl, folder = crawled
    notes = notes_of(crawl, LYING)
    assert standings(notes["validators"])["ETag"] == "lying"
    counts = found(crawl, folder, (LYING,))
    assert counts.true >= 20, counts
    assert counts.true / (counts.true + counts.false) >= 0.95, counts
    assert counts.true / (counts.true + counts.missed) >= 0.5, counts


def test_the_log_in_wall_is_found_and_hardly_anybody_sees_it(crawled: tuple[Crawl, Path]):
    """At most one of its appearances reaches the spider before it is known."""
    crawl, _ = crawled
    assert len(crawl.items) > 100
    assert sum(item["is_wall"] for item in crawl.items) <= 1
    assert crawl.stats["crawlsched/resolved/wrong"] >= 5
    notes = notes_of(crawl, WALLED)
    assert len(notes["wrong_pages"]) >= 1


def test_probes_are_few_and_each_is_resolved_once(crawled: tuple[Crawl, Path]):
    """They are counted, they took slots, and learning did not cost more than a tenth of the budget."""
    crawl, _ = crawled
    stats = crawl.stats
    assert stats["crawlsched/dispatched"] == stats["crawlsched/resolved"]
    assert stats["crawlsched/probes/noise_found"] >= 1
    assert stats["crawlsched/dispatched/probe"] <= 0.1 * stats["crawlsched/dispatched"]
    assert stats["crawlsched/slots/used"] >= stats["crawlsched/dispatched"]
