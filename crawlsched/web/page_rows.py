"""Rows of pages for a table: some by their numbers, or the first whose URL contains a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from crawlsched.pages import STATE_NAMES
from crawlsched.store import Store, models
from crawlsched.store.database import among
from crawlsched.store.listing import Condition, listed

__all__ = ["by_number", "containing"]

_COLUMNS = ("url", "state", "crawled_at", "n_crawls", "n_changes", "change_rate", "expected_freshness")


def _state(number: int) -> str:
    return STATE_NAMES[number] if 0 <= number < len(STATE_NAMES) else "?"


def by_number(store: Store, pages: Sequence[int]) -> list[dict[str, Any]]:
    """Return what is known of pages, in the order asked; one that is gone meanwhile is left out."""
    table, (shard, collection) = models.pages, store.key
    with store.database.reading() as connection:
        among_these = among(table.c.page, pages, connection.dialect.name)
        wanted = select(*[table.c[name] for name in ("page", *_COLUMNS)])
        rows = connection.execute(wanted.where(table.c.shard == shard, table.c.collection == collection, among_these))
        found = {row.page: {**row._asdict(), "state": _state(row.state)} for row in rows}
    return [found[page] for page in pages if page in found]


def containing(store: Store, text: str, limit: int) -> list[dict[str, Any]]:
    """Return the first pages whose URL contains a text; an index for this would cost every new page something."""
    if (page := store.reader.find(text)) is not None:
        return by_number(store, [page])
    with store.database.reading() as connection:
        rows = listed(connection, store.key, "pages", _COLUMNS, [Condition("url", "~", f"*{text}*")], None, limit)
        return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
