"""The rows of the change feed, which are read from a position on, and deleted by age."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, select, update

from crawlsched.store import models
from crawlsched.store.rows import own, same

__all__ = [
    "DeliveredChange",
    "after",
    "before_time",
    "kept",
    "keys_of",
    "newest",
    "next_number",
    "prune",
]

Key = tuple[int, int]

# Outcomes of visits that brought no content.
_FAILED = ("gone", "error", "refused", "wrong", "dropped")


class DeliveredChange(NamedTuple):
    """A row of the feed, with data of the visit that found the change. The data are None if the visit was deleted."""

    id: int
    page: int
    url: str
    time: float
    kind: str
    found_at: float | None
    status: int | None
    changed_share: float | None
    similarity: float | None
    since: float | None
    target: str | None


def keys_of(connection: Connection, name: str) -> list[Key]:
    """Return a collection's keys in all shards of the database, in the order of shards."""
    table = models.collections
    rows = connection.execute(select(table.c.shard, table.c.collection).where(table.c.name == name))
    return sorted((shard, collection) for shard, collection in rows)


def kept(connection: Connection, key: Key) -> tuple[int, int]:
    """Return the number of the last change that was deleted by age, and the number of the newest change (0: none)."""
    table, changes = models.collections, models.changes
    wanted = select(table.c.changes_pruned, table.c.changes_given).where(*own(table, key))
    pruned, given = connection.execute(wanted).one()
    largest = connection.execute(select(func.max(changes.c.id)).where(*own(changes, key))).scalar_one()
    return pruned or 0, max(pruned or 0, given or 0, largest or 0)


def next_number(connection: Connection, key: Key) -> int:
    """Return the number of the next change: the first number that was never used."""
    return kept(connection, key)[1] + 1


def after(connection: Connection, key: Key, position: int, limit: int) -> list[DeliveredChange]:
    """Return at most `limit` changes after a position, in their order."""
    return list(_read(connection, key, models.changes.c.id > position, models.changes.c.id, limit))


def newest(connection: Connection, key: Key, limit: int) -> list[DeliveredChange]:
    """Return the newest changes, newest first."""
    return list(_read(connection, key, models.changes.c.id >= 0, models.changes.c.id.desc(), limit))


def _read(connection: Connection, key: Key, which: Any, order: Any, limit: int) -> Iterator[DeliveredChange]:
    change, page, visit = models.changes, models.pages, models.observations
    joined = change.join(page, same(change, page, "page")).outerjoin(
        visit, same(change, visit) & (visit.c.id == change.c.observation)
    )
    rows = connection.execute(
        select(
            *(change.c.id, change.c.page, page.c.url, change.c.time, change.c.kind, visit.c.time.label("found_at")),
            *(visit.c.status, visit.c.changed_share, visit.c.similarity, page.c.moved_to.label("target")),
        )
        .select_from(joined)
        .where(*own(change, key), which)
        .order_by(order)
        .limit(limit)
    )
    for row in rows:
        kind, since = models.KINDS[row.kind], None
        if kind not in ("new", "changed") and row.found_at is not None:
            since = _fails_since(connection, key, row.page, row.found_at)
        target = row.target if kind == "moved" else None
        yield DeliveredChange(**{**row._asdict(), "kind": kind, "since": since, "target": target})


def _fails_since(connection: Connection, key: Key, page: int, time: float) -> float:
    """Return when a page began to fail, if its last visits before `time` failed; otherwise `time`."""
    visit = models.observations
    before = (*own(visit, key), visit.c.page == page, visit.c.time < time)
    failed = visit.c.outcome.in_(_FAILED)
    reached = select(func.max(visit.c.time)).where(*before, ~failed, visit.c.outcome != "probed")
    last = connection.execute(reached).scalar_one()
    first = select(func.min(visit.c.time)).where(*before, failed, visit.c.time > (0.0 if last is None else last))
    found = connection.execute(first).scalar_one()
    return time if found is None else float(found)


def before_time(connection: Connection, key: Key, time: float) -> int:
    """Return the position just before the first change at or after a time."""
    table = models.changes
    older = select(table.c.id).where(*own(table, key), table.c.time < time).order_by(table.c.id.desc()).limit(1)
    return max(connection.execute(older).scalar() or 0, kept(connection, key)[0])


def prune(connection: Connection, key: Key, before: float, limit: int) -> int:
    """Delete at most `limit` of the oldest changes before a time; followers that have not read them get an error."""
    table = models.changes
    oldest = select(table.c.id, table.c.time).where(*own(table, key)).order_by(table.c.id).limit(limit)
    old = [number for number, time in connection.execute(oldest) if time < before]
    if not old:
        return 0
    connection.execute(delete(table).where(*own(table, key), table.c.id <= old[-1]))
    owner = models.collections
    connection.execute(update(owner).where(*own(owner, key)).values(changes_pruned=old[-1]))
    return len(old)
