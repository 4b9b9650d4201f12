"""A real crawl by the methods of the papers: estimators that survive kill -9, and plans through the same slots."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from sqlalchemy import create_engine, text

from crawlsched.cli import main
from crawlsched.estimators import LearnedRates
from tests.crawling import VISITING_SPIDER, Project
from tests.site import Site

N_PAGES = 6


@pytest.fixture
def site() -> Iterator[Site]:
    """Pages 0, 1 and 2 are others at each visit, the rest stay."""
    with Site() as site:
        for number in range(N_PAGES):
            numbers = count()

            def answer(request: web.Request, number: int = number, numbers: Iterator[int] = numbers) -> web.Response:
                words = f"edition {next(numbers)}" if number < 3 else "always the same"
                return web.Response(text=f"<p>{words} of page {number}</p>", content_type="text/html")

            site.page(f"/{number}", answer)
        yield site


def _spider(site: Site) -> str:
    return VISITING_SPIDER.format(urls=[site.url(f"/{number}") for number in range(N_PAGES)])


def _rows(url: str, query: str) -> list[tuple]:
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]
    finally:
        engine.dispose()


def _is_what_visits_say(url: str, horizon: float) -> int:
    """Check that each page's stored state is that of an estimator which has seen its stored visits; return how many."""
    visits = _rows(
        url,
        "SELECT page, elapsed, changed, n_signals, time_since_modified FROM observations "
        "WHERE elapsed IS NOT NULL AND changed IS NOT NULL ORDER BY id",
    )
    alone = LearnedRates("momentum", N_PAGES, 1 / horizon, {"beta": 0.75})
    for page, elapsed, changed, n_signals, since in visits:
        alone.observe(page, elapsed, bool(changed), n_signals, since)
    kept = _rows(url, "SELECT page, estimator_state, change_rate, n_crawls FROM pages ORDER BY page")
    pages = np.array([row[0] for row in kept])
    assert [row[1] for row in kept] == alone.packed(pages)
    assert [row[2] for row in kept] == alone.change_rate(pages).tolist()
    return len(visits)


def test_an_estimators_state_survives_kill_9(site: Site, tmp_path: Path) -> None:
    """Killed in the middle of a crawl and started again, it is what all stored visits together make of it."""
    project = Project(
        tmp_path,
        _spider(site),
        CRAWLSCHED_CRAWL_VALUE="greedy",
        CRAWLSCHED_ESTIMATOR='{"name": "momentum", "beta": 0.75}',
        CRAWLSCHED_BANDWIDTH="20/s",
    )
    process = project.start()
    until = time.monotonic() + 30
    while len(site.requests) < 60 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    project.finish(process)
    seen = _is_what_visits_say(project.database_url, 86400.0)
    assert seen > 10
    crawl = project.run(TEST_CLOSE_AFTER_RESOLVED="40")
    assert crawl.returncode == 0, crawl.log
    assert _is_what_visits_say(project.database_url, 86400.0) > seen + 20
    with redirect_stdout(StringIO()) as said:
        assert main(["status", "--database", project.database_url]) == 0
    assert "  policy: greedy; change rates by momentum, beta = 0.75\n" in said.getvalue()


def test_pages_in_turn_through_the_same_slots(site: Site, tmp_path: Path) -> None:
    """By round robin each page gets as many visits as any other, however often it changes."""
    project = Project(
        tmp_path, _spider(site), CRAWLSCHED_CRAWL_VALUE="round_robin", TEST_CLOSE_AFTER_RESOLVED=str(10 * N_PAGES)
    )
    crawl = project.run()
    visits = Counter(path for path, _ in site.requests if path != "/robots.txt")
    assert len(visits) == N_PAGES
    assert max(visits.values()) - min(visits.values()) <= 1
    assert crawl.returncode == 0


def test_a_plan_gives_pages_their_rates(site: Site, tmp_path: Path) -> None:
    """By the square root of their change rates: what changes at each visit is visited more."""
    project = Project(
        tmp_path, _spider(site), CRAWLSCHED_CRAWL_VALUE="square_root", CRAWLSCHED_ESTIMATOR="bias_reduced"
    )
    project.run(TEST_CLOSE_AFTER_RESOLVED="200")
    visits = Counter(path for path, _ in site.requests if path != "/robots.txt")
    often, rarely = (sum(visits[f"/{number}"] for number in some) for some in (range(3), range(3, N_PAGES)))
    assert often > 1.5 * rarely > 0
