"""A PostgreSQL server that is away, or hangs, in a real crawl: a proxy between the two does as it is told."""

import re
import signal
import time
from contextlib import closing
from itertools import pairwise

import pytest

from crawlsched.store import Store
from tests.crawling import Project
from tests.proxy import Proxy
from tests.waiting import wait_until


@pytest.fixture
def proxy(postgresql_url):
    """Give a proxy before an empty database."""
    with closing(Proxy(postgresql_url)) as proxy:
        yield proxy


def test_a_server_that_is_away_is_waited_for_and_one_that_hangs_keeps_nobody(site, tmp_path, postgresql_url, proxy):
    """Away: the crawl stops and goes on, and nothing is lost. Hanging: SIGTERM ends it within half a minute."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
    project = Project(tmp_path, urls, database_url=proxy.url, bandwidth="20/s", seconds=120)
    process = project.start()
    wait_until(lambda: len(site.times) > 30)
    proxy.is_away = True
    proxy.drop()
    time.sleep(7.0)
    proxy.is_away = False
    came = len(site.times)
    wait_until(lambda: len(site.times) > came + 60, 60.0)
    gaps = [later - earlier for earlier, later in pairwise(site.times)]
    assert max(gaps) > 2.0, "nothing stopped although nothing could be written"
    assert "can be written again after" in project.log()
    with closing(Store.open(postgresql_url, "test", read_only=True)) as store:
        wait_until(lambda: store.reader.next_observation() >= came)
    proxy.is_silent = True
    hung = time.monotonic()
    time.sleep(2.0)
    process.send_signal(signal.SIGTERM)
    process.wait(40.0)
    assert time.monotonic() - hung < 35.0
    crawl = project.finish(process)
    # A generator of psycopg's says so by itself, when it is thrown away with a connection that went with its server.
    of_psycopg = re.compile(r"^Exception ignored in: <generator object BasePipeline.*?(?=^\d{4}-|\Z)", re.S | re.M)
    assert "Traceback" not in of_psycopg.sub("", crawl.log)
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]
