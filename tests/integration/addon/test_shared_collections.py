"""The same crawl started three times on one PostgreSQL is one crawl; the log of the site is the judge."""

import json
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from itertools import groupby
from pathlib import Path
from socket import socket
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from crawlsched.sharing import shard_of
from crawlsched.store import schema
from tests import children
from tests.commands import run_here
from tests.crawling import Project
from tests.many_hosts import HOSTS, PAGES_PER_HOST

N_SHARDS, RATE = 4, 40.0
N_PAGES = len(HOSTS) * PAGES_PER_HOST
SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["http://{host}:{port}/0"]

    def parse(self, response):
        for link in response.css("a"):
            yield response.follow(link)
"""


class Ring:
    """Three crawls, what the database says of them ten times a second, and what the site was asked."""

    def __init__(self, folder: Path, url: str) -> None:
        self.engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        with socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        self._folder, self._url, self._port = folder, url, port
        self._log = folder / "site.log"
        site = children.start(sys.executable, "-m", "tests.many_hosts", port, self._log, stdout=subprocess.PIPE)
        assert site.stdout is not None
        assert site.stdout.readline() == "serving\n"
        self.projects, self.processes = [], []
        for name in ("m0", "m1", "m2"):
            (folder / name).mkdir()
            project = Project(
                folder / name,
                SPIDER.format(host=HOSTS[0], port=port),
                CRAWLSCHED_DATABASE_URL=url,
                CRAWLSCHED_SHARDS=N_SHARDS,
                CRAWLSCHED_BANDWIDTH=f"{RATE}/s",
                USER_AGENT=name,
                CLOSESPIDER_TIMEOUT=0,
                ROBOTSTXT_OBEY=False,
            )
            self.projects.append(project)
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

    def wait_until(self, what, seconds: float) -> float:
        begun = time.monotonic()
        while not what():
            assert time.monotonic() - begun < seconds, self.state()
            time.sleep(0.1)
        return time.monotonic() - begun

    def state(self) -> str:
        shards = "SELECT shard, member, epoch, ready, n_pages FROM leases ORDER BY shard"
        pages = "SELECT shard, host, count(*), sum(least(n_crawls, 1)) FROM pages GROUP BY shard, host ORDER BY 1, 2"
        tables = shards, "SELECT token, pid, granted FROM members", pages, "SELECT shard, data FROM inbox"
        return "\n\n".join("\n".join(map(str, self.ask(table))) for table in tables)

    def command(self, *arguments: str) -> Any:
        """Run a command, and return its JSON."""
        done = run_here(self._folder, *arguments, "--database", self._url, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def is_asked_by_commands(self) -> None:
        """Commands find the shards they are about, wherever they are, and reach who owns them."""
        # Shards may be on their way from one to another still.
        self.wait_until(lambda: self.n_owned(self.command("status")) == N_SHARDS, 20)
        status = self.command("status")
        assert status["pages"]["total"] == N_PAGES
        assert len(status["shared"]["members"]) == 3
        assert status["shared"]["granted"] <= RATE * (1 + 1e-9)
        assert status["last_hour"]["visits"] >= status["pages"]["total"]
        said = run_here(self._folder, "status", "--database", self._url).stdout
        assert f"{N_SHARDS} shards on 3 processes, all of them owned; 40/s for all" in said
        shards = self.command("db", "shards")
        assert [row["shard"] for row in shards["shards"] if row["ready"]] == list(range(N_SHARDS))
        # Each process says with its heartbeats how many there are, also where it has found a few only.
        self.wait_until(lambda: self.n_pages(self.command("db", "shards")) == status["pages"]["total"], 20)
        assert {row["owner"].partition(":")[2] for row in shards["shards"]} == {str(p) for p in self.pids().values()}
        urls = [f"http://{host}:{self._port}/3" for host in HOSTS]
        of_host = dict(zip(HOSTS, urls, strict=True))
        for host in HOSTS[:2]:
            why = self.command("why", of_host[host])
            assert (why["shard"], why["running"]) == (shard_of(host, N_SHARDS), True)
            assert why["crawled_by"]["pid"] == self.pids()[why["shard"]]
        announced = self.command("signal", *urls, "--source", "desk")
        assert (announced["pages"], announced["running"], announced["unknown"]) == (len(urls), True, [])
        assert {source["shard"] for source in self.command("sources")["sources"]} == set(map(self.shard, HOSTS))
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
        self.wait_until(lambda: self.command("status")["pages"]["total"] == status["pages"]["total"] - 1, 20)
        self.wait_until(self.is_silent, 20)
        self.command("bandwidth", "resume")
        assert self.command("bandwidth", f"{RATE}/s", "--yes")["before"] == 30.0

    @staticmethod
    def n_owned(status: dict[str, Any]) -> int:
        return sum(member.get("shards", 0) for member in status["shared"]["members"])

    @staticmethod
    def n_pages(shards: dict[str, Any]) -> int:
        return sum(row["pages"] for row in shards["shards"])

    def is_told_what_waits(self) -> None:
        """Commands leave word for who crawls the shards next."""
        said = run_here(self._folder, "status", "--database", self._url).stdout
        assert f"{N_SHARDS} shards; no process crawls them now" in said
        url = f"http://{HOSTS[0]}:{self._port}/4"
        assert self.command("recrawl", url) == {
            **{"collection": "test", "running": False, "pages": 1, "taken": None, "unknown": []},
        }
        forgotten = self.command("forget", url, "--yes")
        assert (forgotten["pages"], forgotten["waiting"]) == (0, 1)
        (self._folder / "urls.txt").write_text(url)
        refused = run_here(self._folder, "import", "urls.txt", "--database", self._url, "--collection", "test")
        assert "Processes share the collection 'test', and nothing is imported" in refused.stderr

    @staticmethod
    def shard(host: str) -> int:
        return shard_of(host, N_SHARDS)

    def is_silent(self) -> bool:
        """Say whether the site is asked nothing for a second."""
        n = len(self.asked())
        time.sleep(1.0)
        return len(self.asked()) == n

    def asked(self) -> list[tuple[float, str, int, str]]:
        lines = (line.split() for line in self._log.read_text().splitlines())
        return [(float(at), host, int(page), name) for at, host, page, name in lines]

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


def test_three_processes_are_one_crawl_whoever_dies_or_is_stopped(ring) -> None:
    """They find all pages by links between their hosts; one is killed, one stopped and woken, all are ended."""
    first = ring.projects[0].start()
    # Alone it takes all shards, before its spider starts.
    ring.wait_until(lambda: len(ring.pids()) == N_SHARDS, 30)
    second, third = ring.projects[1].start(), ring.projects[2].start()
    # Who joins gets a fair part, and the page that all links go from is found by one of them.
    ring.wait_until(lambda: set(ring.pids().values()) == {first.pid, second.pid, third.pid}, 30)
    ring.wait_until(lambda: ring.ask("SELECT count(*) FROM pages WHERE n_crawls > 0")[0][0] >= N_PAGES, 40)

    ring.is_asked_by_commands()

    # Asked before it dies: on one machine the others take over what it had within a fraction of a second.
    lost = [shard for shard, pid in ring.pids().items() if pid == first.pid]
    assert lost, ring.state()
    first.kill()
    killed_at = time.time()
    second.send_signal(signal.SIGSTOP)
    ring.projects[0].finish(first)
    taken = ring.wait_until(lambda: ring.pids() == dict.fromkeys(range(N_SHARDS), third.pid), 20)
    assert taken < 10

    woken_at = time.time()
    second.send_signal(signal.SIGCONT)
    # It has lost all it had, says so, goes on, and gets its part again.
    ring.wait_until(lambda: set(ring.pids().values()) == {second.pid, third.pid}, 30)
    assert "was taken over by another process" in ring.projects[1].log()

    for project, process in zip(ring.projects[1:], (second, third), strict=True):
        process.terminate()
        assert project.finish(process).returncode == 0
    ring.is_told_what_waits()
    asked = ring.asked()
    assert max(ring.granted) <= RATE * (1 + 1e-9)
    times = [at for at, *_ in asked]
    # Each pays back up to a second that it was late (slot_clock); three of them.
    assert most_within(10.0, times) <= 11.0 * RATE + 3
    assert most_within(1.0, times) <= 1.25 * RATE + 3 + 3
    assert {(host, page) for _, host, page, _ in asked} == {(h, p) for h in HOSTS for p in range(PAGES_PER_HOST)}
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
    assert ring.ask("SELECT url FROM pages WHERE variant IS NULL GROUP BY url HAVING count(*) > 1") == []
    assert ring.ask(f"SELECT * FROM inbox WHERE created_at < {woken_at - 2.0}") == []
    assert ring.ask("SELECT token FROM members WHERE expires_at > extract(epoch FROM clock_timestamp())") == []
    assert ring.ask("SELECT shard FROM leases WHERE member IS NOT NULL") == []
    # No visit is kept twice, and at most what half a second holds is lost with the killed one.
    # (What was dropped before it was sent is an observation too: of those that the stopped one had begun.)
    n_visits = ring.ask("SELECT count(*) FROM observations WHERE outcome <> 'dropped'")[0][0]
    n_asked = len(asked)
    assert n_asked - RATE * 3 <= n_visits <= n_asked
