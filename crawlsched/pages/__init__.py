"""Pages: what is kept of each known page, as columns of arrays.

A page is a row number here; URLs stand in `page_index` alone. Imports columns. Begin reading with `pages`.
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
