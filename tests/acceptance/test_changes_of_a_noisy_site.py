"""A crawl of a noisy site in a process of its own: precision and recall of "changed", counted against its truth."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlsched.validators import standings
from tests.changing_site import HOSTS, LYING, PAGES_PER_HOST, WALLED, version
from tests.crawling import _ROOT, Crawl, Project

SECONDS = 40.0
# The site's clock and ours differ by the time that an answer takes: an edit so close to a visit may be on either side.
NEARLY_AT_ONCE = 0.35
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
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Crawl, float, Path, int]]:
    """The end of a crawl of 40 seconds, the site's epoch, the crawl's folder, the site's port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder, epoch = tmp_path_factory.mktemp("crawl"), time.time() + 3.0
    site = subprocess.Popen(
        [sys.executable, "-m", "tests.changing_site", str(port), str(epoch), str(SECONDS + 60)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert site.stdout is not None
        assert site.stdout.readline() == "serving\n"
        urls = [f"http://{host}:{port}/news/{page}" for host in HOSTS for page in range(PAGES_PER_HOST)]
        project = Project(
            folder,
            SPIDER.format(urls=urls),
            CRAWLSCHED_PROBES="True",
            CRAWLSCHED_WRONG_PAGES="True",
            CRAWLSCHED_VALIDATOR_TRIALS="0.1",
            CRAWLSCHED_BANDWIDTH="35/s",
            CRAWLSCHED_ERROR_INTERVAL="0.5",
            CRAWLSCHED_REPLAN_INTERVAL="5",
            CRAWLSCHED_MAX_CRAWL_INTERVAL="3",
            CLOSESPIDER_TIMEOUT=str(SECONDS),
        )
        yield project.run(timeout=SECONDS + 40), epoch, folder, port
    finally:
        site.terminate()
        site.communicate(timeout=10)


def found(crawl: Crawl, epoch: float, hosts: tuple[str, ...]) -> Found:
    """Compare what visits found with what the site had done since the visit before."""
    true = false = missed = 0
    store = crawl.store()
    for number in range(store.next_page()):
        facts = store.facts([number])[0]
        assert facts is not None
        host, page = facts.url.split("/")[2].partition(":")[0], int(facts.url.rpartition("/")[2])
        if host not in hosts:
            continue
        last = None
        for row in reversed(store.observations_of(number, 10_000)):
            if row.outcome not in ("changed", "unchanged", "not_modified", "flapping"):
                continue
            if last is not None:
                is_other = version(host, page, last - epoch) != version(host, page, row.time - epoch)
                surely, hardly = (
                    version(host, page, last - epoch + slack) != version(host, page, row.time - epoch - slack)
                    for slack in (NEARLY_AT_ONCE, -NEARLY_AT_ONCE)
                )
                true += row.changed is True and hardly
                false += row.changed is True and not hardly
                missed += row.changed is not True and is_other and surely
            last = row.time
    store.close()
    return Found(true, false, missed)


def test_precision_and_recall_of_changed(crawled: tuple[Crawl, float, Path, int]) -> None:
    """Clocks, counters, headlines, advertisements, trials and log-in walls are no changes; one-word edits are."""
    crawl, epoch, _, _ = crawled
    counts = found(crawl, epoch, HOSTS[:2])
    assert counts.true >= 60, (counts, crawl.stats)
    assert counts.true / (counts.true + counts.false) >= 0.97, (counts, crawl.stats)
    assert counts.true / (counts.true + counts.missed) >= 0.95, (counts, crawl.stats)


def test_an_etag_that_lies_is_found_out(crawled: tuple[Crawl, float, Path, int]) -> None:
    """From then on it is neither sent nor believed, and the host's edits are found."""
    crawl, epoch, _, _ = crawled
    store = crawl.store()
    (notes,) = [host.counts for host in store.host_rows() if host.host == LYING]
    store.close()
    assert standings(notes["validators"])["ETag"] == "lying"
    counts = found(crawl, epoch, (LYING,))
    assert counts.true >= 20, counts
    assert counts.true / (counts.true + counts.false) >= 0.95, counts
    assert counts.true / (counts.true + counts.missed) >= 0.75, counts


def test_the_log_in_wall_is_found_and_hardly_anybody_sees_it(crawled: tuple[Crawl, float, Path, int]) -> None:
    """At most one of its appearances reaches the spider before it is known."""
    crawl, _, folder, _ = crawled
    seen = [line.split() for line in (folder / "seen.txt").read_text().splitlines()]
    assert len(seen) > 100
    assert sum(is_wall == "True" for _, is_wall in seen) <= 1
    assert crawl.stats["crawlsched/resolved/wrong"] >= 5
    store = crawl.store()
    (notes,) = [host.counts for host in store.host_rows() if host.host == WALLED]
    store.close()
    assert len(notes["wrong_pages"]) >= 1


def test_probes_are_few_and_each_is_resolved_once(crawled: tuple[Crawl, float, Path, int]) -> None:
    """They are counted, they took slots, and learning did not cost more than a tenth of the budget."""
    crawl, _, _, _ = crawled
    stats = crawl.stats
    assert stats["crawlsched/dispatched"] == stats["crawlsched/resolved"]
    assert stats["crawlsched/probes/noise_found"] >= 1
    assert stats["crawlsched/dispatched/probe"] <= 0.1 * stats["crawlsched/dispatched"]
    assert stats["crawlsched/slots/used"] >= stats["crawlsched/dispatched"]
