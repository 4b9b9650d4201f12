"""The errors of crawlsched, as a tree.

::

    CrawlschedError
      + SettingError (ValueError)           a CRAWLSCHED_* setting is wrong
      + UnknownPage (LookupError)           a URL that is not in the store
      + NotThePage                          raised by callbacks: the response is not the page it should be
      + StoreError (RuntimeError)           the database cannot be used
          + SchemaOutOfDate                 its tables are older, newer, or of another program
          + DamagedRow                      one of its rows is damaged; all others can be used
          + DatabaseReplaced                the file was deleted or replaced while it was in use
          + CollectionInUse                 another running process owns the collection

Every message is one sentence that names the fault, the wrong value, what is allowed, and what to do.
"""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = [
    "CollectionInUse",
    "CrawlschedError",
    "DamagedRow",
    "DatabaseReplaced",
    "NotThePage",
    "SchemaOutOfDate",
    "SettingError",
    "StoreError",
    "UnknownPage",
    "require_aiohttp",
    "require_posix",
]


class CrawlschedError(Exception):
    """The base of all errors that crawlsched raises on purpose, except for wrong arguments (`ValueError`)."""


class SettingError(CrawlschedError, ValueError):
    """A ``CRAWLSCHED_*`` setting has a value that is not allowed; the crawl does not start."""


def require_posix() -> None:
    """Raise on systems without POSIX processes. Each entry point calls this function.

    crawlsched sends signal 0 to check whether the owner of a collection still runs. On Windows this would interrupt the
    owner.
    """
    if os.name != "posix":
        raise CrawlschedError(
            f"crawlsched does not run on {'Windows' if os.name == 'nt' else sys.platform}; "
            "run it on Linux or another POSIX system, such as the Windows Subsystem for Linux."
        )


def require_aiohttp(what: str) -> None:
    """Raise if aiohttp, which serves HTTP, is not installed."""
    if find_spec("aiohttp") is None:
        raise CrawlschedError(f"{what} needs aiohttp, which is not installed here: pip install 'crawlsched[web]'.")


class NotThePage(CrawlschedError):
    """Raised by a spider's callback if the response is not the right page, but a login form, a captcha or a teaser.

    The visit then does not count as seen or delivered, and the page is visited again later.

    Examples
    --------
    >>> def parse_article(self, response):
    ...     if response.css("form#login"):
    ...         raise crawlsched.NotThePage("the session has ended")
    """


class UnknownPage(CrawlschedError, LookupError):
    """The URL is not a page of this collection."""

    def __init__(self, url: str, collection: str, like: Sequence[str] = (), forgotten: str = "") -> None:
        hint = forgotten or "check its spelling, or name another collection with --collection."
        if like and not forgotten:
            hint = f"did you mean {' or '.join(like)}?"
        super().__init__(f"No page with the URL {url!r} is in the collection {collection!r}; {hint}")


class StoreError(CrawlschedError, RuntimeError):
    """The database cannot be used, and was not changed."""


class SchemaOutOfDate(StoreError):
    """The database's tables are those of another version, or of another program."""


class DamagedRow(StoreError):
    """A row of the database is damaged. The row is left out, and the other rows are used."""


class DatabaseReplaced(StoreError):
    """The database file that was opened was deleted, or replaced by another file."""


class CollectionInUse(StoreError):
    """Another process, `owner`, owns this collection while it runs. If `owner` is None, waiting does not help."""

    def __init__(self, message: str, owner: str | None = None) -> None:
        super().__init__(message)
        self.owner = owner
