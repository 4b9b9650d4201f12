"""A network to the database that is slow, or cut, or cut half, and locks that others hold: the crawl goes on.

Two processes share a collection, one of them behind a proxy. What is right whatever happens: each visit is stored once,
and both together are never above the rate.
"""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from sqlalchemy import event, text

from crawlsched.sharing import LEASE, RENEWAL_INTERVAL
from crawlsched.store.database import Database
from crawlsched.store.members import SharedCollection
from tests.integration.refresh.processes import HOSTS, N_SHARDS, asked_of, process
from tests.parts import answered, any_host, ask
from tests.proxy import Proxy

RATE, PAGES_PER_HOST = 40.0, 100


@pytest.fixture(scope="module")
def proxy(database):
    proxy = Proxy(database.text)
    yield proxy
    proxy.close()


class Crawl:
    """Two processes that crawl beside each other, the first behind a proxy; visits are simulated."""

    def __init__(self, database: Database, proxy: Proxy, stack: ExitStack) -> None:
        self.near = SharedCollection.open(database, "test", N_SHARDS, RATE)
        self.far_database = Database(proxy.url)
        stack.callback(self.far_database.close)
        self.far = SharedCollection.open(self.far_database, "test")
        self.processes = [stack.enter_context(process(shared)) for shared in (self.far, self.near)]
        self.made: dict[int, list[tuple[float, int, int]]] = {0: [], 1: []}
        self.lost = Counter[str]()
        self.beat_at = [0.0, 0.0]
        for host in HOSTS:
            for page in range(PAGES_PER_HOST):
                ask(self.processes[0], f"http://{host}/{page}")
        for refresher in self.processes:
            refresher.start_slots()
        self.until(self.is_divided, 60.0)

    def is_divided(self) -> bool:
        """Whether each process has as many shards, so that none moves any more, and all are crawled."""
        n = [len(refresher.collection.shards.here) for refresher in self.processes]
        return n == [N_SHARDS // 2] * 2 and all(row.ready for row in self.near.look().shards.values())

    def n_now(self, number: int) -> int:
        return len(self.made[number])

    def until(self, what, seconds: float = 20.0) -> None:
        """Crawl until something is so."""
        until = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < until, [
                (len(p.collection.shards.here), p.rate.rests, p.must_wait(time.time())) for p in self.processes
            ]
            self.step()
            time.sleep(0.002)

    def crawls_for(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= ends, seconds + 20.0)

    def goes_on(self) -> None:
        """Both processes send."""
        n = [self.n_now(0), self.n_now(1)]
        self.until(lambda: all(self.n_now(number) >= n[number] + 10 for number in (0, 1)))

    def step(self) -> None:
        for number, refresher in enumerate(self.processes):
            now = refresher.clock()
            refresher.sharing.look(now)
            if now > self.beat_at[number] + 1.0:
                self.beat_at[number] = now
                refresher.heartbeat(now)
            refresher.long_work.go_on(0.002)
            refresher.flush(now)
            if refresher.rate.rests or not refresher.rate.slots.is_due(now) or refresher.must_wait(now):
                continue
            begun = next(refresher.dispatcher.next_pages(now, any_host), None)
            if begun is not None and refresher.may_send(begun[0].token):
                self.visit(number, begun[0], now)

    def visit(self, number: int, visit, now: float) -> None:
        refresher = self.processes[number]
        shards = refresher.collection.shards
        shard, number_there = (
            shards.number_of(refresher.hosts.names[visit.host]),
            refresher.collection.numbers.item(visit.page),
        )
        refresher.rate.slots.take(now)
        answered(refresher, visit, "<p>One</p>", now)
        refresher.book.output_ended(visit.token, now)
        self.made[number].append((now, shard, number_there))

    def all_made(self) -> Counter:
        return Counter((shard, page) for visits in self.made.values() for _, shard, page in visits)

    def all_stored(self) -> Counter:
        for refresher in self.processes:
            refresher.flush(time.time())
            assert refresher.collection.write_behind.drain(10.0)
        stored = "SELECT shard, page FROM observations WHERE collection = :n AND outcome <> 'dropped'"
        return Counter(asked_of(self.near, stored))

    def all_is_well(self) -> None:
        """Both go on; each visit is stored, once; in no second did more go out than the rate allows."""
        self.goes_on()
        assert self.all_stored() == self.all_made() - self.lost
        times = sorted(at for visits in self.made.values() for at, *_ in visits)
        # Each process pays back a fifth of a second.
        most = max(last + 1 - bisect_left(times, at - 2.0) for last, at in enumerate(times))
        assert most <= RATE * (2.0 + 0.2 * 2) + 2


@pytest.fixture(scope="module")
def crawl(database, proxy):
    """The crawl goes on through all that the tests do to it."""
    with ExitStack() as stack:
        yield Crawl(database, proxy, stack)


def epochs(crawl) -> list[int]:
    return [row.epoch for row in crawl.near.look().shards.values()]


def test_a_network_that_is_slow_costs_no_shard(crawl, proxy):
    """Each piece takes fifty milliseconds either way, as to another continent."""
    before = epochs(crawl)
    proxy.delay = 0.05
    crawl.crawls_for(RENEWAL_INTERVAL)
    crawl.goes_on()
    assert epochs(crawl) == before
    proxy.delay = 0.0
    crawl.all_is_well()


@pytest.mark.parametrize("how", ["drop", "client", "server"])
def test_a_network_that_is_cut_is_met_again(crawl, proxy, how):
    """All connections are reset, or half-closed: towards the process, or towards the server."""
    before = epochs(crawl)
    for _ in range(2):
        proxy.drop() if how == "drop" else proxy.end_towards(how)
        crawl.crawls_for(0.3)
    crawl.all_is_well()
    assert epochs(crawl) == before


@pytest.mark.parametrize("is_passed_on", [True, False])
@pytest.mark.parametrize("how", ["drop", "client", "server"])
def test_a_commit_that_is_not_answered_is_made_once(crawl, proxy, how, is_passed_on):
    """Whether the server has heard of it or not; nobody else has the shards meanwhile."""
    before = epochs(crawl)
    for _ in range(3):
        cut = proxy.drop if how == "drop" else lambda: proxy.end_towards(how)
        done = proxy.at_next(b"COMMIT", cut, is_passed_on=is_passed_on)
        crawl.until(done.is_set)
    crawl.all_is_well()
    assert epochs(crawl) == before


def test_who_is_cut_off_stops_by_its_own_clock_and_comes_back(crawl, proxy):
    """Its connections stay open, and nothing is heard on them. The other has its shards as soon as it has stopped."""
    far, near = crawl.processes
    far.sharing._database.answer_within = 2.0  # after that a connection on which nothing is heard is given up
    cut_at = time.time()
    proxy.is_silent = True
    crawl.until(lambda: len(near.collection.shards.here) == N_SHARDS)
    crawl.crawls_for(1.0)
    sent = [visit for visit in crawl.made[0] if visit[0] > cut_at]
    assert sent  # it goes on for a while
    assert sent[-1][0] < cut_at + LEASE
    proxy.is_silent = False
    crawl.until(crawl.is_divided, 60.0)
    crawl.lost = crawl.all_made() - crawl.all_stored()
    assert crawl.lost <= Counter((shard, page) for _, shard, page in [*sent, *crawl.made[0][-len(sent) - 20 :]])
    crawl.all_is_well()


@contextmanager
def held(database: Database, lock: str) -> Iterator[None]:
    """Another session that holds a lock."""
    with database.engine.connect() as connection, connection.begin():
        connection.execute(text(lock))
        yield


def test_while_renewals_wait_for_a_lock_the_grant_runs_on(crawl, database, caplog):
    """They are given up after three seconds, and tried again; nobody has lost anything."""
    before = epochs(crawl)
    with held(database, "SELECT 1 FROM budgets FOR UPDATE"):
        crawl.goes_on()
        crawl.until(lambda: "grant" in caplog.text)
    crawl.all_is_well()
    assert epochs(crawl) == before
    said = [record.message for record in caplog.records if "grant" in record.message]
    assert "another process holds the database locked" in said[0]
    assert said[-1] == "The grant is renewed again; nothing is lost."


@pytest.mark.parametrize(
    "lock",
    [
        "LOCK TABLE observations IN ACCESS EXCLUSIVE MODE",
        "LOCK TABLE pages IN ACCESS EXCLUSIVE MODE",
        "SELECT 1 FROM leases FOR UPDATE",
    ],
)
def test_what_cannot_be_written_for_a_lock_is_written_later(crawl, database, caplog, lock):
    """Of a table or of rows. It says so once, and pages are crawled on as long as memory may keep what they say."""
    before = epochs(crawl)

    def set_timeout(connection, *_):
        connection.execute("SET lock_timeout = '300ms'")
        connection.commit()

    for refresher in crawl.processes:
        # Not new connections instead: those that are in use now would be nobody's.
        event.listen(refresher.sharing._database.engine, "checkout", set_timeout)
    with held(database, lock):
        crawl.goes_on()
        crawl.until(lambda: "Nothing can be written" in caplog.text)
    crawl.all_is_well()
    assert epochs(crawl) == before
    said = [record.message for record in caplog.records if record.name == "crawlsched.store"]
    assert "another process holds the database locked (canceling statement due to lock timeout" in said[0]
    assert "The database can be written again" in said[-1]


def test_a_lock_on_the_row_of_the_collection_holds_no_visit_back(crawl, database):
    """A visit writes to the rows of its page and its shard only."""
    with held(database, "SELECT 1 FROM collections FOR UPDATE"):
        crawl.goes_on()
        assert crawl.all_stored() == crawl.all_made() - crawl.lost
    crawl.all_is_well()
