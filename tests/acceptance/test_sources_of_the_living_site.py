"""A crawl of the living site, whose sitemaps are honest, late, partial, lying and absent, learns which is which."""

import subprocess
import sys

import pytest

from tests import children
from tests.crawling import Project

pytestmark = pytest.mark.statistics

HONEST, LATE, LYING, ABSENT, PARTIAL = (f"127.0.0.{number}" for number in (12, 13, 16, 17, 19))
SECONDS = 32


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """The living site, in a process of its own."""
    truth = tmp_path_factory.mktemp("site") / "truth.jsonl"
    command = [sys.executable, "-m", "living_site", "--truth", truth, "--while-stdin-is-open"]
    pipe = subprocess.PIPE
    process = children.start(*command, cwd=children.ROOT / "example_project", stdin=pipe, stdout=pipe)
    yield process.stdout.readline().strip().rstrip("/").rpartition(":")[2]
    process.stdin.close()
    process.wait(20)
    process.stdout.close()


@pytest.fixture(scope="module")
def sources(port, tmp_path_factory):
    """What `crawlsched sources` says of the sitemap of each host."""
    sitemaps = [
        f"http://{host}:{port}/sitemap.xml{'.gz' if host == HONEST else ''}"
        for host in (HONEST, LATE, LYING, ABSENT, PARTIAL)
    ]
    # Pages carry the number of the request, which only second fetches tell from an edit.
    settings = {"probes": True, "fingerprint_drop": ".visitors", "HTTPERROR_ALLOW_ALL": True}
    polled = {"source_urls": ",".join(sitemaps), "source_interval": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
    project = Project(tmp_path_factory.mktemp("crawl"), [], bandwidth="40/s", seconds=SECONDS, **settings, **polled)
    found = project.run(timeout=SECONDS + 60).report("sources")["sources"]
    return {source["host"]: source for source in found if source["kind"] == "sitemap"}


def test_the_sitemap_that_stamps_every_page_now_is_not_believed(sources):
    """Its precision is below that of the honest one, beyond the intervals, and the crawl gives it less weight."""
    honest, lying = sources[HONEST], sources[LYING]
    assert lying["heard"] > 20
    assert honest["heard"] > 20
    assert honest["precision_interval"][0] > lying["precision_interval"][1]
    assert honest["signal_weight"] > 3 * lying["signal_weight"]


def test_late_and_partial_sitemaps_are_believed_more_than_a_lying_one(sources):
    """What they say is true, though they say it late, or not of every change."""
    for host in (LATE, PARTIAL):
        assert sources[host]["heard"] > 10
        assert sources[host]["precision"] > sources[LYING]["precision"]


def test_an_absent_sitemap_is_found_and_says_nothing(sources):
    """The file is not there; it is asked for ever more rarely."""
    absent = sources[ABSENT]
    assert absent["heard"] == 0
    assert absent["precision"] is None
    assert absent["next_poll_at"] - absent["polled_at"] > 4.0
