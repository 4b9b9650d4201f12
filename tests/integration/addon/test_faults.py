"""Faults, as SQLite's tests do it: every call fails once, in a real crawl, which goes on or ends loudly."""

import json
import re
from itertools import count

from tests.crawling import YIELDS, Project, spider
from tests.waiting import wait_until

# Everything that a timer, a callback or a job of a crawl calls, by whose it is.
CALLS = [
    f"{owner}.{name}"
    for owner, names in {
        "store.reading.Reader": "facts",
        "store.store.Store": "prepared",
        "store.lease.Lease": "heartbeat",
        "store.write_behind.WriteBehind": "submit oldest_unsaved_at",
        "planner.planner.Planner": "pick columns peek crawled failed",
        "frontier.filing.Filing": "release_host",
        "frontier.frontier.Frontier": "pick peek",
        "slot_clock.SlotClock": "take",
        "jobs.commands": "pending",
        "crawl.unsaved.Unsaved": "hand_over observation page",
        "crawl.collection.Collection": "facts_of flush put_facts must_wait",
        "crawl.page_facts.FactsReader": "take read_ahead",
        "crawl.side_thread.Aside": "collect",
        "crawl.visits.Visits": "open resolve older_than",
        "crawl.visits.VisitEnds": "end",
        "crawl.dispatcher.Dispatcher": "next_source next_probe validators reading",
        "crawl.responses.Responses": "_crawled",
        "crawl.refresher.Refresher": "status",
        "crawl.rate.CrawlRate": "follow_hours count_slots",
        "crawl.sources.Sources": "next_due",
    }.items()
    for name in names.split()
]

ERRORS = ("MemoryError", "StoreError", "OSError")

FAULTS = """
import importlib, json
from scrapy.utils.asyncio import call_later
from crawlsched.addon import extensions, scheduler
from crawlsched.exceptions import StoreError

# All that a crawl does again and again it does between two faults: faults in a row, for ten seconds, have to end it.
assert scheduler.LOOK_AGAIN > 0.02 and extensions.LOOK_INTERVAL > 0.05
scheduler.LOOK_AGAIN, extensions.LOOK_INTERVAL = 0.02, 0.05

ERRORS = {"MemoryError": MemoryError(), "StoreError": StoreError("injected"), "OSError": OSError(5, "injected")}

class Faults:
    # One after the other: the next call of each place raises, and all later ones work. Where the event loop is slow,
    # everything else, too, runs several times between two faults.
    @classmethod
    def from_crawler(cls, crawler):
        self = cls()
        self.faults = json.loads(crawler.settings["TEST_FAULTS"])
        call_later(1.0, self.next)
        return self

    def next(self, turns=4):
        if turns:
            call_later(0.02, self.next, turns - 1)
        elif self.faults:
            self.inject(*self.faults.pop(0))
            self.next()

    def inject(self, path, error):
        module, owner_name, name = ("crawlsched." + path).rsplit(".", 2)
        owner = getattr(importlib.import_module(module), owner_name)
        original = vars(owner)[name]

        def fail(*arguments, **options):
            setattr(owner, name, original)
            with open("fired.jl", "a") as file:
                print(json.dumps([path, error]), file=file)
            raise ERRORS[error]

        setattr(owner, name, property(fail) if isinstance(original, property) else fail)
"""


def test_each_call_fails_once_and_the_crawl_goes_on(site, tmp_path):
    """With each error: nothing stops, each visit ends once, and pages are visited after the last as before the first.

    They follow one another so that no place fails with a second error before all have failed with the first.
    """
    numbers = count()

    def page(request):
        return f"<p>version {next(numbers)} of {request.path}</p>"

    urls = [site.page(f"/{number}", page) for number in range(40)]
    sitemap = "".join(f"<url><loc>{site.url(f'/s{number}')}</loc></url>" for number in range(10))
    for number in range(10):
        site.page(f"/s{number}", page)
    site.page("/sitemap.xml", f"<urlset>{sitemap}</urlset>")
    project = Project(
        tmp_path,
        spider(urls, YIELDS, before=FAULTS),
        bandwidth="40/s",
        error_interval=1,
        source_urls=site.url("/sitemap.xml"),
        source_interval=1,
        TEST_FAULTS=[(call, error) for error in ERRORS for call in CALLS],
        EXTENSIONS={"spider_under_test.Faults": 900, "spider_under_test._Closer": 1},
        seconds=0,
    )
    process = project.start()

    def fired():
        return [json.loads(line) for line in project.lines("fired.jl")]

    def missing(error):
        return set(CALLS) - {path for path, raised in fired() if raised == error}

    # Facts are in memory after a while, and the store may not be asked for them again.
    wait_until(lambda: all(len(missing(error)) <= 4 for error in ERRORS), 90.0, lambda: (fired(), project.log()))
    since = len(site.requests)
    # Any page that is stuck would never come.
    wait_until(lambda: {site.url(path) for path, _ in site.requests[since:]} >= set(urls), 90.0, project.log)
    crawl = project.end(process)
    assert crawl.returncode == 0
    assert crawl.stats["finish_reason"] == "shutdown", crawl.log[-3000:]
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]
    assert crawl.stats["crawlsched/failures"] >= 10 * len(ERRORS)
    assert not re.search(r"Unhandled|Exception in callback|never retrieved", crawl.log)


def test_what_fails_again_and_again_ends_the_crawl_with_exit_code_1(site, tmp_path):
    """The flush never works: dispatching stops within seconds, and the crawl says why it ends."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
    always = FAULTS.replace("setattr(owner, name, original)\n            with", "with")
    project = Project(
        tmp_path,
        spider(urls, YIELDS, before=always),
        bandwidth="20/s",
        TEST_FAULTS=[("planner.planner.Planner.columns", "MemoryError")],
        EXTENSIONS={"spider_under_test.Faults": 900, "spider_under_test._Closer": 1},
        seconds=35,
    )
    crawl = project.run(timeout=70.0)
    sent_for = site.times[-1] - site.times[0]
    assert crawl.returncode == 1
    assert crawl.stats["finish_reason"] == "crawlsched_failed"
    assert "The flush has failed" in crawl.log
    assert sent_for < 15.0


LOST = """
import itertools
from crawlsched.addon import extensions
from crawlsched.addon.scheduler import Scheduler

extensions.LOOK_INTERVAL, extensions.PATIENCE = 0.3, 1.0
ticks, tick = itertools.count(), Scheduler._tick
Scheduler._tick = lambda scheduler: tick(scheduler) if next(ticks) < 60 else None
"""


def test_a_crawl_that_uses_no_slot_any_more_ends_with_exit_code_1(site, tmp_path):
    """Its timer of slots is lost: a supervisor that starts it again keeps the pages fresh."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
    crawl = Project(tmp_path, spider(urls, YIELDS, before=LOST), bandwidth="20/s").run(timeout=60.0)
    assert crawl.returncode == 1
    assert crawl.stats["finish_reason"] == "crawlsched_stuck"
    assert "so this crawl ends; start it again." in crawl.log
