"""``crawlsched forget``: delete pages with all their data, list what was forgotten, and undo it."""

import argparse
import time
from typing import Any

from crawlsched.cli.parsing import MATCHING, confirm, matched, one_of, option
from crawlsched.cli.stores import FOR_MANY_PAGES, Stores, leased, n_shards_of, open_stores, owner_now
from crawlsched.cli.target import forgotten_as
from crawlsched.exceptions import CrawlschedError, UnknownPage
from crawlsched.wording import say_count, say_past, say_table

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


HELP = "delete a page, or many, so that they do not come back"
EXAMPLES = (
    "crawlsched forget --pattern 'https://example.com/old/*'",
    "crawlsched forget --list",
    "crawlsched forget --undo --pattern 'https://example.com/old/*'",
)
_LIST = option("--list", "show what was forgotten, and when; delete nothing")
OPTIONS = (
    one_of(option("URL", "one page", nargs="?"), *MATCHING, _LIST, required=True),
    option("--undo", "let these pages come back when they are found again"),
    option("--yes", "do not ask first"),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.list and arguments.undo:
        raise CrawlschedError("--undo does not work with --list; it needs a URL, --pattern or --host.")
    with open_stores(arguments, read_only=arguments.list) as stores:
        if arguments.list:
            stones = sorted({stone for store in stores for stone in store.tombstones}, key=lambda one: one.created_at)
            return {"collection": stores.name, "forgotten": [stone._asdict() for stone in stones]}
        asked = dict(zip(("kind", "value"), _what(arguments, stores), strict=True))
        done = _take_back(stores, asked) if arguments.undo else _forget(stores, asked, is_meant=arguments.yes)
        return {"collection": stores.name, **asked, **done}


def _forget(stores: Stores, asked: dict[str, str], *, is_meant: bool) -> dict[str, int]:
    found = {store: len(store.forgetting.matching(**asked)) for store in stores}
    pages = say_count(sum(found.values()), "page")
    confirm(
        f"Forget the {forgotten_as(**asked)}: delete {pages} with all their data for good?",
        is_meant=is_meant,
        refused="Nothing was deleted.",
    )
    alone = stores.all[0]
    if _is_idle(stores):
        with leased(alone, "crawlsched forget"):
            return {"pages": len(alone.forgetting.forget(**asked, now=time.time()))}
    # All shards get the command, so that no shard adds these pages again.
    answers = stores.ask([(store, asked) for store in found], "forget", timeout=FOR_MANY_PAGES)
    waiting = sum(n for n, answer in zip(found.values(), answers, strict=True) if answer is None)
    deleted = sum(int(answer["pages"]) for answer in answers if answer is not None)
    return {"pages": deleted, **({"waiting": waiting} if waiting else {})}


def _take_back(stores: Stores, asked: dict[str, str]) -> dict[str, int]:
    wanted = tuple(asked.values())
    having = [store for store in stores if any(stone[:2] == wanted for stone in store.tombstones)]
    if not having:
        raise CrawlschedError(
            f"The {forgotten_as(**asked)} was not forgotten in {stores.name!r}; `crawlsched forget --list` shows what "
            "was."
        )
    alone = stores.all[0]
    if _is_idle(stores):
        with leased(alone, "crawlsched forget"):
            alone.forgetting.take_back(**asked)
        return {"waiting_shards": 0}
    answers = stores.ask([(store, asked) for store in having], "take_back", timeout=FOR_MANY_PAGES)
    return {"waiting_shards": answers.count(None)}


def _what(arguments: argparse.Namespace, stores: Stores) -> tuple[str, str]:
    if (many := matched(arguments)) is not None:
        return many
    try:
        store, page = stores.find_page(arguments.url)
    except UnknownPage:
        return "url", arguments.url  # not a page yet; a tombstone keeps it from becoming one
    (facts,) = store.reader.facts([page])
    return "url", arguments.url if facts is None else facts.url


def _is_idle(stores: Stores) -> bool:
    """Whether no crawl runs, so that the command can change the database by itself."""
    alone = stores.all[0]
    return stores.shared is None and owner_now(alone) is None and n_shards_of(alone) is None


def say(report: dict[str, Any]) -> str:
    if "forgotten" in report:
        return _say_list(report)
    name = repr(report["collection"])
    if "waiting_shards" in report:
        text = f"The {forgotten_as(report['kind'], report['value'])} is no longer forgotten in {name}."
        text += " It becomes a page again when it is found or imported."
        if waiting := report["waiting_shards"]:
            text += f"\n{say_count(waiting, 'shard')} follow when a process crawls them again; none does now."
        return text
    what = {"url": "It", "pattern": f"What matches {report['value']}", "host": f"The host {report['value']}"}
    pages = say_count(report["pages"], "page")
    text = f"{pages} deleted from {name}. {what[report['kind']]} will not come back by itself."
    if report.get("waiting"):
        text += f"\n{say_count(report['waiting'], 'page')} go when a process crawls their shards again; none does now."
    return text


def _say_list(report: dict[str, Any]) -> str:
    if not report["forgotten"]:
        return f"Nothing was forgotten in {report['collection']!r}."
    now = time.time()
    rows = [[say_past(stone["created_at"], now), stone["kind"], stone["value"]] for stone in report["forgotten"]]
    undo = "Take one back with: crawlsched forget --undo URL, or --undo --pattern GLOB, or --undo --host HOST"
    return "\n".join([f"Forgotten in {report['collection']!r}:", *say_table(rows), undo])
