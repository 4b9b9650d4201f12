"""Commands: requests of the command line to a running crawl, through the database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.collection import Collection, FoundPage
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.shard import Shard
from crawlsched.crawl.side_thread import STEP
from crawlsched.crawl.sources import POLLED_KINDS
from crawlsched.exceptions import CrawlschedError
from crawlsched.pages.marks import RECRAWL
from crawlsched.planner import forecast
from crawlsched.settings import parse_bandwidth
from crawlsched.showing import in_words
from crawlsched.store import host_of
from crawlsched.store.commands import StoredCommand, pending
from crawlsched.store.forgetting import FORGET_KINDS

__all__ = ["obey_pending", "obey_waiting"]

_Answer = Callable[[dict[str, Any]], None]

logger = logging.getLogger(__name__)


def obey_pending(refresher: Refresher, shard: Shard) -> None:
    """Obey the commands for a shard; another thread reads them from the database."""
    collection = refresher.collection
    collection.aside.collect()
    reading = f"reading commands ({shard.number})"
    if collection.aside.is_busy_with(reading):
        return

    def found(commands: list[StoredCommand]) -> None:
        refresher.has_read_commands = True
        # Commands that are stored as done are not read again.
        shard.commands_under_way &= {command.id for command in commands}
        _obey(refresher, shard, commands)

    collection.aside.run(reading, partial(pending, shard.store), found)


def obey_waiting(refresher: Refresher) -> None:
    """Before the first slot, obey the commands that were sent while no crawl ran; one of them may be a pause."""
    for shard in refresher.collection.shards:
        _obey(refresher, shard, pending(shard.store))


def _obey(refresher: Refresher, shard: Shard, commands: Iterable[StoredCommand]) -> None:
    """Obey each command, and write its result or ``{"error": sentence}``; the sender waits for it."""
    for command in commands:
        if command.id in shard.commands_under_way:
            continue
        shard.commands_under_way.add(command.id)
        answer = partial(_answer, refresher, shard, command.id)
        act = _ACTIONS.get(command.name)
        try:
            if not isinstance(command.arguments, dict):
                raise ValueError(f"The arguments of the command {command.name!r} are damaged; send it again.")
            if act is None:
                raise ValueError(f"This version does not know the command {command.name!r}.")
            act(refresher, shard, command.arguments, answer)
        except (CrawlschedError, ValueError) as error:
            answer({"error": str(error)})
        except Exception as error:  # wrong arguments from another program, or a bug
            logger.exception("The command %r (number %d) cannot be obeyed.", command.name, command.id)
            answer({"error": f"The crawl could not do {command.name!r}: {in_words(error)}; its log says more."})


def _answer(refresher: Refresher, shard: Shard, command: int, result: dict[str, Any]) -> None:
    now = refresher.clock()
    refresher.collection.unsaved.of_shard(shard.number, now).finished[command] = now, result


def _bandwidth(refresher: Refresher, shard: Shard, arguments: dict[str, Any], answer: _Answer) -> None:
    before = refresher.planner.bandwidth
    refresher.rate.set_bandwidth(parse_bandwidth(arguments["bandwidth"]), refresher.clock())
    answer({"bandwidth": refresher.planner.bandwidth, "before": before})


def _pause(
    refresher: Refresher, shard: Shard, arguments: dict[str, Any], answer: _Answer, *, paused: bool = True
) -> None:
    refresher.rate.pause(refresher.clock(), paused=paused)
    answer({"paused_since": refresher.rate.paused_since})


def _recrawl(refresher: Refresher, shard: Shard, arguments: dict[str, Any], answer: _Answer) -> None:
    if "kind" in arguments:
        _recrawl_all(refresher, shard, arguments, answer)
        return
    pages, unknown = refresher.polls.known_pages(_urls(arguments), shard)
    _ask_again(refresher, pages, refresher.clock())
    answer({"pages": len(pages), "unknown": unknown})


def _ask_again(refresher: Refresher, pages: NDArray[np.integer], now: float) -> None:
    for page in pages.tolist():
        refresher.book.ask(page, RECRAWL, now)
    refresher.planner.force(pages, now)


def _recrawl_all(refresher: Refresher, shard: Shard, arguments: dict[str, Any], answer: _Answer) -> None:
    """Crawl all pages of a host, of a pattern, or of the collection. Another thread finds these pages."""
    collection, kind, value = refresher.collection, arguments["kind"], arguments["value"]

    def found(numbers: NDArray[np.int64]) -> None:
        refresher.long_work.add(steps(_here(collection, shard, numbers)))

    def steps(pages: NDArray[np.intp]) -> Iterator[None]:
        for start in range(0, pages.size, STEP):
            some = [page for page in pages[start : start + STEP].tolist() if collection.knows(page)]
            _ask_again(refresher, np.array(some, np.intp), refresher.clock())
            yield
        answer({"pages": int(pages.size), "unknown": []})

    collection.aside.run(
        f"looking for {value} ({shard.number})", lambda: shard.store.forgetting.matching(kind, value), found
    )


def _import(refresher: Refresher, shard: Shard, arguments: dict[str, Any], answer: _Answer) -> None:
    """Take in pages of an import, in slices between the slots; for a known page, set the stated importance."""
    pages = arguments["pages"]
    if not isinstance(pages, dict):
        raise ValueError(f"pages must be URLs with their importance or null, got {pages!r:.100}.")
    named = list(pages.items())
    counts = dict.fromkeys(("new", "weighed", "forgotten", "too_many"), 0)

    def steps() -> Iterator[None]:
        for start in range(0, len(named), STEP):
            some = [_found(refresher, *one) for one in named[start : start + STEP]]
            for name, n in refresher.admission.named(some, refresher.clock()).items():
                counts[name] += n
            yield
        answer(counts)

    refresher.long_work.add(steps())


def _found(refresher: Refresher, url: str, importance: float | None) -> FoundPage:
    return FoundPage(url, refresher.request_fingerprint(url), host_of(url), importance)


def _next(refresher: Refresher, shard: Shard, arguments: dict[str, Any], answer: _Answer) -> None:
    """Name the next pages: first the pages whose response is awaited, and then the pages to be requested."""
    planner, collection, n, now = refresher.planner, refresher.collection, int(arguments["n"]), refresher.clock()
    asked = [(visit.page, visit.opened_at) for visit in refresher.visits if visit.page >= 0]
    asked += [(probe.page, probe.asked_at) for probe in refresher.probes]  # pages that wait for a second fetch
    under_way = {page: at for page, at in asked if collection.knows(page)}
    limits = refresher.hosts.limits()
    expected = forecast(planner, now, n, lambda host: 1.0 / limits.item(host))
    pages = np.array([*under_way, *expected][:n], np.intp)
    pages = pages[collection.shards.numbers_of(pages) == shard.number]  # owners of other shards get this command, too
    columns = planner.crawl_values.value_at(pages, now), planner.pages.crawled_at[pages]
    named = [
        {
            "url": collection.facts_of(page).url,
            "crawl_value": value,
            "crawled_at": crawled_at,
            "sent_at": under_way.get(page),
        }
        for page, value, crawled_at in zip(pages.tolist(), *(column.tolist() for column in columns), strict=True)
    ]
    answer({"pages": named, "threshold": planner.threshold, "time": now})


def _signal(refresher: Refresher, shard: Shard, arguments: dict[str, Any], answer: _Answer) -> None:
    pages, unknown = refresher.polls.known_pages(_urls(arguments), shard)
    source = arguments.get("source", "command line")
    if not isinstance(source, str) or not source:
        raise ValueError(f"source must be a text that is not empty, got {source!r:.100}.")
    taken = refresher.polls.announce(pages, source, refresher.clock())
    answer({"pages": len(pages), "taken": taken, "unknown": unknown})


def _poll(refresher: Refresher, shard: Shard, arguments: dict[str, Any], answer: _Answer) -> None:
    wanted = arguments.get("url")
    asked = (source for source in refresher.collection.sources if source.kind in POLLED_KINDS)
    shards = refresher.collection.shards
    polled = [s for s in asked if wanted in (None, s.url) and shards.number_of(s.host) == shard.number]
    for source in polled:
        refresher.collection.sources.poll(source.source)
    answer({"sources": len(polled)})


def _forget(refresher: Refresher, shard: Shard, arguments: dict[str, Any], answer: _Answer) -> None:
    """Take pages out of memory, then out of the store. Another thread finds and deletes them."""
    collection = refresher.collection
    store, kind, value, began_at = shard.store, arguments["kind"], arguments["value"], refresher.clock()
    if kind not in FORGET_KINDS or not isinstance(value, str):
        raise ValueError(f"forget takes one of {', '.join(FORGET_KINDS)} and a text, got {kind!r} and {value!r}.")

    def found(numbers: NDArray[np.int64]) -> None:
        collection.forget(_here(collection, shard, numbers))
        collection.flush(refresher.clock())
        collection.aside.run(f"deleting {value} ({shard.number})", delete, deleted)

    def delete() -> NDArray[np.int64]:
        # Rows of a page must be written before the page is deleted; later rows would never be deleted.
        collection.write_behind.drain()
        return store.forgetting.forget(kind, value, began_at)

    def deleted(numbers: NDArray[np.int64]) -> None:
        collection.forget(_here(collection, shard, numbers))  # also pages that were found during the deletion
        answer({"pages": len(numbers)})

    collection.aside.run(f"forgetting {value} ({shard.number})", lambda: store.forgetting.matching(kind, value), found)


def _here(collection: Collection, shard: Shard, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the pages in memory that have these numbers in a shard's store."""
    rows = collection.shards.rows_of(shard, numbers)
    return rows[rows >= 0]


def _take_back(refresher: Refresher, shard: Shard, arguments: dict[str, Any], answer: _Answer) -> None:
    """Delete a tombstone in another thread, so that its pages can be found again."""
    collection, kind, value = refresher.collection, arguments["kind"], arguments["value"]
    collection.aside.run(
        f"taking back {value} ({shard.number})",
        lambda: shard.store.forgetting.take_back(kind, value),
        lambda was_forgotten: answer({"was_forgotten": was_forgotten}),
    )


def _urls(arguments: dict[str, Any]) -> list[str]:
    urls = arguments["urls"]
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        raise ValueError(f"urls must be a list of texts, got {urls!r:.100}.")
    return urls


_ACTIONS: dict[str, Callable[[Refresher, Shard, dict[str, Any], _Answer], None]] = {
    "bandwidth": _bandwidth,
    "forget": _forget,
    "import": _import,
    "next": _next,
    "pause": _pause,
    "poll": _poll,
    "recrawl": _recrawl,
    "resume": partial(_pause, paused=False),
    "signal": _signal,
    "take_back": _take_back,
}
