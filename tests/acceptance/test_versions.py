"""Other releases: a crawl works with the oldest of everything that pyproject.toml allows."""

import os
from pathlib import Path

import pytest

from tests.versions.pairs import QUICK, environment, release, run_core_set


def test_the_oldest_pair_crawls_restarts_and_reads_robots_txt(tmp_path: Path) -> None:
    """Scrapy 2.13 and SQLAlchemy 2.0.0: kill -9, credentials, 304 and sitemaps of robots.txt as with the newest."""
    try:
        python = environment(tmp_path, "oldest")
    except AssertionError as error:
        if "Failed to fetch" in str(error) and "CI" not in os.environ:
            pytest.skip("no package registry is in reach")
        raise
    ran, failures = run_core_set(python, tmp_path, QUICK)
    assert not failures, f"{ran}\n{failures}"
    assert release(python, "scrapy").startswith("2.13.")
