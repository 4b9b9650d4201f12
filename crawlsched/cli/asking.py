"""Asking: what ``recrawl`` and ``signal`` have in common, a word to the running crawl about some pages."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from crawlsched.cli.finding import find_page, pages_like
from crawlsched.cli.target import find_target, open_store, owner_now, send
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
    store = open_store(find_target(arguments), read_only=False)
    try:
        known, unknown = _known(store, arguments.urls)
        if not known:
            raise UnknownPage(unknown[0], store.name, pages_like(store, unknown[0]))
        if owner_now(store) is None:
            store.send(command, {"urls": known, **more}, time.time())
            return _report(store, running=False, pages=len(known), taken=None, unknown=unknown)
        answer = send(store, command, {"urls": known, **more}).result
        return _report(
            store, running=True, pages=answer["pages"], taken=answer.get("taken"), unknown=unknown + answer["unknown"]
        )
    finally:
        store.close()


def say_unknown(report: dict[str, Any]) -> str:
    """Say which URLs are no pages; nothing if all are."""
    return "".join(f"\nNot a page of {report['collection']!r}: {url}" for url in report["unknown"])


def _known(store: "Store", urls: list[str]) -> tuple[list[str], list[str]]:
    """Divide URLs into those of pages, as they are stored, and others."""
    known, unknown = [], []
    for url in urls:
        try:
            facts = store.facts([find_page(store, url)])[0]
        except UnknownPage:
            facts = None
        if facts is None:
            unknown.append(url)
        else:
            known.append(facts.url)
    return known, unknown


def _report(store: "Store", **facts: Any) -> dict[str, Any]:
    return {"collection": store.name, **facts}
