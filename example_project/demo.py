#!/usr/bin/env python
"""Watch crawlsched keep a living site fresher than a crawl in turn does at the same rate.

``make demo`` runs this; ``DEMO_SECONDS=20 make demo`` makes it shorter. It starts two identical sites (living_site/)
with the same seed and epoch, upgrades a database, and runs two crawls side by side, as a user would start them::

    scrapy crawl living -a site=http://127.0.0.11:PORT/
    scrapy crawl in_turn -a site=http://127.0.0.11:OTHER_PORT/ -a rate=25 -s ADDONS={}

The last line printed is one JSON object. Where its numbers come from:

- from the truth logs that the two sites write (living_site/truth.py), counted in the same way for both sides:
  ``freshness`` (share of the existing pages whose latest version the crawl has fetched, averaged over the second half
  of the run), ``achieved_rate`` (requests of every kind per second in the same time), ``crawls`` (requests for pages),
  ``changes_found`` (fetches that brought a new version of a page fetched before), and ``not_modified`` (answers 304);
  and for each host's sitemaps, over pages fetched before, ``true_precision`` (share of the announcements that were
  true), ``true_recall`` (share of the changes that were announced) and ``heard_first`` (share of the changes that were
  announced before a fetch found them);
- from the statistics with which Scrapy ended: ``dispatched``, ``resolved``, ``signals``, and
  ``changes_told_to_the_spider``;
- from the database, by ``crawlsched status --json``: ``precision`` and ``recall`` of each sitemap as learned;
- ``bandwidth`` is CRAWLSCHED_BANDWIDTH in example/settings.py.

Both crawls count as begun when both sites have had their first request.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

try:
    from crawlsched.settings import parse_bandwidth
except ModuleNotFoundError as missing:
    sys.exit(f"demo: this Python has no {missing.name}; run `make demo`, or: pip install -e '.[plot]'")

from demonstration.picture import Picture
from demonstration.processes import Child, Children, Failure
from demonstration.report import LEAST_SHARE, Report, Side
from demonstration.running import PROJECT, START_TIMEOUT, clear, crawlsched, read_options, run_demo, start_site
from example.settings import CRAWLSCHED_BANDWIDTH
from living_site.measuring import Truth

SHORTEST = 10.0
WARM_UP = 0.5  # share of the run that is not measured: both crawls are still discovering the site
STOP_TIMEOUT = 40.0
PICTURE_INTERVAL = 0.5
SLOWEST_ANSWER = 1.5
CHECK_SECONDS = 6.0  # after this time the demo warns if this machine is too slow for both crawls
LEARNED_AFTER = 45.0  # by then each page was visited twice, and most fast ones several times
OURS, IN_TURN = "crawlsched", "in turn"


def main() -> int:
    """Run the demo and return the exit code."""
    return run_demo(run)


def run(children: Children) -> dict[str, object]:
    """Read the options, and run the demo that they describe."""
    options = read_options("demo.py", "crawlsched beside a crawl in turn on a living site.", SHORTEST, 60.0)
    return Demo(options.seconds, options.seed, options.output, children).run()


class Demo:
    """One run: two sites, two crawls, and their results."""

    def __init__(self, seconds: float, seed: int, output: Path, children: Children) -> None:
        self.seconds, self.seed, self.children = seconds, seed, children
        self.output = output
        self.bandwidth = parse_bandwidth(CRAWLSCHED_BANDWIDTH)
        self.database = f"sqlite:///{self.output / 'crawlsched.db'}"
        # Any CRAWLSCHED_CRAWL_VALUE, and any CRAWLSCHED_ESTIMATOR; None: that of the project's settings.
        self.policy, self.estimator = os.environ.get("DEMO_POLICY"), os.environ.get("DEMO_ESTIMATOR")
        self.truths: dict[str, Truth] = {}
        self.crawls: dict[str, Child] = {}

    def run(self) -> dict[str, object]:
        """Do everything and return the object of the last line."""
        clear(self.output)
        urls = self.start_sites()
        crawlsched(self.database, "db", "upgrade")
        self.start_crawls(urls)
        start = self.wait_for_first_requests()
        self.watch(start)
        end = start + self.seconds
        self.stop_crawls()
        return self.report(start, end)

    def start_sites(self) -> dict[str, str]:
        """Start a site for either crawl, with one seed and one epoch, and return the URLs of their front pages."""
        epoch, sites = time.time(), {}
        for name in (OURS, IN_TURN):
            truth, log = self.path(name, "truth.jsonl"), self.path(name, "site.log")
            sites[name] = start_site(self.children, f"the site of {name}", self.seed, epoch, truth, log)
            self.truths[name] = Truth(truth)
        return {name: site.first_line(START_TIMEOUT) for name, site in sites.items()}

    def start_crawls(self, urls: dict[str, str]) -> None:
        """Start both crawls at the same moment, as a user would."""
        print(f"Two identical sites: {urls[OURS]} for crawlsched and {urls[IN_TURN]} for a crawl in turn.")
        print(f"Both may send {self.bandwidth:g} requests a second, and both obey robots.txt, Crawl-delay included.")
        print(f"All files: {self.output}", flush=True)
        arguments = {
            OURS: ["living", "-a", f"site={urls[OURS]}", "-s", f"CRAWLSCHED_DATABASE_URL={self.database}"],
            IN_TURN: [
                "in_turn",
                "-a",
                f"site={urls[IN_TURN]}",
                "-a",
                f"rate={self.bandwidth}",
                "-s",
                "ADDONS={}",
            ],
        }
        for setting, value in (("CRAWL_VALUE", self.policy), ("ESTIMATOR", self.estimator)):
            if value:
                arguments[OURS] += ["-s", f"CRAWLSCHED_{setting}={value}"]
                print(f"crawlsched crawls with CRAWLSCHED_{setting} = {value}.", flush=True)
        for name in (OURS, IN_TURN):
            files = [
                "-o",
                str(self.path(name, "changed_pages.jsonl")),
                "-s",
                f"FINAL_STATS_FILE={self.path(name, 'stats.json')}",
            ]
            command = [sys.executable, "-m", "scrapy", "crawl", *arguments[name], *files, "-s", "LOG_LEVEL=INFO"]
            command += ["-s", f"CLOSESPIDER_TIMEOUT={self.seconds + 120:g}"]  # should we be killed, they still end
            self.crawls[name] = self.children.start(f"the crawl {name}", command, PROJECT, self.path(name, "crawl.log"))

    def wait_for_first_requests(self) -> float:
        """Return the time at which both crawls had begun."""
        deadline = time.monotonic() + START_TIMEOUT
        while not all(truth.read().arrivals for truth in self.truths.values()):
            self.children.check()
            if time.monotonic() > deadline:
                idle = next(name for name in self.truths if not self.truths[name].arrivals)
                raise Failure(
                    f"the crawl {idle} sent no request in {START_TIMEOUT:g} s; {self.crawls[idle].last_lines()}"
                )
            time.sleep(0.05)
        return max(truth.arrivals[0] for truth in self.truths.values())

    def watch(self, start: float) -> None:
        """Show the progress until the time is over."""
        print(f"\n{'':>7}{'requests':>10}{'per second':>12}{'pages fresh now':>24}{'changes found':>24}")
        print(f"{'':>7}{OURS:>10}{'':>12}{OURS:>14}{IN_TURN:>10}{OURS:>14}{IN_TURN:>10}")
        interval = 5.0 if self.seconds >= 30 else 2.0
        shown_until, is_checked = start, False
        while (now := time.time()) < start + self.seconds:
            self.children.check()
            if not is_checked and now >= start + SLOWEST_ANSWER + CHECK_SECONDS:
                is_checked = True
                self.check_machine(start)
            if now >= shown_until + interval:
                shown_until += interval
                self.show_progress(start, shown_until, interval)
            time.sleep(max(0.0, min(0.2, start + self.seconds - now)))

    def check_machine(self, start: float) -> None:
        """Warn early if this machine is too slow for both crawls: then their results cannot be compared."""
        rates = {name: truth.read().rate(start, start + CHECK_SECONDS) for name, truth in self.truths.items()}
        slowest = min(rates, key=rates.__getitem__)
        if rates[slowest] < LEAST_SHARE * self.bandwidth:
            print(
                f"  This machine is too busy or too slow: {slowest} got {rates[slowest]:.1f} of {self.bandwidth:g} "
                f"requests a second in the first {CHECK_SECONDS:g} s. If that goes on, the comparison is void.",
                flush=True,
            )

    def show_progress(self, start: float, at: float, interval: float) -> None:
        """Print a line."""
        ours, in_turn = (self.truths[name].read() for name in (OURS, IN_TURN))
        fresh = f"{ours.freshness_now():>14.0%}{in_turn.freshness_now():>10.0%}"
        changes = f"{len(ours.change_times):>14}{len(in_turn.change_times):>10}"
        answered = at - SLOWEST_ANSWER  # the log lacks requests that are not answered yet
        rate = ours.rate(max(start, answered - interval), answered)
        print(f"{at - start:>5.0f} s{ours.n_requests(start, at):>10}{rate:>12.2f}{fresh}{changes}", flush=True)

    def stop_crawls(self) -> None:
        """End both crawls as an operator would, by SIGTERM, and wait until they have stored everything."""
        for crawl in self.crawls.values():
            crawl.check()
            crawl.terminate()
        for name, crawl in self.crawls.items():
            if code := crawl.wait(STOP_TIMEOUT):
                raise Failure(f"the crawl {name} ended with exit code {code} on SIGTERM; {crawl.last_lines()}")

    def report(self, start: float, end: float) -> dict[str, object]:
        """Print the table, write the picture, and return the last line's object."""
        sides = {name: Side(truth.read(), self.read_stats(name)) for name, truth in self.truths.items()}
        measured_from = start + WARM_UP * self.seconds
        report = Report(
            sides[OURS], sides[IN_TURN], self.bandwidth, start, measured_from, end, self.read_sources(),
            str(self.write_picture(start, measured_from, end)),
        )  # fmt: skip
        print(f"\n{report.table()}\n\n  Freshness over time: {report.picture}\n", flush=True)
        if report.void:
            rates = " and ".join(f"{report.rate(side):.1f}" for side in sides.values())
            print(
                f"  The comparison is void: this machine let the two crawls send {rates} requests a second, and less "
                f"than {LEAST_SHARE * self.bandwidth:g} is too few. Run it when the machine has less to do.\n",
                flush=True,
            )
        elif self.seconds < LEARNED_AFTER:
            print(
                f"  {self.seconds:g} s are short: learning is not over before {LEARNED_AFTER:g} s or so. Until each "
                "page was visited a few times both crawls do nearly the same. DEMO_SECONDS=60 make demo shows more.\n",
                flush=True,
            )
        facts = report.to_dict()
        (self.output / "report.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        return facts

    def read_stats(self, name: str) -> dict[str, object]:
        """Return the statistics with which a crawl ended."""
        path = self.path(name, "stats.json")
        if not path.exists():
            raise Failure(f"the crawl {name} left no statistics in {path}; {self.crawls[name].last_lines()}")
        stats: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
        return stats

    def read_sources(self) -> dict[str, dict[str, Any]]:
        """Return what crawlsched learned of each host's sitemaps: precision and recall, with their intervals."""
        status = json.loads(crawlsched(self.database, "status", "--collection", "living", "--json"))
        learned: dict[str, dict[str, Any]] = {}
        for source in status["sources"]:
            if source["pages"]:  # an index of sitemaps names no page itself
                learned.setdefault(urlsplit(source["url"]).hostname or "", source)
        return learned

    def write_picture(self, start: float, measured_from: float, end: float) -> Path:
        """Write the picture of freshness over time."""
        ours, in_turn = self.truths[OURS], self.truths[IN_TURN]
        n_alive = ours.steps[-1][2]
        title = f"{n_alive} living pages, {self.bandwidth:g} requests a second: how fresh are the copies?"
        return Picture(
            ours.series(start, end, PICTURE_INTERVAL), in_turn.series(start, end, PICTURE_INTERVAL),
            (ours.freshness(measured_from, end), ours.freshness(start, end)),
            (in_turn.freshness(measured_from, end), in_turn.freshness(start, end)),
            measured_from - start, end - start, title,
        ).write(self.output)  # fmt: skip

    def path(self, name: str, file: str) -> Path:
        """Return the path of one side's file."""
        return self.output / f"{name.replace(' ', '_')}.{file}"


if __name__ == "__main__":
    sys.exit(main())
