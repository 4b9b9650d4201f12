"""A standby waits, in a process of its own, until the one that crawls the collection ends, and goes on in its place."""

import os
import signal
import time
from collections.abc import Callable

import pytest
from sqlalchemy import make_url, text

from crawlsched.store import Store
from tests.crawling import Project
from tests.databases import connected
from tests.site import Site
from tests.waiting import wait_until

WAITS = "This crawl stands by and waits: another process crawls this collection"
AWAY = "This crawl stands by and waits: The database"
N_PAGES = 40


@pytest.fixture
def make_project(site, tmp_path, database_url) -> Callable[..., Project]:
    """Make a project on the one database, in a folder of its own."""
    Store.open(database_url, "test", upgrade=True).close()

    def make(name, **settings) -> Project:
        (tmp_path / name).mkdir()
        urls = [site.page(f"/{number}", f"<p>{number}</p>") for number in range(N_PAGES)]
        settings = {"database_url": database_url, "standby": True, "USER_AGENT": name, **settings}
        return Project(tmp_path / name, urls, seconds=60, **settings)

    return make


def asked_by(site: Site, name: str) -> int:
    return sum(headers.get("user-agent") == name for _, headers in list(site.requests))


@pytest.mark.parametrize(
    ("database_url", "number"), [("postgresql", signal.SIGKILL), ("sqlite", signal.SIGTERM)], indirect=["database_url"]
)
def test_a_standby_goes_on_when_the_first_is_gone(site, make_project: Callable[..., Project], number):
    """Whether it was killed or gave its lease back: the standby asked for nothing before, and knows its pages then."""
    first, standby = make_project("first"), make_project("standby")
    owner = first.start()
    wait_until(lambda: asked_by(site, "first") >= N_PAGES, say=first.log)
    waiting = standby.start()
    standby.wait_for_log(WAITS)
    time.sleep(5.0)  # it looks several times, and says it once
    assert asked_by(site, "standby") == 0
    os.kill(owner.pid, number)
    first.finish(owner)
    wait_until(lambda: asked_by(site, "standby") > 10, say=standby.log)
    crawl = standby.end(waiting)
    assert crawl.returncode == 0
    assert crawl.log.count(WAITS) == 1
    assert f"{WAITS}: pid {owner.pid} on host " in crawl.log
    assert "Traceback" not in crawl.log
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]
    assert crawl.read(lambda store: store.reader.next_page()) == N_PAGES


@pytest.mark.parametrize(
    ("database_url", "number", "reactor"),
    [("sqlite", signal.SIGINT, "True"), ("postgresql", signal.SIGTERM, "False")],
    indirect=["database_url"],
)
def test_ctrl_c_ends_a_standby_at_once(site, make_project: Callable[..., Project], number, reactor):
    """With Twisted's reactor and without: it takes nothing, and the first goes on."""
    first, standby = make_project("first"), make_project("standby", TWISTED_REACTOR_ENABLED=reactor)
    owner = first.start()
    wait_until(lambda: asked_by(site, "first") >= 5, say=first.log)
    waiting = standby.start()
    standby.wait_for_log(WAITS)
    os.kill(waiting.pid, number)
    ended = standby.finish(waiting, timeout=10.0)
    assert "Traceback" not in ended.log
    assert "never awaited" not in ended.log
    assert asked_by(site, "standby") == 0
    n = asked_by(site, "first")
    wait_until(lambda: asked_by(site, "first") > n, say=first.log)
    assert first.end(owner).returncode == 0


def test_a_standby_goes_on_waiting_while_the_database_is_away(site, tmp_path, postgresql_server, postgresql_url):
    """It says so once, and once more for whom it waits then."""
    store = Store.open(postgresql_url, "test", upgrade=True)
    lease = store.take_lease("another")
    settings = {"database_url": postgresql_url, "standby": True, "USER_AGENT": "standby"}
    standby = Project(tmp_path, [site.page("/0", "<p>0</p>")], **settings)
    waiting = standby.start()
    standby.wait_for_log(WAITS)
    with connected(postgresql_server) as server:
        let_in = f"ALTER DATABASE {make_url(postgresql_url).database} ALLOW_CONNECTIONS"
        server.execute(text(f"{let_in} false"))
        standby.wait_for_log(AWAY)
        time.sleep(5.0)
        server.execute(text(f"{let_in} true"))
    wait_until(lambda: standby.log().count(WAITS) == 2, say=standby.log)
    assert standby.log().count(AWAY) == 1
    lease.release()
    store.close()
    wait_until(lambda: asked_by(site, "standby") > 0, say=standby.log)
    assert standby.end(waiting).returncode == 0
