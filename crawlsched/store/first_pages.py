"""First pages: which pages stand first in several orders, as of the last plan."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from crawlsched.store import models

__all__ = ["put", "read"]

Key = tuple[int, int]


def put(connection: Connection, key: Key, view: str, pages: Sequence[int], values: Sequence[float]) -> None:
    """Replace a view."""
    table = models.first_pages
    own = (table.c.shard == key[0], table.c.collection == key[1])
    connection.execute(delete(table).where(*own, table.c.view == view))
    first = {"shard": key[0], "collection": key[1], "view": view}
    rows = [
        {**first, "place": place, "page": page, "value": value}
        for place, (page, value) in enumerate(zip(pages, values, strict=True))
    ]
    if rows:
        connection.execute(insert(table), rows)


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
