"""Asking: what ``recrawl`` and ``signal`` have in common, a word to the running crawl about some pages."""

import argparse
from typing import TYPE_CHECKING, Any

from crawlsched.cli.stores import Stores, open_stores
from crawlsched.cli.target import find_target
from crawlsched.exceptions import UnknownPage

if TYPE_CHECKING:
    from crawlsched.store import Store

__all__ = ["ask_about_pages", "say_unknown"]


def ask_about_pages(arguments: argparse.Namespace, command: str, more: dict[str, Any]) -> dict[str, Any]:
    """Send a command about ``arguments.urls``; without a running crawl it waits for the next one.

    Raises
    ------
    UnknownPage
        If none of the URLs is a page.
    """
    stores = open_stores(find_target(arguments), read_only=False)
    try:
        known, unknown = _known(stores, arguments.urls)
        answers = stores.ask([(store, {"urls": urls, **more}) for store, urls in known.items()], command)
        n_waiting = sum(len(urls) for urls, answer in zip(known.values(), answers, strict=True) if answer is None)
        done = [answer for answer in answers if answer is not None]
        return {
            "collection": stores.name,
            "running": bool(done),
            "pages": n_waiting + sum(answer["pages"] for answer in done),
            "taken": n_waiting + sum(answer["taken"] for answer in done) if done and "taken" in done[0] else None,
            "unknown": unknown + [url for answer in done for url in answer["unknown"]],
        }
    finally:
        stores.close()


def say_unknown(report: dict[str, Any]) -> str:
    """Say which URLs are no pages; nothing if all are."""
    return "".join(f"\nNot a page of {report['collection']!r}: {url}" for url in report["unknown"])


def _known(stores: Stores, urls: list[str]) -> "tuple[dict[Store, list[str]], list[str]]":
    """Divide URLs into those of pages, as they are stored and by where they are, and others."""
    known: dict[Store, list[str]] = {}
    unknown, first = [], None
    for url in urls:
        try:
            store, page = stores.find_page(url)
        except UnknownPage as error:
            first = first or error
            unknown.append(url)
            continue
        facts = store.reader.facts([page])[0]
        if facts is None:  # forgotten between two questions
            unknown.append(url)
        else:
            known.setdefault(store, []).append(facts.url)
    if not known:
        raise first or UnknownPage(unknown[0], stores.name)
    return known, unknown
