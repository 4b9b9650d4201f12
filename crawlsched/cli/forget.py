"""``crawlsched forget``: delete pages and all that is known of them, and see to it that they do not come back."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from crawlsched.cli.stores import Stores, open_stores
from crawlsched.cli.target import common_options, find_target, n_shards_of, owner_now
from crawlsched.cli.wording import say_count
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
        epilog=examples("crawlsched forget --pattern 'https://example.com/old/*'"),
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("url", metavar="URL", nargs="?", help="one page")
    what.add_argument("--pattern", metavar="GLOB", help="every URL that matches as a whole; * stands for anything")
    what.add_argument("--host", metavar="HOST", help="every page of a host, such as www.example.com")
    parser.add_argument("--yes", action="store_true", help="do not ask first")
    parser.set_defaults(report=report, say=say, is_long=True)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Count, ask, delete."""
    stores = open_stores(find_target(arguments), read_only=False)
    try:
        kind, value = _what(arguments, stores)
        found = {store: len(store.matching(kind, value)) for store in stores}
        if not arguments.yes:
            _ask(kind, value, sum(found.values()))
        named = {"collection": stores.name, "kind": kind, "value": value}
        alone = stores.all[0]
        if stores.shared is None and owner_now(alone) is None and n_shards_of(alone) is None:
            return {**named, "pages": _forget(alone, kind, value)}
        asked = {"kind": kind, "value": value}
        # All are told, so that what is forgotten comes back in none.
        answers = stores.ask([(store, asked) for store in found], "forget", timeout=_ANSWER_WITHIN)
        waiting = sum(n for n, answer in zip(found.values(), answers, strict=True) if answer is None)
        deleted = sum(int(answer["pages"]) for answer in answers if answer is not None)
        return {**named, "pages": deleted, **({"waiting": waiting} if waiting else {})}
    finally:
        stores.close()


def say(report: dict[str, Any]) -> str:
    """Say how many pages are gone."""
    what = {"url": "It", "pattern": f"What matches {report['value']}", "host": f"The host {report['value']}"}
    pages = say_count(report["pages"], "page")
    text = f"{pages} deleted from {report['collection']!r}. {what[report['kind']]} will not come back by itself."
    if report.get("waiting"):
        text += f"\n{say_count(report['waiting'], 'page')} go when a process crawls their shards again; none does now."
    return text


def _what(arguments: argparse.Namespace, stores: Stores) -> tuple[str, str]:
    if arguments.pattern is not None:
        return "pattern", arguments.pattern
    if arguments.host is not None:
        return "host", arguments.host.lower()
    try:
        store, page = stores.find_page(arguments.url)
        facts = store.facts([page])[0]
    except UnknownPage:
        facts = None
    # A URL that is no page can be forgotten as well: it then never becomes one.
    return "url", arguments.url if facts is None else facts.url


def _ask(kind: str, value: str, n_pages: int) -> None:
    what = {"url": f"the page {value}", "pattern": f"the pattern {value}", "host": f"the host {value}"}[kind]
    if not sys.stdin.isatty():
        raise CrawlschedError(
            f"Forgetting {what} would delete {say_count(n_pages, 'page')} for good, and nobody is here to be asked; "
            "add --yes if it is meant."
        )
    print(f"Forget {what}: delete {say_count(n_pages, 'page')} and all that is known of them? [y/N] ", end="")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CrawlschedError("Nothing was deleted.")


def _forget(store: "Store", kind: str, value: str) -> int:
    """Delete while no crawl runs, and let none start in the middle."""
    lease = store.take_lease("crawlsched forget")
    try:
        return len(store.forget(kind, value, time.time()))
    finally:
        lease.release()
