"""Plans: the newest few of a collection, which the next crawl, and every command, begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, insert, select

from crawlsched.store import models
from crawlsched.store.access import Part
from crawlsched.store.commands import insert_numbered
from crawlsched.store.rows import json_like, to_json

__all__ = ["FirstPages", "Plans", "StoredPlan"]


class StoredPlan(NamedTuple):
    """A plan as it was kept."""

    id: int
    made_at: float
    data: dict[str, Any]


class Plans(Part):
    """The plans of a collection."""

    def save(self, data: dict[str, Any], now: float, keep: int = 5) -> int:
        """Keep a plan (JSON) and the newest few before it; gives its id."""
        access, table = self._access, models.plans
        values = {"made_at": now, "data": to_json(data)}
        number = insert_numbered(access, table.c.id, values)
        old = delete(table).where(*access.own(table), table.c.id <= number - keep)
        access.write(lambda connection: connection.execute(old))
        return number

    def newest(self, after: int = -1) -> StoredPlan | None:
        """Give the newest plan; None if there is none with an id above `after`."""
        table = models.plans
        query = select(table.c.id, table.c.made_at, table.c.data).where(*self._access.own(table), table.c.id > after)
        for row in self._access.rows(query.order_by(table.c.id.desc()).limit(1)):
            if data := json_like(row.data, {}, f"the plan number {row.id}"):
                return StoredPlan(row.id, row.made_at, data)
        return None


class FirstPages(Part):
    """The first pages of a collection."""

    def put(self, ranked: Sequence[tuple[str, Sequence[int], Sequence[float]]]) -> None:
        """Keep the first pages of several orders, with their values; they replace those that are there."""
        access, table = self._access, models.first_pages

        def put(connection: Connection) -> None:
            for view, pages, values in ranked:
                connection.execute(delete(table).where(*access.own(table), table.c.view == view))
                places = enumerate(zip(pages, values, strict=True))
                rows = [access.row(view=view, place=place, page=page, value=value) for place, (page, value) in places]
                if rows:
                    connection.execute(insert(table), rows)

        access.write(put)

    def read(self, view: str, offset: int = 0, limit: int = 100) -> list[tuple[int, float]]:
        """Give some of the first pages of an order as of the last plan, with their values."""
        table = models.first_pages
        wanted = select(table.c.page, table.c.value).where(*self._access.own(table), table.c.view == view)
        wanted = wanted.where(table.c.place >= offset).order_by(table.c.place).limit(limit)
        return [(page, value) for page, value in self._access.rows(wanted)]
