"""``crawlsched recrawl URL``: crawl pages next and deliver them, changed or not."""

import argparse
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import MATCHING, matched, one_of, option
from crawlsched.cli.stores import FOR_MANY_PAGES, Stores, open_stores, owner_now
from crawlsched.exceptions import UnknownPage
from crawlsched.wording import say_count

if TYPE_CHECKING:
    from crawlsched.store import Store

__all__ = ["EXAMPLES", "HELP", "OPTIONS", "ask_about_pages", "say_unknown"]


def ask_about_pages(arguments: argparse.Namespace, command: str, more: dict[str, Any]) -> dict[str, Any]:
    """Send a command about ``arguments.urls`` to the running crawl or, if no crawl runs, to the next crawl."""
    with open_stores(arguments, read_only=False) as stores:
        known, unknown = _known(stores, arguments.urls)
        answers = stores.ask([(store, {"urls": urls, **more}) for store, urls in known.items()], command)
        done = [answer for answer in answers if answer is not None]
        n_waiting = sum(len(urls) for urls, answer in zip(known.values(), answers, strict=True) if answer is None)
        has_taken = done and "taken" in done[0]
        return {
            "collection": stores.name,
            "running": bool(done),
            "pages": n_waiting + sum(answer["pages"] for answer in done),
            "taken": n_waiting + sum(answer["taken"] for answer in done) if has_taken else None,
            "unknown": unknown + [url for answer in done for url in answer["unknown"]],
        }


def say_unknown(report: dict[str, Any]) -> str:
    """Return a line for each URL that is not a page."""
    return "".join(f"\nNot a page of {report['collection']!r}: {url}" for url in report["unknown"])


def _known(stores: Stores, urls: list[str]) -> "tuple[dict[Store, list[str]], list[str]]":
    """Return the stored URLs of known pages, by their store, and the unknown URLs."""
    known: dict[Store, list[str]] = {}
    unknown: dict[str, UnknownPage] = {}
    for url in urls:
        try:
            store, page = stores.find_page(url)
        except UnknownPage as error:
            unknown[url] = error
            continue
        (facts,) = store.reader.facts([page])
        known.setdefault(store, []).append(url if facts is None else facts.url)
    if not known:
        raise next(iter(unknown.values()))
    return known, list(unknown)


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
        kind, value = matched(arguments) or ("collection", stores.name)
        asked = {"kind": kind, "value": value}
        found = {store: n for store in stores if (n := len(store.forgetting.matching(kind, value)))}
        answers = stores.ask([(store, asked) for store in found], "recrawl", timeout=FOR_MANY_PAGES)
        pages = sum(n if a is None else int(a["pages"]) for n, a in zip(found.values(), answers, strict=True))
        is_running = any(owner_now(store) is not None for store in stores)
        return {"collection": stores.name, **asked, "running": is_running, "pages": pages, "unknown": []}


def say(report: dict[str, Any]) -> str:
    if not report["pages"]:
        return f"No page of {report['collection']!r} matches, so nothing will be crawled."
    pages = say_count(report["pages"], "page")
    when = "next" if report["running"] else "first when a crawl starts; none is running now"
    return f"{pages} will be crawled and delivered {when}.{say_unknown(report)}"
