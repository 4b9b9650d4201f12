"""Times that honest Last-Modified headers state reach what a real crawl has learned, and those of others do not."""

import itertools
import time
from email.utils import formatdate

import pytest

from crawlsched.planner import Planner
from tests.crawling import Project
from tests.site import Answer, Site, html

HONEST, RESTLESS = "127.0.0.31", "127.0.0.32"
CHANGING, CALM = range(4), range(4, 8)
#: Seconds between two visits of a page, and before the visit that a changing page changed, by Date and Last-Modified.
INTERVAL, SINCE = 4.5, 4.0


def _answer(page: int) -> Answer:
    """Serve a page that changes before every visit, or never, with the time of that, or with the time of the answer."""
    visits = {host: itertools.count() for host in (HONEST, RESTLESS)}
    born = int(time.time()) - 100.0

    def answer(request):
        host, now = request.host.split(":")[0], int(time.time())
        number = next(visits[host]) if page in CHANGING else 0
        modified = now if host == RESTLESS else now - SINCE if page in CHANGING else born
        headers = {"Date": formatdate(now, usegmt=True), "Last-Modified": formatdate(modified, usegmt=True)}
        # Pages that all changed in the same words would be taken for the site's template.
        return html(f"<p>{page}: version {page}.{number}</p>", headers=headers)

    return answer


def test_a_change_counts_as_of_when_an_honest_last_modified_says(tmp_path):
    """Three changes and three rests prove a host's header; from then on each change is one of `SINCE` seconds ago."""
    with Site((HONEST, RESTLESS)) as site:
        paths = [f"/{page}" for page in (*CHANGING, *CALM)]
        for page, path in enumerate(paths):
            site.page(path, _answer(page))
        urls = [site.url(path, host) for path in paths for host in (HONEST, RESTLESS)]
        # Not conditional, so that each visit puts the header to the test.
        settings = {"pages": [["*", {"min_interval": INTERVAL, "max_interval": INTERVAL + 0.1}]]}
        project = Project(tmp_path, urls, conditional_requests=False, bandwidth="40/s", seconds=60, **settings)
        crawl = project.run(timeout=80, visits=5 * len(urls))
    visits = sorted((row.time, url, row) for url, page in crawl.pages().items() for row in crawl.visits(page.page))
    n_dated = 0
    for host in (HONEST, RESTLESS):
        moved = rested = 0
        for row in (row for _, url, row in visits if host in url and row.changed is not None):
            moved, rested = moved + row.changed, rested + (not row.changed)
            is_dated = host == HONEST and row.changed and min(moved, rested) >= 3
            assert row.time_since_modified == (pytest.approx(SINCE, abs=1.0) if is_dated else None)
            n_dated += is_dated
    assert n_dated >= 2 * len(CHANGING)
    planner = Planner(1.0)
    given = {"grid": planner.grid, "n_rates": planner.posterior.rates.size, "host_number": lambda name: 0}
    for block in crawl.read(lambda store: list(store.load(**given))):
        planner.load(block, block["log_likelihood"], time.time())
    rates = {url: float(planner.posterior.change_rate(page.page)) for url, page in crawl.pages().items()}
    for page in CHANGING:
        # Changes found at every visit may be one an interval or many; dated they are one in four seconds.
        assert rates[site.url(f"/{page}", HONEST)] < 0.9 * rates[site.url(f"/{page}", RESTLESS)]
