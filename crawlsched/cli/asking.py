"""Asking: what ``recrawl`` and ``signal`` have in common, a command to the running crawl about some pages."""

import argparse
from typing import TYPE_CHECKING, Any

from crawlsched.cli.stores import Stores, open_stores
from crawlsched.exceptions import UnknownPage

if TYPE_CHECKING:
    from crawlsched.store import Store

__all__ = ["ask_about_pages", "say_unknown"]


def ask_about_pages(arguments: argparse.Namespace, command: str, more: dict[str, Any]) -> dict[str, Any]:
    """Send a command about ``arguments.urls``; without a running crawl it waits for the next one."""
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
    """Say which URLs are no pages; nothing if all are."""
    return "".join(f"\nNot a page of {report['collection']!r}: {url}" for url in report["unknown"])


def _known(stores: Stores, urls: list[str]) -> "tuple[dict[Store, list[str]], list[str]]":
    """Divide URLs into those of pages, as they are stored and by where they are, and others."""
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
