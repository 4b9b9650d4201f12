"""Forgetting: pages deleted for good, and old observations deleted after their time; in slices, never in one go."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, delete, func, select, update

from crawlsched.store import changes, models
from crawlsched.store.database import Database, among
from crawlsched.store.partitions import is_deleted
from crawlsched.store.rows import digest, to_json, url_digest
from crawlsched.store.statements import put
from crawlsched.store.tombstones import KINDS, pattern

__all__ = [
    "FORGET_KINDS",
    "delete_pages",
    "delete_templates",
    "delete_unused_templates",
    "leave_tombstone",
    "matching",
    "prune",
    "prune_texts",
    "rewrite_templates",
    "take_tombstone",
    "unused_templates",
]

Key = tuple[int, int]
_SLICE = 1000
#: What `forget` can be told: a kind of tombstone, or everything.
FORGET_KINDS = (*KINDS, "collection")


def matching(database: Database, key: Key, kind: str, value: str) -> Iterator[np.ndarray]:
    """Give the numbers of the pages to forget, a slice at a time."""
    if kind not in FORGET_KINDS:
        raise ValueError(f"kind is {kind!r}; it has to be one of {', '.join(FORGET_KINDS)}.")
    page = models.pages
    wanted = select(page.c.page, page.c.url).where(page.c.shard == key[0], page.c.collection == key[1])
    accepts: Callable[[str], object] = bool
    if kind == "url":
        wanted = wanted.where(page.c.url_digest == url_digest(value), page.c.url == value)
    elif kind == "host":
        wanted = wanted.where(page.c.host == value.lower())
    elif kind == "pattern":
        accepts = pattern(value).fullmatch
    last = -1
    while rows := _after(database, wanted, last):
        last = rows[-1][0]
        found = [number for number, url in rows if accepts(url)]
        if found:
            yield np.array(found, dtype=np.int64)


def _after(database: Database, wanted: Select[Any], last: int) -> list[Any]:
    with database.reading() as connection:
        query = wanted.where(models.pages.c.page > last).order_by(models.pages.c.page).limit(_SLICE)
        return list(connection.execute(query).all())


def leave_tombstone(connection: Connection, key: Key, kind: str, value: str, now: float) -> None:
    """Remember that something was forgotten on purpose."""
    own = {"shard": key[0], "collection": key[1]}
    stone = {"kind": kind, "digest": digest(value), "value": value, "created_at": now}
    put(connection, models.tombstones, [{**own, **stone}], "insert")


def take_tombstone(connection: Connection, key: Key, kind: str, value: str) -> None:
    """Let what was forgotten come back."""
    stone = models.tombstones
    own = (stone.c.shard == key[0], stone.c.collection == key[1])
    connection.execute(delete(stone).where(*own, stone.c.kind == kind, stone.c.digest == digest(value)))


def delete_pages(connection: Connection, key: Key, pages: np.ndarray) -> None:
    """Delete pages and all that is known of them."""
    changes.remember_given(connection, key)
    tables = (
        *(models.observations, models.changes, models.announcements, models.further_sources),
        *(models.page_traces, models.page_texts, models.pages),
    )
    for table in tables:
        connection.execute(
            delete(table).where(
                table.c.shard == key[0],
                table.c.collection == key[1],
                among(table.c.page, pages, connection.dialect.name),
            )
        )


def delete_unused_templates(connection: Connection, key: Key) -> None:
    """Delete the request templates that no page names any more: they may hold cookies and headers."""
    template, page = models.request_templates, models.pages
    used = select(page.c.template).where(
        page.c.shard == key[0], page.c.collection == key[1], page.c.template.is_not(None)
    )
    connection.execute(
        delete(template).where(
            template.c.shard == key[0], template.c.collection == key[1], template.c.digest.not_in(used)
        )
    )


def unused_templates(connection: Connection, key: Key, limit: int) -> list[bytes]:
    """Give at most `limit` request templates that no page names."""
    template, page = models.request_templates, models.pages
    known = select(template.c.digest).where(template.c.shard == key[0], template.c.collection == key[1])
    used = select(page.c.template).where(
        page.c.shard == key[0], page.c.collection == key[1], page.c.template.is_not(None)
    )
    return list(connection.execute(known.except_(used).limit(limit)).scalars())


def delete_templates(connection: Connection, key: Key, digests: list[bytes]) -> None:
    """Delete request templates."""
    template = models.request_templates
    own = (template.c.shard == key[0], template.c.collection == key[1])
    connection.execute(delete(template).where(*own, template.c.digest.in_(digests)))


def rewrite_templates(
    connection: Connection, key: Key, other: Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
) -> int:
    """Write other data into request templates (None: leave one as it is); give how many those were."""
    template, rewritten = models.request_templates, 0
    own = (template.c.shard == key[0], template.c.collection == key[1])
    if connection.dialect.name == "sqlite":  # what is struck out is not to stand in the file any more
        connection.exec_driver_sql("PRAGMA secure_delete=ON")
    for name, text in connection.execute(select(template.c.digest, template.c.data).where(*own)).all():
        try:
            data = other(json.loads(text))
        except (ValueError, TypeError, AttributeError, IndexError, RecursionError):  # damaged; who reads it says so
            continue
        if data is not None:
            connection.execute(update(template).where(*own, template.c.digest == name).values(data=to_json(dict(data))))
            rewritten += 1
    return rewritten


def delete_collection(connection: Connection, key: Key) -> None:
    """Delete what a collection holds besides its pages; its name, its lease and its commands stay."""
    for table in (
        *(models.sources, models.hosts, models.plans, models.tombstones, models.request_templates),
        *(models.noise_masks, models.samples, models.first_pages),
    ):
        connection.execute(delete(table).where(table.c.shard == key[0], table.c.collection == key[1]))


def prune_texts(connection: Connection, key: Key, share: float) -> None:
    """Delete about a share of the texts, at least one and at most a slice, those first that were seen longest ago."""
    table = models.page_texts
    own = (table.c.shard == key[0], table.c.collection == key[1])
    n = connection.execute(select(func.count()).select_from(table).where(*own)).scalar_one()
    limit = min(1 + int(share * n), _SLICE)
    oldest = select(table.c.page).where(*own).order_by(table.c.seen_at).limit(limit)
    connection.execute(delete(table).where(*own, table.c.page.in_(oldest)))


def prune(connection: Connection, key: Key, before: float, limit: int) -> int:
    """Delete at most `limit` of the oldest observations and changes before a time, and commands done before it."""
    deleted = 0
    for table, time in (
        (models.observations, models.observations.c.time),
        (models.commands, models.commands.c.done_at),
    ):
        own = (table.c.shard == key[0], table.c.collection == key[1])
        is_old = time < before
        if table is models.observations and connection.dialect.name == "postgresql":
            is_old = is_deleted(before)
        oldest = select(table.c.id).where(*own, is_old).order_by(time).limit(limit)
        result = connection.execute(delete(table).where(*own, table.c.id.in_(oldest)))
        deleted = max(deleted, result.rowcount)
    return max(deleted, changes.prune(connection, key, before, limit))
