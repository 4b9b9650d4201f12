"""A collection with a history, served by `crawlsched web`: what the tests of the page look at."""

import http.client
import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pytest
from sqlalchemy import update

from crawlsched.pages import LIVE
from crawlsched.planner import Planner, plan
from crawlsched.store import Batch, ChangeRow, Host, KeptText, NewPage, ObservationRow, Source, Store, models
from crawlsched.store.kept_texts import packed
from crawlsched.store.records import put_sample, save_plan
from tests import children
from tests.rows import name_of
from tests.waiting import wait_until

TOKEN = "0123456789abcdef0123"
EVIL = "http://a.example/<script>alert(1)</script>?\"'><img src=x onerror=alert(2)>"
N_PAGES = 60


class Served(NamedTuple):
    """An address, and the database behind it."""

    address: str
    database: str


class Answer:
    def __init__(self, served: Served, path: str, method: str = "GET", body: str | None = None, **headers: str) -> None:
        where = urlsplit(served.address)
        with closing(http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)) as connection:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            self.status, self.headers, self.text = answer.status, answer.headers, answer.read().decode()


def fill(database: str) -> None:
    """Make a collection of sixty pages with a day behind it; one is called, and says, what would be a script."""
    store, now = Store.open(database, "shop"), time.time()
    # Of the last two, one is no URL to Python, and one names no host.
    urls = [EVIL, *[f"http://a.example/p/{number}" for number in range(1, N_PAGES - 2)], "http://[bad/", "data:,x"]
    batch = Batch()
    for page, url in enumerate(urls):
        batch.new_pages[page] = NewPage(page, url, "a.example", name_of(url), now - 90_000.0)
    numbers = range(24)
    for n in numbers:
        at = now - 3600.0 * (24 - n)
        outcome = "changed" if n % 3 == 0 else "unchanged"
        batch.observations.append(ObservationRow(n, 0, at, 3600.0, 0, -1, n % 3 == 0, outcome, 200))
        if n % 3 == 0:
            batch.changes.append(ChangeRow(1 + n // 3, 0, at + 0.5, "new" if n == 0 else "changed", n))
    batch.changes += [
        ChangeRow(9, N_PAGES - 2, now - 2.0, "new", None),
        ChangeRow(10, N_PAGES - 1, now - 1.0, "new", None),
    ]
    last = now - 3600.0 * 3
    batch.texts[0] = KeptText(last, packed("<script>alert(3)</script> 2", 999), last - 9, packed("<b>1</b>", 999))
    held = {"wrong_page": {"n": 7, "last_at": now, "urls": [[EVIL, now]]}}
    batch.hosts["a.example"] = Host("a.example", now + 4000.0, 2.0, now, {"withheld": held})
    batch.hosts["0.quiet.example"] = Host("0.quiet.example", 0.0)
    batch.hosts["<script>alert(5)"] = Host("<script>alert(5)", now + 900.0)
    batch.sources[0] = Source(0, "sitemap", "javascript:alert(4)", "a.example", problems={"bad-url": 2})
    batch.contents[3] = {"pending_fingerprint": b"x" * 16}
    store.save(batch)
    visited = {"state": LIVE, "crawled_at": now - 90_000.0, "n_crawls": 9, "n_changes": 10 - models.pages.c.page}
    some = update(models.pages).where(models.pages.c.page.in_([0, 5, 7])).values(visited)
    store.write(lambda connection: connection.execute(some))
    for minute in range(0, 24 * 60, 10):
        fresh = 0.85 + 0.05 * math.sin(minute / 200)
        counts = {"used": 540.0, "idle": 50.0, "no_free_host": 10.0, "missed": 0.0, "visits": 540.0, "errors": 1.0}
        figures = {"seconds": 600.0, "expected_freshness": fresh, "freshness_error": 0.004, "pages": 60.0, **counts}
        put_sample(store, now - 60 * minute, {**figures, "changes": 40.0, "delivered": 40.0, "withheld": 0.0})
    planner = Planner(1.0)
    planner.add(host=0, now=0.0)
    heard = {"source": [0] * 40, "elapsed": [600.0] * 40, "n_signals": [1, 0] * 20, "changed": [1, 0] * 20}
    told = {name: np.array(column) for name, column in heard.items()}
    save_plan(store, plan(planner.snapshot(), 1.0, signal_observations=told).to_dict(), now)
    store.close()


@pytest.fixture(scope="package")
def served(tmp_path_factory) -> Iterator[Served]:
    """The page about that collection, in a process of its own."""
    folder = tmp_path_factory.mktemp("web")
    database = f"sqlite:///{folder}/crawl.db"
    fill(database)
    yield from serve(folder, database)


def serve(folder: Path, database: str, *settings: str) -> Iterator[Served]:
    """Serve it until the end."""
    web = json.dumps({"address": 0, "token": TOKEN})
    options = [f"-sCRAWLSCHED_{setting}" for setting in (f"WEB={web}", *settings)]
    command = (sys.executable, "-W", "error", "-m", "crawlsched", "web", "--database", database, "--address", "0")
    with (folder / "web.log").open("w") as log:
        process = children.start(*command, *options, stdout=log, stderr=log)
    try:
        said = (folder / "web.log").read_text
        wait_until(lambda: "The page is at " in said(), 60.0, said)
        yield Served(said().split("The page is at ")[1].split("?")[0], database)
    finally:
        children.end(process)
