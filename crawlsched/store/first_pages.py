"""First pages: which pages stand first in several orders, as of the last plan."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from crawlsched.store import models
from crawlsched.store.access import Access

__all__ = ["FirstPages"]


class FirstPages:
    """The first pages of a collection."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def put(self, ranked: Sequence[tuple[str, Sequence[int], Sequence[float]]]) -> None:
        """Keep the first pages of several orders, with their values; they replace those that are there."""
        table, key = models.first_pages, self._access.key

        def put(connection: Connection) -> None:
            for view, pages, values in ranked:
                connection.execute(delete(table).where(*self._access.own(table), table.c.view == view))
                rows = [
                    {"shard": key[0], "collection": key[1], "view": view, "place": place, "page": page, "value": value}
                    for place, (page, value) in enumerate(zip(pages, values, strict=True))
                ]
                if rows:
                    connection.execute(insert(table), rows)

        self._access.write(put)

    def read(self, view: str, offset: int = 0, limit: int = 100) -> list[tuple[int, float]]:
        """Give some of the first pages of an order as of the last plan, with their values."""
        table = models.first_pages
        wanted = select(table.c.page, table.c.value).where(*self._access.own(table), table.c.view == view)
        with self._access.database.reading() as connection:
            rows = connection.execute(wanted.where(table.c.place >= offset).order_by(table.c.place).limit(limit))
            return [(page, value) for page, value in rows]
