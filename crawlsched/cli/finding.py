"""Finding pages that somebody names: from a URL as it was written to the page that it is, or to those it may be."""

import time
from difflib import get_close_matches
from shlex import quote
from typing import TYPE_CHECKING

from crawlsched.exceptions import UnknownPage
from crawlsched.wording import say_past

if TYPE_CHECKING:
    from crawlsched.store import Store
    from crawlsched.store.forgetting import Tombstone

__all__ = ["find_page", "forgotten_as", "not_found", "why_forgotten"]

_OFFERED = 3
# The pages of its host that a misspelt URL is compared with.
_COMPARED = 2_000


def find_page(store: "Store", url: str) -> int | None:
    """Return the page with this URL, or with another spelling of it; None: there is none."""
    page = store.reader.find(url)
    if page is None:
        # Only now: Scrapy takes a second to load, and most URLs are copied as they stand.
        from scrapy import Request
        from scrapy.utils.request import fingerprint

        try:
            page = store.reader.find(fingerprint(Request(url)))
        except ValueError:  # no scheme, so no URL
            return None
    return page


def not_found(store: "Store", url: str) -> UnknownPage:
    """Return the error for an unknown URL: what forgot it, or which pages may be meant."""
    if (stone := store.tombstones.covering(url)) is not None:
        return UnknownPage(url, store.name, forgotten=f"{why_forgotten(stone, time.time())}.")
    return UnknownPage(url, store.name, pages_like(store, url))


def why_forgotten(stone: "Tombstone", now: float) -> str:
    """Say when and by what something was forgotten, and which command takes that back.

    >>> from crawlsched.store.forgetting import Tombstone
    >>> print(why_forgotten(Tombstone("host", "a.org", 1700000000.0), now=1700000060.0))
    the host a.org was forgotten (2023-11-14 22:13:20 UTC, 60 s ago); take that back with `crawlsched ...
    """
    option = "" if stone.kind == "url" else f"--{stone.kind} "
    return (
        f"the {forgotten_as(stone.kind, stone.value)} was forgotten ({say_past(stone.created_at, now)}); "
        f"take that back with `crawlsched forget --undo {option}{quote(stone.value)}`"
    )


def forgotten_as(kind: str, value: str) -> str:
    """Name a URL, a pattern or a host."""
    return f"{'page' if kind == 'url' else kind} {value}"


def pages_like(store: "Store", text: str) -> list[str]:
    """Return some URLs of pages that may be meant: those that hold the text, or are spelt much alike on its host."""
    from crawlsched.store import host_of
    from crawlsched.store.listing import Condition, listed

    if not text.strip("*/ "):
        return []
    with store.database.reading() as connection:

        def urls(*conditions: Condition, limit: int) -> list[str]:
            return [url for (url,) in listed(connection, store.key, "pages", ["url"], conditions, limit=limit)]

        plain = text.replace("*", "")
        found = urls(Condition("url", "~", f"*{plain}"), limit=_OFFERED)
        found = found or urls(Condition("url", "~", f"*{plain}*"), limit=_OFFERED)
        if not found and (host := host_of(text)):
            found = get_close_matches(text, urls(Condition("host", "=", host), limit=_COMPARED), n=_OFFERED)
    return found
