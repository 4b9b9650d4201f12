"""``crawlsched forget``: delete pages and all that is known of them, list what was forgotten, and take it back."""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crawlsched.cli.finding import forgotten_as
from crawlsched.cli.stores import Stores, open_stores
from crawlsched.cli.target import common_options, find_target, n_shards_of, owner_now
from crawlsched.cli.wording import say_count, say_past, say_table
from crawlsched.exceptions import CrawlschedError, UnknownPage

if TYPE_CHECKING:
    from crawlsched.store import Store
from crawlsched.cli.parsing import examples

__all__ = ["add_parser", "report", "say"]

# Deleting a million pages takes a while, and the running crawl answers when it is done.
_ANSWER_WITHIN = 600.0


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "forget",
        help="delete a page, or many, so that they do not come back",
        parents=[common_options()],
        epilog=examples(
            "crawlsched forget --pattern 'https://example.com/old/*'",
            "crawlsched forget --list",
            "crawlsched forget --undo --pattern 'https://example.com/old/*'",
        ),
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("url", metavar="URL", nargs="?", help="one page")
    what.add_argument("--pattern", metavar="GLOB", help="every URL that matches as a whole; * stands for anything")
    what.add_argument("--host", metavar="HOST", help="every page of a host, such as www.example.com")
    what.add_argument("--list", action="store_true", help="say what was forgotten, and when; delete nothing")
    parser.add_argument(
        "--undo", action="store_true", help="let what was forgotten so come back when it is found again"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask first")
    parser.set_defaults(report=report, say=say, is_long=True)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Count, ask, delete; or list, or take back."""
    if arguments.list and arguments.undo:
        raise CrawlschedError("--list takes nothing back; name a URL, --pattern or --host beside --undo.")
    stores = open_stores(find_target(arguments), read_only=arguments.list)
    try:
        if arguments.list:
            stones = sorted(
                {stone for store in stores for stone in store.tombstones}, key=lambda stone: stone.created_at
            )
            return {"collection": stores.name, "forgotten": [stone._asdict() for stone in stones]}
        kind, value = _what(arguments, stores)
        if arguments.undo:
            return _take_back(stores, kind, value)
        found = {store: len(store.forgetting.matching(kind, value)) for store in stores}
        if not arguments.yes:
            _ask(kind, value, sum(found.values()))
        named = {"collection": stores.name, "kind": kind, "value": value}
        alone = stores.all[0]
        if _is_idle(stores):
            with _owned(alone):
                return {**named, "pages": len(alone.forgetting.forget(kind, value, time.time()))}
        asked = {"kind": kind, "value": value}
        # All are told, so that what is forgotten comes back in none.
        answers = stores.ask([(store, asked) for store in found], "forget", timeout=_ANSWER_WITHIN)
        waiting = sum(n for n, answer in zip(found.values(), answers, strict=True) if answer is None)
        deleted = sum(int(answer["pages"]) for answer in answers if answer is not None)
        return {**named, "pages": deleted, **({"waiting": waiting} if waiting else {})}
    finally:
        stores.close()


def say(report: dict[str, Any]) -> str:
    """Say how many pages are gone, or what was forgotten."""
    if "forgotten" in report:
        return _say_list(report)
    if "waiting_shards" in report:
        text = (
            f"The {forgotten_as(report['kind'], report['value'])} is no longer forgotten in {report['collection']!r}."
        )
        text += " It becomes a page again when it is found or imported."
        if waiting := report["waiting_shards"]:
            text += f"\n{say_count(waiting, 'shard')} will hear of it when a process crawls them again; none does now."
        return text
    what = {"url": "It", "pattern": f"What matches {report['value']}", "host": f"The host {report['value']}"}
    pages = say_count(report["pages"], "page")
    text = f"{pages} deleted from {report['collection']!r}. {what[report['kind']]} will not come back by itself."
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


def _take_back(stores: Stores, kind: str, value: str) -> dict[str, Any]:
    stones = [(store, stone) for store in stores for stone in store.tombstones if stone[:2] == (kind, value)]
    if not stones:
        raise CrawlschedError(
            f"The {forgotten_as(kind, value)} was not forgotten in {stores.name!r}; "
            "`crawlsched forget --list` says what was."
        )
    named = {"collection": stores.name, "kind": kind, "value": value}
    alone = stores.all[0]
    if _is_idle(stores):
        with _owned(alone):
            alone.forgetting.take_back(kind, value)
        return {**named, "waiting_shards": 0}
    asked = {"kind": kind, "value": value}
    answers = stores.ask([(store, asked) for store, _ in stones], "take_back", timeout=_ANSWER_WITHIN)
    return {**named, "waiting_shards": answers.count(None)}


def _what(arguments: argparse.Namespace, stores: Stores) -> tuple[str, str]:
    if arguments.pattern is not None:
        return "pattern", arguments.pattern
    if arguments.host is not None:
        return "host", arguments.host.lower()
    try:
        store, page = stores.find_page(arguments.url)
        facts = store.reader.facts([page])[0]
    except UnknownPage:
        facts = None
    # A URL that is no page can be forgotten as well: it then never becomes one.
    return "url", arguments.url if facts is None else facts.url


def _ask(kind: str, value: str, n_pages: int) -> None:
    what = f"the {forgotten_as(kind, value)}"
    if not sys.stdin.isatty():
        raise CrawlschedError(
            f"Forgetting {what} would delete {say_count(n_pages, 'page')} for good, and nobody is here to be asked; "
            "add --yes if it is meant."
        )
    print(f"Forget {what}: delete {say_count(n_pages, 'page')} and all that is known of them? [y/N] ", end="")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CrawlschedError("Nothing was deleted.")


def _is_idle(stores: Stores) -> bool:
    """Whether no crawl runs that would have to be asked."""
    alone = stores.all[0]
    return stores.shared is None and owner_now(alone) is None and n_shards_of(alone) is None


@contextmanager
def _owned(store: "Store") -> Iterator[None]:
    """Let no crawl start in the middle."""
    lease = store.take_lease("crawlsched forget")
    try:
        yield
    finally:
        lease.release()
