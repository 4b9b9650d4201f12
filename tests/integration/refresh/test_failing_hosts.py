"""Sites that fail and come back, in simulated time: how often they are asked, what is said, and when all are back."""

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlsched.crawl.visits import ResponseFacts
from crawlsched.feed import Cursor, Feed
from crawlsched.store import Outcome
from crawlsched.web.metrics import metrics
from crawlsched.web.vitals import checks, vitals
from tests import parts
from tests.commands import run_here, said
from tests.waiting import wait_until

HOUR = 3600.0
N_PAGES = 21
LOG_IN = "<html><body><h1>Log in</h1><p>Who are you? Name, password, and a word to prove that you are no robot."


class World:
    """Two sites and a crawl of them at a request a second, without a network and in time of its own."""

    def __init__(self, folder: Path) -> None:
        self.now, self.asked, self.answers = 1_000_000.0, list[tuple[str, int, float, int]](), self.well
        self._settings = parts.settings(f"sqlite:///{folder / 'crawl.db'}", bandwidth="1/s")
        self.open()

    @staticmethod
    def well(host: str, number: int, now: float) -> int:
        return 200

    def open(self) -> None:
        self.refresher = parts.refresher(self._settings, clock=lambda: self.now)
        for host in ("a.example", "b.example"):
            for number in range(N_PAGES):
                parts.ask(self.refresher, f"http://{host}/{number}")

    def close(self) -> None:
        parts.close(self.refresher)

    def run(self, seconds: float, every: float = 1.0) -> None:
        """Let slots pass, one in so many seconds."""
        refresher = self.refresher
        for _ in range(int(seconds / every)):
            self.now += every
            begun = refresher.dispatcher.next_probe(self.now, refresher.hosts.free_at)
            while not begun:
                begun = next(refresher.dispatcher.next_pages(self.now, refresher.hosts.free_at), None)
                if not refresher.collection.reader.has_picked:
                    break
            if begun is not None:
                self._answer(*begun)
            if self.now % 5 == 0:
                refresher.flush(self.now)
            if self.now % 10 == 0:
                refresher.sweep(self.now)
            while refresher.long_work.has_work:
                refresher.long_work.go_on(1.0)

    def _answer(self, visit, facts) -> None:
        host, _, name = facts.url.partition("//")[2].partition("/")
        number = int(name) if name.isdigit() else -1
        self.refresher.hosts.asked(visit.host, self.now)
        status = self.answers(host, number, self.now)
        self.asked.append((host, number, self.now, status))
        if status == 302:  # Scrapy follows it, and what comes is a log-in page
            status, text = 200, f"{LOG_IN} Ray {len(self.asked) * 7919:016x}</p>"
        elif status == 200:
            text = f"<html><body><h1>Tea {number}</h1><p>{' '.join(f'{number}x{n}' for n in range(60))}</p>"
        if status == 0:  # so slow that Scrapy gives up
            visit.unanswered = True
            self.refresher.visit_ends.resolve(visit, Outcome.ERROR, self.now)
            return
        if status != 200:
            self.refresher.responses.crawled(visit, ResponseFacts(status), self.now)
            return
        parts.answered(self.refresher, visit, text, self.now)

    def first_after(self, host: str, since: float) -> dict[int, float]:
        """Return for each page of a host how long after a time it was first asked and there."""
        found: dict[int, float] = {}
        for name, number, at, status in self.asked:
            if name == host and at >= since and status == 200 and number >= 0:
                found.setdefault(number, at - since)
        return found

    def n_asked(self, host: str, since: float, until: float) -> int:
        return sum(name == host and since <= at < until for name, _, at, _ in self.asked)

    def answering(self) -> bool:
        """Return what `crawlsched check` says of the hosts, once all is written."""
        collection = self.refresher.collection
        self.refresher.flush(self.now)
        self.refresher.sweep(self.now)
        wait_until(lambda: collection.write_behind.n_written >= collection.unsaved.number - 1)
        return {check.name: check.is_well for check in checks(vitals(collection.store))}["answering"]

    def told(self) -> Counter[tuple[str, str]]:
        changes = Feed(self.refresher.collection.store).after(Cursor({}), 1000)
        return Counter((change.kind, change.url.split("/")[2]) for change in changes)


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    if world.refresher.is_open:
        world.close()


@pytest.mark.parametrize("status", [403, 404, 503, 429, 302, 0])
def test_a_site_that_is_away_for_an_hour_is_told_once_and_visited_soon_after(status, world: World, caplog):
    """It is asked at a small share of its rate; once it is back, each page is visited within five minutes."""
    caplog.set_level(logging.INFO, "crawlsched")
    world.run(600)
    began = world.now
    world.answers = lambda host, number, now: status if host == "b.example" else 200
    world.run(HOUR / 2)
    world.close()
    world.open()  # a restart tells nothing twice
    world.run(HOUR / 2)
    back = world.now
    assert world.n_asked("b.example", began + 300, back) < 0.05 * (back - began)
    assert world.n_asked("a.example", began, back) > 100
    (failing,) = world.refresher.collection.failing_hosts.values()
    assert failing["since"] < began + 300
    assert not world.answering()
    database = "--database", world.refresher.collection.store.database.text
    assert "b.example fails (" in said("status", *database)
    answering = [line for line in run_here(Path.cwd(), "check", *database).stderr.splitlines() if "answering" in line]
    assert "b.example fails" in answering[0]
    measured = metrics({"test": vitals(world.refresher.collection.store)}).decode()
    assert 'crawlsched_healthy{check="answering",collection="test"} 0.0' in measured
    assert 'crawlsched_failing_host_pages{collection="test",host="b.example",state=' in measured
    world.answers = world.well
    world.run(1200)
    first = world.first_after("b.example", back)
    assert len(first) == N_PAGES
    assert max(first.values()) < 300.0
    assert not world.refresher.collection.failing_hosts
    assert world.answering()
    of_hosts = [record for record in caplog.records if record.name.endswith("failing_hosts")]
    levels = [record.levelname for record in of_hosts if "b.example" in record.getMessage()]
    assert levels == ["WARNING", "INFO"]
    told = world.told()
    away = ("gone", "back") if status == 404 else ("failing", "recovered")
    assert told[away[0], "b.example"] == told[away[1], "b.example"] > 0
    assert not any(host == "a.example" for kind, host in told if kind not in ("new", "changed"))


def test_half_a_site_that_vanishes_for_an_hour_is_visited_soon_after(world: World):
    """The other half answers all the while, so its host never rests; one page that is back brings the others."""
    world.run(600)
    began = world.now
    world.answers = lambda host, number, now: 404 if host == "b.example" and number % 2 else 200
    world.run(HOUR)
    back = world.now
    odd = [at - began for name, number, at, status in world.asked if status == 404 and number == 7]
    assert odd[1] - odd[0] < 200.0
    assert odd[-1] - odd[-2] > 600.0
    world.answers = world.well
    world.run(HOUR)
    first = [after for number, after in world.first_after("b.example", back).items() if number % 2]
    assert sorted(first)[-1] - sorted(first)[0] < 120.0


def test_pages_that_are_gone_for_good_make_no_host_fail(world: World):
    """After a day of tries a page is gone, and its host is what its other pages are."""
    world.run(600)
    world.answers = lambda host, number, now: 404 if host == "b.example" and number < 14 else 200
    world.run(600)
    assert len(world.refresher.collection.failing_hosts) == 1
    world.run(20 * HOUR, every=20.0)
    assert not world.refresher.collection.failing_hosts
