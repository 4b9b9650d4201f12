"""The same crawl started three times on one PostgreSQL is one crawl; the log of the site is the judge."""

import signal
import threading
import time
from bisect import bisect_left
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from crawlsched.sharing import shard_of
from crawlsched.store import schema
from tests.commands import report, run_here, said
from tests.crawling import FOLLOWS, Project, spider
from tests.many_hosts import HOSTS, PAGES_PER_HOST, Log
from tests.waiting import wait_until

N_SHARDS, RATE = 4, 40.0
N_PAGES = len(HOSTS) * PAGES_PER_HOST
ALL = {(host, page) for host in HOSTS for page in range(PAGES_PER_HOST)}


def crawl_of(folder: Path, log: Log, name: str, **settings: Any) -> Project:
    """Make a crawl of that site which begins at its first page."""
    (folder / name).mkdir()
    given = {"seconds": 0, "ROBOTSTXT_OBEY": False, "USER_AGENT": name, **settings}
    return Project(folder / name, spider([f"http://{HOSTS[0]}:{log.port}/0"], FOLLOWS), **given)


class Ring:
    """Three crawls, what the database says of them ten times a second, and what the site was asked."""

    def __init__(self, folder: Path, url: str) -> None:
        self.engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        self.log = Log(folder)
        self._folder, self._url = folder, url
        settings = {"database_url": url, "shards": N_SHARDS, "bandwidth": f"{RATE}/s"}
        self.projects = [crawl_of(folder, self.log, name, **settings) for name in ("m0", "m1", "m2")]
        self.granted: list[float] = []
        self._ends = threading.Event()
        self._watch = threading.Thread(target=self._sample)
        self._watch.start()

    def ask(self, question: str) -> list:
        with self.engine.connect() as connection:
            return list(connection.execute(text(question)).all())

    def _sample(self) -> None:
        while not self._ends.wait(0.1):
            now = "extract(epoch FROM clock_timestamp())"
            (row,) = self.ask(f"SELECT coalesce(sum(granted), 0) FROM members WHERE expires_at > {now}")
            self.granted.append(row[0])

    def pids(self) -> dict[int, int]:
        """Return by whom each shard is owned."""
        owned = "SELECT l.shard, m.pid FROM leases l JOIN members m ON m.token = l.member WHERE l.ready = 1"
        return {row.shard: row.pid for row in self.ask(owned)}

    def state(self) -> str:
        shards = "SELECT shard, member, epoch, ready, n_pages FROM leases ORDER BY shard"
        pages = "SELECT shard, host, count(*), sum(least(n_crawls, 1)) FROM pages GROUP BY shard, host ORDER BY 1, 2"
        tables = shards, "SELECT token, pid, granted FROM members", pages, "SELECT shard, data FROM inbox"
        return "\n\n".join("\n".join(map(str, self.ask(table))) for table in tables)

    def command(self, *arguments: str) -> Any:
        """Run a command, and return its JSON."""
        return report(*arguments, "--database", self._url)

    def is_asked_by_commands(self) -> None:
        """Commands find the shards they are about, wherever they are, and reach who owns them."""
        # Shards may be on their way from one to another still.
        wait_until(lambda: self.n_owned(self.command("status")) == N_SHARDS, 60, self.state)
        status = self.command("status")
        assert status["pages"]["total"] == N_PAGES
        assert len(status["shared"]["members"]) == 3
        assert status["shared"]["granted"] <= RATE * (1 + 1e-9)
        assert status["last_hour"]["visits"] >= status["pages"]["total"]
        words = f"{N_SHARDS} shards on 3 processes, all of them owned; 40/s for all"
        wait_until(lambda: words in said("status", "--database", self._url), 60, self.state)
        shards = self.command("db", "shards")
        assert [row["shard"] for row in shards["shards"]] == list(range(N_SHARDS))
        # Each process says with its heartbeats how many there are, also where it has found a few only.
        wait_until(lambda: self.n_pages(self.command("db", "shards")) == status["pages"]["total"], 60, self.state)
        # A shard that moves has no owner for a moment.
        wait_until(lambda: self.owners() == {str(pid) for pid in self.pids().values()}, 60, self.state)
        urls = [f"http://{host}:{self.log.port}/3" for host in HOSTS]
        of_host = dict(zip(HOSTS, urls, strict=True))
        for host in HOSTS[:2]:
            why = self.command("why", of_host[host])
            assert (why["shard"], why["running"]) == (shard_of(host, N_SHARDS), True)
            assert why["crawled_by"]["pid"] == self.pids()[why["shard"]]
        announced = self.command("signal", *urls, "--source", "desk")
        assert (announced["pages"], announced["running"], announced["unknown"]) == (len(urls), True, [])
        of_hosts = {shard_of(host, N_SHARDS) for host in HOSTS}
        wait_until(lambda: {row["shard"] for row in self.command("sources")["sources"]} == of_hosts, 60, self.state)
        assert self.command("recrawl", "--all")["pages"] == status["pages"]["total"]
        assert self.command("recrawl", *urls)["pages"] == len(urls)
        assert len(self.command("next", "-n", "5")["pages"]) == 5
        assert self.command("whatif")["bandwidth"] == RATE
        assert len(self.command("pages", "--limit", "1000")["pages"]) == status["pages"]["total"]
        assert self.command("forget", urls[-1], "--yes") == {
            **{"collection": "test", "kind": "url", "value": urls[-1], "pages": 1},
        }
        refused = run_here(self._folder, "changes", "--database", self._url)
        assert refused.stderr.strip().endswith(
            f"The collection 'test' has {N_SHARDS} shards, and this command is about one of them; name it with "
            f"--shard, from 0 to {N_SHARDS - 1}."
        )
        assert self.command("changes", "--shard", str(shard_of(HOSTS[0], N_SHARDS)))["changes"] != []
        assert self.command("bandwidth", "30/s")["before"] == RATE
        self.command("bandwidth", "pause")
        paused = self.command("status")
        assert paused["paused_since"] is not None
        # What was forgotten is out of the database with the next batch of that shard.
        wait_until(lambda: self.command("status")["pages"]["total"] == status["pages"]["total"] - 1, 60, self.state)
        wait_until(self.is_silent, 60, self.state)
        self.command("bandwidth", "resume")
        assert self.command("bandwidth", f"{RATE}/s", "--yes")["before"] == 30.0

    def owners(self) -> set[str]:
        """Return the process that `db shards` names for each shard; of a shard without one, "None"."""
        return {str(row["owner"]).rpartition(":")[2] for row in self.command("db", "shards")["shards"]}

    @staticmethod
    def n_owned(status: dict[str, Any]) -> int:
        return sum(member.get("shards", 0) for member in status["shared"]["members"])

    @staticmethod
    def n_pages(shards: dict[str, Any]) -> int:
        return sum(row["pages"] for row in shards["shards"])

    def is_told_what_waits(self) -> None:
        """Commands leave word for who crawls the shards next."""
        assert f"{N_SHARDS} shards; no process crawls them now" in said("status", "--database", self._url)
        url = f"http://{HOSTS[0]}:{self.log.port}/4"
        assert self.command("recrawl", url) == {
            **{"collection": "test", "running": False, "pages": 1, "taken": None, "unknown": []},
        }
        forgotten = self.command("forget", url, "--yes")
        assert (forgotten["pages"], forgotten["waiting"]) == (0, 1)
        (self._folder / "urls.txt").write_text(url)
        refused = run_here(self._folder, "import", "urls.txt", "--database", self._url, "--collection", "test")
        assert "Processes share the collection 'test', and nothing can be imported" in refused.stderr

    def is_silent(self) -> bool:
        """Say whether the site is asked nothing for a second."""
        n = len(self.log.asked())
        time.sleep(1.0)
        return len(self.log.asked()) == n

    def end(self) -> None:
        self._ends.set()
        self._watch.join()
        self.engine.dispose()


