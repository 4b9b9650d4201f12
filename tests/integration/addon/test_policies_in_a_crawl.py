"""A real crawl by the methods of the papers: plans and turns through the same slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from aiohttp import web

from tests.crawling import Project
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


def visits(site: Site, folder: Path, n: int, **settings: str) -> Counter[str]:
    """Crawl until so many visits are resolved, and count those of each page."""
    urls = [site.url(f"/{number}") for number in range(N_PAGES)]
    crawl = Project(folder, urls, visits=n, **settings).run()
    assert crawl.returncode == 0, crawl.log
    return Counter(path for path, _ in site.requests)


def test_pages_in_turn_through_the_same_slots(site: Site, tmp_path: Path) -> None:
    """By round robin each page gets as many visits as any other, however often it changes."""
    found = visits(site, tmp_path, 10 * N_PAGES, crawl_value="round_robin")
    assert len(found) == N_PAGES
    assert max(found.values()) - min(found.values()) <= 1


def test_a_plan_gives_pages_their_rates(site: Site, tmp_path: Path) -> None:
    """By the square root of their change rates: what changes at each visit is visited more."""
    found = visits(site, tmp_path, 200, crawl_value="square_root", estimator="bias_reduced")
    often, rarely = (sum(found[f"/{number}"] for number in some) for some in (range(3), range(3, N_PAGES)))
    assert often > 1.5 * rarely > 0
