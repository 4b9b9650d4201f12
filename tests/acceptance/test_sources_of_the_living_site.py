"""A crawl of the living site, whose sitemaps are honest, late, partial, lying and absent, learns which is which."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
HONEST, LYING, ABSENT = ("127.0.0.11", "127.0.0.12"), "127.0.0.16", "127.0.0.17"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What `crawlsched sources` says of each host after 40 seconds, by host."""
    output = tmp_path_factory.mktemp("living") / "output"
    demo = [sys.executable, str(ROOT / "example_project" / "demo.py"), "--output", str(output)]
    environment = ENVIRONMENT | {"DEMO_SECONDS": "40"}
    subprocess.run(demo, env=environment, cwd=output.parent, check=True, capture_output=True, timeout=240)
    command = [sys.executable, "-m", "crawlsched.cli", "sources", "--json"]
    database = ["--database", f"sqlite:///{output / 'crawlsched.db'}"]
    told = subprocess.run([*command, *database], env=ENVIRONMENT, check=True, capture_output=True, text=True)
    report = json.loads(told.stdout)
    return {site["host"]: {**site, "told": report} for site in report["sites"]}


def test_the_sitemap_that_stamps_every_page_now_is_not_believed(sources: dict[str, dict[str, Any]]) -> None:
    """Its precision is below that of the honest ones, beyond the intervals."""
    lying = sources[LYING]
    assert lying["heard"] > 20
    for host in HONEST:
        assert sources[host]["heard"] > 10
        assert sources[host]["precision"] > lying["precision"]
    assert max(sources[host]["precision_interval"][0] for host in HONEST) > lying["precision_interval"][1]


def test_an_absent_sitemap_is_found_and_says_nothing(sources: dict[str, dict[str, Any]]) -> None:
    """robots.txt names a file that is not there."""
    [absent] = [source for source in sources[ABSENT]["told"]["sources"] if source["host"] == ABSENT]
    assert absent["heard"] == 0
    assert absent["precision"] is None


def test_all_pages_stamped_alike_is_seen(sources: dict[str, dict[str, Any]]) -> None:
    """At every reading the lying sitemap gives all its pages one date, and the honest ones do not."""
    told = {source["host"]: source for source in sources[LYING]["told"]["sources"] if source["kind"] == "sitemap"}
    assert told[LYING]["alike"] > 0.9
    assert told[HONEST[1]]["alike"] < 0.5