@pytest.fixture
def ring(tmp_path, make_postgresql_database):
    url = make_postgresql_database()
    schema.upgrade(url)
    ring = Ring(tmp_path, url)
    yield ring
    ring.end()


def most_within(seconds: float, times: list[float]) -> int:
    return max(i - bisect_left(times, at - seconds) + 1 for i, at in enumerate(times))


def test_three_processes_are_one_crawl_whoever_dies_or_is_stopped(ring):
    """They find all pages by links between their hosts; one is killed, one stopped and woken, all are ended."""
    first = ring.projects[0].start()
    # Alone it takes all shards, before its spider starts.
    wait_until(lambda: len(ring.pids()) == N_SHARDS, 60, ring.state)
    second, third = ring.projects[1].start(), ring.projects[2].start()
    # Who joins gets a fair part, and the page that all links go from is found by one of them.
    wait_until(lambda: set(ring.pids().values()) == {first.pid, second.pid, third.pid}, 60, ring.state)
    wait_until(lambda: ring.ask("SELECT count(*) FROM pages WHERE n_crawls > 0")[0][0] >= N_PAGES, 60, ring.state)

    ring.is_asked_by_commands()

    # Asked before it dies: on one machine the others take over what it had within a fraction of a second.
    lost = [shard for shard, pid in ring.pids().items() if pid == first.pid]
    assert lost, ring.state()
    first.kill()
    killed_at = time.time()
    second.send_signal(signal.SIGSTOP)
    ring.projects[0].finish(first)
    wait_until(lambda: ring.pids() == dict.fromkeys(range(N_SHARDS), third.pid), 60, ring.state)

    woken_at = time.time()
    second.send_signal(signal.SIGCONT)
    # It has lost all it had, says so, goes on, and gets its part again.
    wait_until(lambda: set(ring.pids().values()) == {second.pid, third.pid}, 60, ring.state)
    assert "was taken over by another process" in ring.projects[1].log()

    for project, process in zip(ring.projects[1:], (second, third), strict=True):
        assert project.end(process).returncode == 0
    ring.is_told_what_waits()
    asked = ring.log.asked()
    assert max(ring.granted) <= RATE * (1 + 1e-9)
    times = [at for at, *_ in asked]
    # Each pays back up to a second that it was late (slot_clock); three of them.
    assert most_within(10.0, times) <= 11.0 * RATE + 3
    assert most_within(1.0, times) <= 1.25 * RATE + 3 + 3
    assert {(host, page) for _, host, page, _ in asked} == ALL
    # A host is asked by one process after the other, no more of them than its shard has had owners.
    epochs = {row.shard: row.epoch for row in ring.ask("SELECT shard, epoch FROM leases")}
    for host in HOSTS:
        owners = [name for name, _ in groupby(name for _, at, _, name in asked if at == host)]
        assert len(owners) <= epochs[shard_of(host, N_SHARDS)], (host, owners)
    # What the killed one had is crawled again soon: its share of the hosts is asked by others.
    of_lost = [at for at, host, _, _ in asked if shard_of(host, N_SHARDS) in lost and at > killed_at + 0.5]
    assert min(of_lost) - killed_at < 12
    # A page is one row, whoever found it; what was handed over before shards moved last has arrived: the rest waits
    # for who comes next; nothing is owned any more.
    assert ring.ask("SELECT url FROM pages GROUP BY url HAVING count(*) > 1") == []
    assert ring.ask(f"SELECT * FROM inbox WHERE created_at < {woken_at - 2.0}") == []
    assert ring.ask("SELECT token FROM members WHERE expires_at > extract(epoch FROM clock_timestamp())") == []
    assert ring.ask("SELECT shard FROM leases WHERE member IS NOT NULL") == []
    # No visit is kept twice, and at most what half a second holds is lost with the killed one.
    # (What was dropped before it was sent is an observation too: of those that the stopped one had begun.)
    n_visits = ring.ask("SELECT count(*) FROM observations WHERE outcome <> 'dropped'")[0][0]
    n_asked = len(asked)
    assert n_asked - RATE * 3 <= n_visits <= n_asked


