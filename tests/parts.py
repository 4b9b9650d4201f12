"""Parts of a crawl over a real database, without Scrapy."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from crawlsched.content.reading import Body
from crawlsched.crawl.collection import Collection, FoundPage
from crawlsched.crawl.guard import Guard
from crawlsched.crawl.page_requests import AdmissionResult, PageRequest
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.request_templates import RequestTemplate
from crawlsched.crawl.shard_pages import ShardPages
from crawlsched.crawl.visits import ResponseFacts, Visit
from crawlsched.settings import Settings
from crawlsched.store import host_of
from tests.rows import name_of


def settings(database_url: str, **more: Any) -> Settings:
    """Return the settings of a crawl of the collection "test"; `more` without their prefix, in small letters."""
    given = {"database_url": database_url, "collection": "test", **more}
    return Settings.from_scrapy({f"CRAWLSCHED_{name.upper()}": value for name, value in given.items()}, "test")


def guard() -> Guard:
    """Return what says what fails."""
    return Guard(lambda name: None, time.monotonic)


def collection(given: Settings, now: float | None = None) -> Collection:
    """Return the collection that these settings say, opened at a time if there is one."""
    made = Collection(given, "test", name_of, "none", Random(1), guard())
    if now is not None:
        ShardPages(made).open(now)
    return made


def found(urls: Iterable[str]) -> list[FoundPage]:
    """Return pages as a crawl finds them."""
    return [FoundPage(url, name_of(url), host_of(url)) for url in urls]


def visit(collection: Collection, page: int, now: float, changed: bool | None, since: float | None = None) -> None:
    """Do what a response does."""
    found = collection.planner.crawled(page, now, changed, time_since_modified=since)
    collection.unsaved.page(page, now)
    if changed:
        collection.unsaved.content(page, now, changed_at=now)
    learned = {} if found is None else {"elapsed": found.elapsed, "changed": found.changed}
    learned |= {} if found is None else {"time_since_modified": found.time_since_modified}
    row = {"elapsed": None, "changed": None, **learned, "n_signals": 0, "source": -1}
    collection.unsaved.observation(now, page, outcome="changed" if changed else "unchanged", status=200, **row)


def answered(refresher: Refresher, visit: Visit, text: str, now: float) -> None:
    """Do what a page's answer does, and the end of its callback."""
    body = Body(text.encode(), "text/html", "utf-8", visit.url)
    read, _ = refresher.dispatcher.reading(visit, body, None)
    refresher.responses.crawled(visit, ResponseFacts(200, read(), size=len(body.body)), now)
    refresher.book.called_back(visit.token, now)


def refresher(given: Settings, clock: Callable[[], float] = time.time, **more: Any) -> Refresher:
    """Return a refresher that is open; its `stats` count what a crawl counts."""
    stats = Counter[str]()

    def count(name: str, n: int = 1) -> None:
        stats[name] += n

    made = Refresher(given, "test", count=count, request_fingerprint=name_of, clock=clock, rng=Random(0), **more)
    made.open()
    made.stats = stats  # type: ignore[attr-defined]
    return made


def close(refresher: Refresher) -> None:
    """Do what ends a crawl, and wait for it."""
    for waits in refresher.closing():
        if waits is not None:
            waits()


def asked(url: str, found_on: int = -1, **request: Any) -> PageRequest:
    """Return the request for a page, yielded by the callback of a page if there is one."""
    page = FoundPage(url, name_of(url), host_of(url), None, RequestTemplate(request) if request else None)
    return PageRequest(page, False, found_on=found_on)


def ask(refresher: Refresher, url: str, found_on: int = -1, **request: Any) -> AdmissionResult:
    """Ask for a page now."""
    return refresher.admission.requested(asked(url, found_on, **request), refresher.clock())


def any_host(host: int, now: float) -> float:
    """Say that a host may be asked now."""
    return now
