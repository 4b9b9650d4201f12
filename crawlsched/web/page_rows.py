"""Rows of pages for a table: some by their numbers, or those whose URL begins with something; never all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from crawlsched.store import Store, models
from crawlsched.store.database import among

__all__ = ["by_number", "search"]

_COLUMNS = ("page", "url", "state", "importance", "crawled_at", "changed_at", "first_seen", "n_crawls", "n_changes")
_MORE = ("n_errors", "change_rate", "change_rate_low", "change_rate_high", "expected_freshness", "pending_fingerprint")
# Rows that are looked at in one go, and seconds after which a search rests: the next page of it goes on. Some ten
# million URLs are read in five; whoever waits is told so.
_AT_ONCE = 20_000
_SEARCHED_FOR = 10.0


def by_number(store: Store, pages: Sequence[int]) -> list[dict[str, Any]]:
    """Give what is known of pages, in the order asked; one that is gone meanwhile is left out."""
    table = models.pages
    with store.database.reading() as connection:
        rows = connection.execute(
            select(*[table.c[name] for name in (*_COLUMNS, *_MORE)]).where(
                table.c.shard == store.key[0],
                table.c.collection == store.key[1],
                among(table.c.page, pages, connection.dialect.name),
            )
        )
        found = {row.page: row._asdict() for row in rows}
    return [found[page] for page in pages if page in found]


def search(store: Store, text: str, after: int, limit: int) -> tuple[list[dict[str, Any]], int | None]:
    """Give pages whose URL contains a text, in the order of their numbers, and where to go on (None: that is all).

    No index is kept for this, which every new page would pay for; so it rests after some seconds.
    """
    table = models.pages
    if after < 0 and (page := store.reader.find(text)) is not None:
        return by_number(store, [page]), None
    until, end = time.monotonic() + _SEARCHED_FOR, store.reader.next_page()
    found: list[int] = []
    pattern = table.c.url.contains(text, autoescape=True)
    while after < end - 1:
        with store.database.reading() as connection:
            rows = connection.execute(
                select(table.c.page)
                .where(table.c.shard == store.key[0], table.c.collection == store.key[1])
                .where(table.c.page > after, table.c.page <= after + _AT_ONCE, pattern)
                .order_by(table.c.page)
                .limit(limit - len(found))
            )
            found += [row.page for row in rows]
        if len(found) >= limit:
            return by_number(store, found), found[-1]
        after += _AT_ONCE
        if time.monotonic() > until and after < end - 1:
            return by_number(store, found), after
    return by_number(store, found), None
