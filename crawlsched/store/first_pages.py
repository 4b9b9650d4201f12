"""First pages: which pages stand first in several orders, as of the last plan."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, select

from crawlsched.store import models
from crawlsched.store.statements import insert

__all__ = ["put", "read"]

Key = tuple[int, int]


def put(connection: Connection, key: Key, view: str, pages: Sequence[int], values: Sequence[float]) -> None:
    """Replace a view."""
    table = models.first_pages
    own = (table.c.shard == key[0], table.c.collection == key[1])
    connection.execute(delete(table).where(*own, table.c.view == view))
    names = ("shard", "collection", "view", "place", "page", "value")
    statement = insert(table, names, connection.dialect)
    columns: dict[str, Any] = {
        **dict(zip(names, (*key, view), strict=False)),
        "place": list(range(len(pages))),
        "page": list(pages),
        "value": list(values),
    }
    if pages:
        connection.exec_driver_sql(statement.sql, statement.rows(columns, len(pages)))


def read(connection: Connection, key: Key, view: str, offset: int, limit: int) -> list[tuple[int, float]]:
    """Give some pages of a view with their values."""
    table = models.first_pages
    rows = connection.execute(
        select(table.c.page, table.c.value)
        .where(table.c.shard == key[0], table.c.collection == key[1], table.c.view == view, table.c.place >= offset)
        .order_by(table.c.place)
        .limit(limit)
    )
    return [(page, value) for page, value in rows]
