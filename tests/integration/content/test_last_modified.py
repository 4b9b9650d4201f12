"""Times that honest Last-Modified headers state reach the posterior of a real crawl, and those of others do not."""

import itertools
import time
from collections.abc import Callable
from email.utils import formatdate

import numpy as np
import pytest
from aiohttp import web

from crawlsched.planner import Planner
from crawlsched.store import ObservationRow
from tests.crawling import Project
from tests.site import Site, html

HONEST, RESTLESS = "127.0.0.31", "127.0.0.32"
CHANGING, CALM = range(4), range(4, 8)
#: Seconds between two visits of a page, and before the visit that a changing page changed, by Date and Last-Modified.
INTERVAL, SINCE = 6.5, 6.0


def _answer(page: int, *, is_honest: bool) -> Callable[[web.Request], web.Response]:
    """Serve a page that changes before every visit, or never, with the time of that, or with the time of the answer."""
    visits, born = itertools.count(), int(time.time()) - 100.0

    def answer(request: web.Request) -> web.Response:
        number, now = next(visits) if page in CHANGING else 0, int(time.time())
        modified = (now - SINCE if page in CHANGING else born) if is_honest else now
        headers = {"Date": formatdate(now, usegmt=True), "Last-Modified": formatdate(modified, usegmt=True)}
        # Pages that all changed in the same words would be taken for the site's template.
        return html(f"<p>{page}: version {page}.{number}</p>", headers=headers)

    return answer


def _rate(planner: Planner, rows: list[ObservationRow], dated: list[bool]) -> float:
    """Return the change rate by visits to a page, some of whose changes are dated."""
    learned = Planner(1.0)
    learned.add(0, 0.0)
    for row, is_dated in zip(rows, dated, strict=True):
        if row.elapsed is not None:
            since = SINCE if is_dated else None
            learned.posterior.update_one(0, row.elapsed, bool(row.changed), time_since_modified=since)
    return float(learned.posterior.change_rate(0))


def test_a_change_counts_as_of_when_an_honest_last_modified_says(tmp_path):
    """Three changes and three rests prove a host's header; from then on each change is one of `SINCE` seconds ago."""
    with Site((HONEST, RESTLESS)) as site:
        urls = []
        for page in (*CHANGING, *CALM):
            # One server for both: which of them is meant the request says.
            honest, restless = _answer(page, is_honest=True), _answer(page, is_honest=False)
            path = f"/{page}"
            site.page(path, lambda r, h=honest, o=restless: (h if r.host.startswith(HONEST) else o)(r))
            urls += [site.url(path, HONEST), site.url(path, RESTLESS)]
        # Not conditional, so that each visit puts the header to the test.
        settings = {"pages": [["*", {"min_interval": INTERVAL, "max_interval": INTERVAL + 0.1}]]}
        project = Project(tmp_path, urls, conditional_requests=False, bandwidth="40/s", seconds=60, **settings)
        crawl = project.run(timeout=80, visits=4 * len(urls))
    planner = Planner(1.0)
    given = {"grid": planner.grid, "n_rates": planner.posterior.rates.size, "host_number": lambda name: 0}
    for block in crawl.read(lambda store: list(store.load(**given))):
        planner.load(block, block["log_likelihood"], time.time())
    found = {url: facts.page for url, facts in crawl.pages().items()}
    rows = {url: crawl.visits(page) for url, page in found.items()}
    compared = sorted((row.time, url, row) for url in rows for row in rows[url] if row.changed is not None)
    for host in (HONEST, RESTLESS):
        moved = rested = 0
        dated = {url: [False] for url in rows}  # the first visit tells nothing
        for _, url, row in compared:
            if host in url:
                moved, rested = moved + bool(row.changed), rested + (not row.changed)
                dated[url].append(host == HONEST and bool(row.changed) and moved >= 3 and rested >= 3)
        for page in CHANGING:
            url = f"http://{host}:{site.port}/{page}"
            learned = float(planner.posterior.change_rate(found[url]))
            assert learned == pytest.approx(_rate(planner, rows[url], dated[url]), rel=0.05)
            undated = _rate(planner, rows[url], [False] * len(rows[url]))
            if host == HONEST:
                assert sum(dated[url]) >= 2
                # Changes found at every visit may be one an interval or many; dated they are one in six seconds.
                assert learned < 0.85 * undated
            else:
                assert learned == pytest.approx(undated, rel=0.05)
    assert np.isfinite(planner.posterior.change_rate()).all()
