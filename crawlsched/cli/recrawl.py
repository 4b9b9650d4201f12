"""``crawlsched recrawl URL``: crawl pages next and deliver them, changed or not."""

import argparse
from typing import Any

from crawlsched.cli.asking import ask_about_pages, say_unknown
from crawlsched.cli.parsing import MATCHING, one_of, option
from crawlsched.cli.stores import open_stores, owner_now
from crawlsched.wording import say_count

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]

# Marking a million pages takes a while.
_ANSWER_WITHIN = 600.0


HELP = "crawl pages next, and deliver them changed or not"
EXAMPLES = (
    "crawlsched recrawl https://example.com/news/1",
    "crawlsched recrawl --pattern 'https://example.com/shop/*'",
)
_URLS = option("URL", "these pages", dest="urls", nargs="*", default=[])
OPTIONS = (one_of(_URLS, *MATCHING, option("--all", "every page of the collection"), required=True),)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.urls:
        return ask_about_pages(arguments, "recrawl", {})
    with open_stores(arguments, read_only=False) as stores:
        kind, value = "collection", stores.name
        if arguments.pattern is not None:
            kind, value = "pattern", arguments.pattern
        elif arguments.host is not None:
            kind, value = "host", arguments.host.lower()
        asked = {"kind": kind, "value": value}
        found = {store: n for store in stores if (n := len(store.forgetting.matching(kind, value)))}
        answers = stores.ask([(store, asked) for store in found], "recrawl", timeout=_ANSWER_WITHIN)
        pages = sum(n if a is None else int(a["pages"]) for n, a in zip(found.values(), answers, strict=True))
        is_running = any(owner_now(store) is not None for store in stores)
        return {"collection": stores.name, **asked, "running": is_running, "pages": pages, "unknown": []}


def say(report: dict[str, Any]) -> str:
    pages = say_count(report["pages"], "page")
    when = "next" if report["running"] else "first when a crawl starts; none is running now"
    return f"{pages} will be crawled and delivered {when}.{say_unknown(report)}"
