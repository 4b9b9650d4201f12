"""Commands: what the command line asks of a running crawl, through the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawlsched.exceptions import CrawlschedError
from crawlsched.pages.marks import RECRAWL
from crawlsched.planner import forecast
from crawlsched.refresh.pings import announce, known_pages
from crawlsched.refresh.refresher import Refresher
from crawlsched.settings import parse_bandwidth
from crawlsched.sources.sources import POLLED_KINDS
from crawlsched.store import Command

__all__ = ["obey_pending"]

_LONGEST_DRAIN = 30.0
_ASKED_AT_ONCE = 64


def obey_pending(refresher: Refresher) -> None:
    """Do what the command line has asked for since the last time; the database is read beside the crawling thread."""
    collection = refresher.collection
    collection.aside.collect()

    def found(commands: list[Command]) -> None:
        refresher.has_read_commands = True
        # What has been written down as done is not read again.
        refresher.commands_under_way &= {command.id for command in commands}
        _obey(refresher, commands)

    collection.aside.run("reading commands", collection.store.pending_commands, found)


def _obey(refresher: Refresher, commands: Iterable[Command]) -> None:
    """Do what each command says, and write its result where the sender waits for it.

    A command that cannot be done has the result ``{"error": sentence}``.
    """
    for command in commands:
        if command.id in refresher.commands_under_way:
            continue
        refresher.commands_under_way.add(command.id)
        now = refresher.clock()
        act = _ACTIONS.get(command.name)
        try:
            if command.name == "forget":  # its result comes later
                _forget(refresher, command.arguments, now, command.id)
                continue
            if command.name == "recrawl" and "kind" in command.arguments:
                _recrawl_all(refresher, command.arguments, command.id)
                continue
            if act is None:
                raise ValueError(f"This version does not know the command {command.name!r}.")
            result = act(refresher, command.arguments, now)
        except (CrawlschedError, ValueError, KeyError, TypeError) as error:
            result = {"error": str(error)}
        refresher.collection.unsaved.command(command.id, result, now)


def _bandwidth(refresher: Refresher, arguments: dict[str, Any], now: float) -> dict[str, Any]:
    before = refresher.planner.bandwidth
    refresher.set_bandwidth(parse_bandwidth(arguments["bandwidth"]), now)
    return {"bandwidth": refresher.planner.bandwidth, "before": before}


def _recrawl(refresher: Refresher, arguments: dict[str, Any], now: float) -> dict[str, Any]:
    pages, unknown = known_pages(refresher, arguments["urls"])
    _ask_again(refresher, pages, now)
    return {"pages": len(pages), "unknown": unknown}


def _ask_again(refresher: Refresher, pages: NDArray[np.integer], now: float) -> None:
    for page in pages.tolist():
        refresher.owing.ask(page, RECRAWL, now)
    refresher.planner.force(pages, now)


def _recrawl_all(refresher: Refresher, arguments: dict[str, Any], command: int) -> None:
    """Crawl all pages of a host or a pattern, or all there are: they are looked for beside this thread."""
    collection, kind, value = refresher.collection, arguments["kind"], arguments["value"]

    def found(pages: NDArray[np.int64]) -> None:
        refresher.add_work(steps(pages))

    def steps(pages: NDArray[np.int64]) -> Iterator[None]:
        for start in range(0, pages.size, _ASKED_AT_ONCE):
            some = [page for page in pages[start : start + _ASKED_AT_ONCE].tolist() if collection.knows(page)]
            _ask_again(refresher, np.array(some, np.intp), refresher.clock())
            yield
        collection.unsaved.command(command, {"pages": int(pages.size), "unknown": []}, refresher.clock())

    collection.aside.run(f"looking for {value}", lambda: collection.store.matching(kind, value), found)


def _next(refresher: Refresher, arguments: dict[str, Any], now: float) -> dict[str, Any]:
    planner, collection = refresher.planner, refresher.collection
    pages = forecast(planner, now, int(arguments["n"]))
    columns = planner.frontier.values.many(pages).at(now), planner.pages.crawled_at[pages]
    named = [
        {"url": collection.facts_of(page).url, "crawl_value": value, "crawled_at": crawled_at}
        for page, value, crawled_at in zip(pages.tolist(), *(column.tolist() for column in columns), strict=True)
    ]
    return {"pages": named, "threshold": planner.threshold, "time": now}


def _signal(refresher: Refresher, arguments: dict[str, Any], now: float) -> dict[str, Any]:
    pages, unknown = known_pages(refresher, arguments["urls"])
    taken = announce(refresher, pages, arguments.get("source", "command line"), now)
    return {"pages": len(pages), "taken": taken, "unknown": unknown}


def _poll(refresher: Refresher, arguments: dict[str, Any], now: float) -> dict[str, Any]:
    wanted = arguments.get("url")
    asked = (source for source in refresher.sources if source.kind in POLLED_KINDS)
    polled = [source for source in asked if wanted in (None, source.url)]
    for source in polled:
        refresher.sources.poll(source.source)
    return {"sources": len(polled)}


def _forget(refresher: Refresher, arguments: dict[str, Any], now: float, command: int) -> None:
    """Take the pages out of memory, then out of the store; finding and deleting them is done beside this thread."""
    collection = refresher.collection
    store, kind, value = collection.store, arguments["kind"], arguments["value"]

    def found(pages: NDArray[np.int64]) -> None:
        collection.forget(pages)
        collection.flush(refresher.clock())
        collection.aside.run(f"deleting {value}", delete, deleted)

    def delete() -> NDArray[np.int64]:
        # What was written of a page after it is gone would be kept under its number.
        collection.write_behind.drain(_LONGEST_DRAIN)
        return store.forget(kind, value, now)

    def deleted(pages: NDArray[np.int64]) -> None:
        collection.forget(pages)  # those that were found meanwhile
        collection.unsaved.command(command, {"pages": len(pages)}, refresher.clock())

    collection.aside.run(f"forgetting {value}", lambda: store.matching(kind, value), found)


_ACTIONS: dict[str, Callable[[Refresher, dict[str, Any], float], dict[str, Any]]] = {
    "bandwidth": _bandwidth,
    "next": _next,
    "poll": _poll,
    "recrawl": _recrawl,
    "signal": _signal,
}