def test_processes_end_when_each_page_of_all_was_tried_once(tmp_path, postgresql_url):
    """Also where one of them is killed on the way. The pages are found by links from one shard to another."""
    schema.upgrade(postgresql_url)
    log = Log(tmp_path)
    settings = {"database_url": postgresql_url, "shards": N_SHARDS, "bandwidth": "20/s", "one_pass": True}
    crawls = [crawl_of(tmp_path, log, name, **settings) for name in ("first", "second")]
    first, second = (crawl.start() for crawl in crawls)
    wait_until(lambda: len({name for *_, name in log.asked()}) == 2)
    crawls[0].kill(first)
    done = crawls[1].finish(second)
    assert (done.returncode, done.stats["finish_reason"]) == (0, "finished"), done.log[-3000:]
    found = log.asked()
    assert {(host, page) for _, host, page, _ in found} == ALL
    # What the killed one had not written down is tried again: half a second of visits, and a little more.
    assert len(found) - len(ALL) < 60
    # The next pass: each page once, by one of the two; the page of a start request at the start of each.
    for crawl, process in zip(crawls, [crawl.start() for crawl in crawls], strict=True):
        done = crawl.finish(process)
        assert (done.returncode, done.stats["finish_reason"]) == (0, "finished"), done.log[-3000:]
    again = log.asked()[len(found) :]
    times = Counter((host, page) for _, host, page, _ in again)
    assert times.pop((HOSTS[0], 0)) <= 2
    assert times == dict.fromkeys(ALL - {(HOSTS[0], 0)}, 1)
    assert {name for *_, name in again} == {"first", "second"}
