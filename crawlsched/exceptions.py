"""What can go wrong, as a tree.

::

    CrawlschedError
      + SettingError (ValueError)           a CRAWLSCHED_* setting is wrong
      + UnknownPage (LookupError)           a URL that is not in the store
      + StoreError (RuntimeError)           the database cannot be used
          + SchemaOutOfDate                 it is behind, ahead, or not ours
          + CollectionInUse                 another running process owns the collection

Every message is one sentence that names what was wrong, its value, what is allowed, and what to do.
"""

__all__ = [
    "CollectionInUse",
    "CrawlschedError",
    "SchemaOutOfDate",
    "SettingError",
    "StoreError",
    "UnknownPage",
]


class CrawlschedError(Exception):
    """Anything that crawlsched raises on purpose, except for wrong arguments (`ValueError`)."""


class SettingError(CrawlschedError, ValueError):
    """A ``CRAWLSCHED_*`` setting has a value that is not allowed; the crawl does not start."""


class UnknownPage(CrawlschedError, LookupError):
    """The URL is not a page of this collection."""

    def __init__(self, url: str, collection: str) -> None:
        super().__init__(
            f"No page with the URL {url!r} is in the collection {collection!r}; "
            "check its spelling, or name another collection with --collection."
        )


class StoreError(CrawlschedError, RuntimeError):
    """The database cannot be used as it is; nothing in it was changed."""


class SchemaOutOfDate(StoreError):
    """The database's tables are not those of this version, or not crawlsched's at all."""


class CollectionInUse(StoreError):
    """Another running process owns this collection."""
