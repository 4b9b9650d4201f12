"""A crawl of a noisy site in a process of its own: precision and recall of "changed", counted against its truth."""

from __future__ import annotations

import socket
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlsched.crawl.validators import standings
from tests import children
from tests.changing_site import HOSTS, LYING, PAGES_PER_HOST, WALLED
from tests.crawling import Crawl, Project

pytestmark = pytest.mark.statistics

SECONDS = 50.0
LEARNING = 15.0  # seconds in which the crawl finds out what changes by itself: what it tells until then does not count
SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}

    def parse(self, response):
        with open("seen.txt", "a") as file:
            print(response.url, "Please log in" in response.text, file=file)
"""


class Found(NamedTuple):
    """Visits to pages that had changed and were found so, that had not and were, that had and were not."""

    true: int
    false: int
    missed: int


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Crawl, Path]]:
    """What is left of a crawl of 40 seconds, and the folder where it and the site have written."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("crawl")
    command = [sys.executable, "-m", "tests.changing_site", port, SECONDS + 60, folder / "served.txt"]
    site = children.start(*command, cwd=children.ROOT, stdout=subprocess.PIPE)
    try:
        assert site.stdout is not None
        assert site.stdout.readline() == "serving\n"
        urls = [f"http://{host}:{port}/news/{page}" for host in HOSTS for page in range(PAGES_PER_HOST)]
        project = Project(
            folder,
            SPIDER.format(urls=urls),
            CRAWLSCHED_PROBES="True",
            CRAWLSCHED_WITHHOLD="True",
            CRAWLSCHED_CONDITIONAL_REQUESTS="True",
            CRAWLSCHED_BANDWIDTH="35/s",
            CRAWLSCHED_ERROR_INTERVAL="0.5",
            CRAWLSCHED_PAGES='[["*", {"max_interval": 3}]]',
            CLOSESPIDER_TIMEOUT=str(SECONDS),
        )
        yield project.run(timeout=SECONDS + 60), folder
    finally:
        site.terminate()
        site.communicate(timeout=10)


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
    store, versions = crawl.store(), served(folder)
    known_from = min(times[0][0] for times in versions.values()) + LEARNING
    for number in range(store.reader.next_page()):
        facts = store.reader.facts([number])[0]
        assert facts is not None
        host, page = facts.url.split("/")[2].partition(":")[0], int(facts.url.rpartition("/")[2])
        if host not in hosts:
            continue
        last = None
        for row in reversed(store.reader.observations_of(number, 10_000)):
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
    store.close()
    return Found(true, false, missed)


def test_precision_and_recall_of_changed(crawled: tuple[Crawl, Path]) -> None:
    """Clocks, counters, headlines, advertisements, trials and log-in walls are no changes; one-word edits are."""
    crawl, folder = crawled
    counts = found(crawl, folder, HOSTS[:2])
    assert counts.true >= 60, (counts, crawl.stats)
    assert counts.true / (counts.true + counts.false) >= 0.95, (counts, crawl.stats)
    assert counts.true / (counts.true + counts.missed) >= 0.95, (counts, crawl.stats)


def test_an_etag_that_lies_is_found_out(crawled: tuple[Crawl, Path]) -> None:
    """From then on it is neither sent nor believed, and the host's edits are found; until then, it hides them."""
    crawl, folder = crawled
    store = crawl.store()
    (notes,) = [host.counts for host in store.reader.hosts() if host.host == LYING]
    store.close()
    assert standings(notes["validators"])["ETag"] == "lying"
    counts = found(crawl, folder, (LYING,))
    assert counts.true >= 20, counts
    assert counts.true / (counts.true + counts.false) >= 0.95, counts
    assert counts.true / (counts.true + counts.missed) >= 0.5, counts


def test_the_log_in_wall_is_found_and_hardly_anybody_sees_it(crawled: tuple[Crawl, Path]) -> None:
    """At most one of its appearances reaches the spider before it is known."""
    crawl, folder = crawled
    seen = [line.split() for line in (folder / "seen.txt").read_text().splitlines()]
    assert len(seen) > 100
    assert sum(is_wall == "True" for _, is_wall in seen) <= 1
    assert crawl.stats["crawlsched/resolved/wrong"] >= 5
    store = crawl.store()
    (notes,) = [host.counts for host in store.reader.hosts() if host.host == WALLED]
    store.close()
    assert len(notes["wrong_pages"]) >= 1


def test_probes_are_few_and_each_is_resolved_once(crawled: tuple[Crawl, Path]) -> None:
    """They are counted, they took slots, and learning did not cost more than a tenth of the budget."""
    crawl, _ = crawled
    stats = crawl.stats
    assert stats["crawlsched/dispatched"] == stats["crawlsched/resolved"]
    assert stats["crawlsched/probes/noise_found"] >= 1
    assert stats["crawlsched/dispatched/probe"] <= 0.1 * stats["crawlsched/dispatched"]
    assert stats["crawlsched/slots/used"] >= stats["crawlsched/dispatched"]
