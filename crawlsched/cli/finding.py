"""Finding pages that somebody names: from a URL as it was written to the page that it is, or to those it may be."""

from difflib import get_close_matches
from typing import TYPE_CHECKING

from crawlsched.exceptions import UnknownPage

if TYPE_CHECKING:
    from crawlsched.store import Store

__all__ = ["find_page", "pages_like"]

_OFFERED = 3
# Among so many pages of its host a misspelt URL is looked for.
_COMPARED = 2_000


def find_page(store: "Store", url: str, *, offer: bool = True) -> int:
    """Return the page with this URL, or with another spelling of it.

    Parameters
    ----------
    store : Store
    url : str
    offer : bool
        Look for pages that may be meant if there is none.

    Raises
    ------
    UnknownPage
        If the collection has none; the sentence offers those that it has.
    """
    page = store.find(url)
    if page is None:
        # Only now: Scrapy takes a second to load, and most URLs are copied as they stand.
        from scrapy import Request
        from scrapy.utils.request import fingerprint

        try:
            page = store.find(fingerprint(Request(url)))
        except ValueError:  # no scheme, so no URL
            page = None
    if page is None:
        raise UnknownPage(url, store.name, pages_like(store, url) if offer else [])
    return page


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
