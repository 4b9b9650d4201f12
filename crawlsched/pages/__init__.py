"""Pages: the data of each known page, as columns of arrays.

A page is a row number here. Only `page_index` has the fingerprints of requests. Begin reading with `pages`.
"""

from crawlsched.pages.pages import (
    ERROR,
    FREE,
    GONE,
    LAST_TRIES,
    LIVE,
    MOVED,
    NEW,
    REFUSED,
    STATE_NAMES,
    Pages,
    check_importance,
)

__all__ = [
    "ERROR",
    "FREE",
    "GONE",
    "LAST_TRIES",
    "LIVE",
    "MOVED",
    "NEW",
    "REFUSED",
    "STATE_NAMES",
    "Pages",
    "check_importance",
]
