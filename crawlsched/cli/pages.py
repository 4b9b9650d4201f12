"""Pages named on the command line: from a URL as somebody wrote it to the page that it is."""

from typing import TYPE_CHECKING

from crawlsched.exceptions import UnknownPage

if TYPE_CHECKING:
    from crawlsched.store import Store

__all__ = ["find_page"]


def find_page(store: "Store", url: str) -> int:
    """Return the page with this URL, or with another spelling of it.

    Raises
    ------
    UnknownPage
        If the collection has none.
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
        raise UnknownPage(url, store.name)
    return page
