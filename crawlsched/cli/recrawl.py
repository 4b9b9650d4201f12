"""``crawlsched recrawl URL``: crawl pages next and deliver them, changed or not."""

import argparse
from typing import Any

from crawlsched.cli.asking import ask_about_pages, say_unknown
from crawlsched.cli.parsing import examples
from crawlsched.cli.stores import open_stores
from crawlsched.cli.target import common_options, find_target, owner_now
from crawlsched.cli.wording import say_count

__all__ = ["add_parser", "report", "say"]

# Marking a million pages takes a while.
_ANSWER_WITHIN = 600.0


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "recrawl",
        help="crawl pages next, and deliver them changed or not",
        parents=[common_options()],
        epilog=examples(
            "crawlsched recrawl https://example.com/news/1", "crawlsched recrawl --pattern 'https://example.com/shop/*'"
        ),
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("urls", metavar="URL", nargs="*", default=[], help="these pages")
    what.add_argument("--pattern", metavar="GLOB", help="every URL that matches as a whole; * stands for anything")
    what.add_argument("--host", metavar="HOST", help="every page of a host, such as www.example.com")
    what.add_argument("--all", action="store_true", help="every page of the collection")
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Ask the running crawl, or leave word for the next one."""
    if arguments.urls:
        return ask_about_pages(arguments, "recrawl", {})
    stores = open_stores(find_target(arguments), read_only=False)
    try:
        kind, value = "collection", stores.name
        if arguments.pattern is not None:
            kind, value = "pattern", arguments.pattern
        elif arguments.host is not None:
            kind, value = "host", arguments.host.lower()
        asked = {"kind": kind, "value": value}
        found = {store: len(store.forgetting.matching(kind, value)) for store in stores}
        answers = stores.ask([(store, asked) for store, n in found.items() if n], "recrawl", timeout=_ANSWER_WITHIN)
        waiting = (n for n in found.values() if n)
        pages = sum(n if answer is None else int(answer["pages"]) for n, answer in zip(waiting, answers, strict=True))
        is_running = any(owner_now(store) is not None for store in stores)
        return {"collection": stores.name, **asked, "running": is_running, "pages": pages, "unknown": []}
    finally:
        stores.close()


def say(report: dict[str, Any]) -> str:
    """Say what will happen."""
    pages = say_count(report["pages"], "page")
    when = "next" if report["running"] else "first when a crawl starts; none is running now"
    return f"{pages} will be crawled and delivered {when}.{say_unknown(report)}"
