"""Splitting: divide a collection among more shards, with all data of its pages; PostgreSQL only.

A collection of one process has a single shard. A collection can be split only while no process crawls it. If
splitting fails, the collection is not changed.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert, select, text, update

from crawlsched.exceptions import StoreError
from crawlsched.sharing import is_number_of_shards, shard_of
from crawlsched.store import models
from crawlsched.store.database import Database
from crawlsched.store.forgetting import host_of
from crawlsched.store.lease import require_idle, shards_of
from crawlsched.store.members import add_leases
from crawlsched.store.rows import json_like

__all__ = ["split"]

# Pages keep their numbers, since a new shard has no other pages. The rows of `pages` move last, since their hosts
# decide where rows of these tables move.
_OF_PAGES = ("page_traces", "page_texts", "announcements", "further_sources", "observations", "changes")
_MOVE_WITH_PAGES = (
    "UPDATE {table} t SET shard = h.shard FROM pages p JOIN moved_hosts h ON h.host = p.host"
    " WHERE t.collection = :collection AND p.collection = :collection AND p.shard = t.shard AND p.page = t.page"
    " AND h.shard <> t.shard"
)
# By table, the SQL for the host of a row. Only sources that are polled have a host.
_OF_HOSTS = {
    "pages": "t.host",
    "hosts": "t.host",
    "sources": "CASE WHEN t.kind IN ('sitemap', 'robots') THEN t.host END",
    "noise_masks": "split_part(split_part(ltrim(t.template, '/'), '/', 1), ' ', 1)",
}
_MOVE_WITH_HOSTS = (
    "UPDATE {table} t SET shard = h.shard FROM moved_hosts h"
    " WHERE t.collection = :collection AND h.host = {host} AND h.shard <> t.shard"
)
# Rows that every shard needs are copied to the new shards.
_COPY = (
    "INSERT INTO {table} ({columns}) SELECT s.shard, {others} FROM {table} t"
    " JOIN generate_series(:n_before, :n_after - 1) AS s(shard) ON s.shard % :n_before = t.shard"
    " WHERE t.collection = :collection AND {condition}"
)
_IS_OF_NO_HOST = "NOT EXISTS (SELECT 1 FROM moved_hosts h WHERE h.host = {host})"
_COPIED = {
    # Each new shard can use the plan that was made for all pages.
    **dict.fromkeys(("collections", "tombstones", "followers", "plans"), "true"),
    **{table: _IS_OF_NO_HOST.format(host=_OF_HOSTS[table]) for table in ("sources", "noise_masks")},
    "commands": "t.done_at IS NULL",
}
# A new shard must not use a page number that its old shard has used.
_GIVEN = (
    "UPDATE collections t SET pages_given = greatest(t.pages_given, (SELECT max(p.page) FROM pages p"
    " WHERE p.shard = t.shard AND p.collection = t.collection)) WHERE t.collection = :collection"
)
_UNKNOWN_SOURCE = (
    " t.collection = :collection AND t.source >= 0 AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.shard = t.shard"
    " AND s.collection = t.collection AND s.source = t.source)"
)
_AFTERWARDS = (
    "INSERT INTO request_templates (shard, collection, digest, data) SELECT DISTINCT p.shard, t.collection, t.digest,"
    " t.data FROM request_templates t JOIN pages p ON p.collection = t.collection AND p.template = t.digest"
    " AND p.shard % :n_before = t.shard WHERE t.collection = :collection AND p.shard >= :n_before",
    # A sitemap's announcements are not handed over to other shards, so pages of other shards lose this source.
    "UPDATE pages t SET source = -1, n_signals = 0, n_signals_total = 0, signalled_since = NULL, true_signals = 0,"
    f" false_signals = 0 WHERE{_UNKNOWN_SOURCE}",
    f"UPDATE observations t SET source = -1 WHERE{_UNKNOWN_SOURCE}",
    f"DELETE FROM announcements t WHERE{_UNKNOWN_SOURCE}",
    f"DELETE FROM further_sources t WHERE{_UNKNOWN_SOURCE}",
    "UPDATE sources t SET parent = NULL WHERE t.collection = :collection AND t.parent IS NOT NULL AND NOT EXISTS"
    " (SELECT 1 FROM sources s WHERE s.shard = t.shard AND s.collection = t.collection AND s.source = t.parent)",
    # The plan counts the pages of the old shards.
    "UPDATE plans SET data = (data::jsonb - 'page_counts')::text WHERE collection = :collection",
    "DELETE FROM leases WHERE collection = :collection",  # no shard has an owner now
)
_HOSTS = " UNION ".join(
    f"SELECT host FROM {table} WHERE collection = :collection" for table in ("pages", "hosts", "sources")
)
_COUNT = "SELECT shard, count(*) AS n FROM pages WHERE collection = :collection GROUP BY shard"


def split(database: Database, name: str, n_shards: int | None = None, rate: float = 1.0) -> dict[str, Any]:
    """Divide a collection among more shards, by default twice as many, and lock it so that no crawl starts meanwhile.

    `n_shards` is a power of two, at most 4096. `rate` is used if the collection had one process and its last crawl has
    stored no rate. After an error nothing is changed. Return the numbers of shards before and after, the rate
    of all processes together, and how many pages each shard has. A collection of one process counts as one shard.
    """
    if database.is_sqlite:
        raise StoreError(
            f"The collection {name!r} cannot be divided in an SQLite file; copy it to PostgreSQL first, with "
            "`crawlsched db copy`."
        )
    collections = models.collections
    with database.explained("written"), database.writing() as connection:
        wanted = select(collections.c.collection).where(collections.c.shard == 0, collections.c.name == name)
        number = connection.execute(wanted).scalar()
        if number is None:
            raise StoreError(f"The database {database.name!r} has no collection {name!r}.")
        # Until the transaction ends, these locks stop all processes that would claim shards or write. A renewal locks
        # rows in the same order.
        connection.execute(text("SET LOCAL lock_timeout = '15s'"))
        for table in (models.budgets, models.leases):
            locked = select(table.c.shard).where(table.c.collection == number).order_by(table.c.shard)
            connection.execute(locked.with_for_update())
        require_idle(database, connection, name)
        n_before = shards_of(connection, number)
        n_after = 2 * (n_before or 1) if n_shards is None else n_shards
        if not is_number_of_shards(n_after) or n_after <= (n_before or 1):
            raise StoreError(
                f"The collection {name!r} cannot be divided into {n_after}: it has {n_before or 'no'} shards, and "
                "takes a larger power of two, up to 4096."
            )
        rate = _share_rate(connection, number, n_after, is_shared=n_before is not None, rate=rate)
        n_pages = _move(connection, number, n_before or 1, n_after)
    with database.explained("written"), database.writing() as connection:
        # Without new statistics, PostgreSQL would read far too much to find one page.
        connection.execute(text("ANALYZE"))
    return {"n_before": n_before or 1, "n_after": n_after, "rate": rate, "n_pages": n_pages}


def _share_rate(connection: Connection, number: int, n_shards: int, *, is_shared: bool, rate: float) -> float:
    """Write the new number of shards, and return the rate of all processes together."""
    budgets, leases = models.budgets, models.leases
    if is_shared:
        of_all = budgets.c.shard == -1, budgets.c.collection == number
        changed = update(budgets).where(*of_all).values(n_shards=n_shards).returning(budgets.c.rate)
        return float(connection.execute(changed).scalar_one())
    left = connection.execute(select(leases.c.status).where(leases.c.collection == number)).scalar()
    status = json_like(left, {}, "the lease")
    rate = float(status.get("bandwidth") or rate)
    values = {"n_shards": n_shards, "rate": rate, "paused_since": status.get("paused_since")}
    connection.execute(insert(budgets).values(shard=-1, collection=number, **values))
    return rate


def _move(connection: Connection, number: int, n_before: int, n_after: int) -> tuple[int, ...]:
    """Move all rows to their shards, and return how many pages each shard has."""

    def do(statement: str, **parts: str) -> Any:
        numbers = {"collection": number, "n_before": n_before, "n_after": n_after}
        return connection.execute(text(statement.format(**parts)), numbers)

    do("CREATE TEMP TABLE moved_hosts (host text PRIMARY KEY, shard integer NOT NULL) ON COMMIT DROP")
    rows = [{"host": host, "shard": shard_of(host, n_after)} for host in do(_HOSTS).scalars()]
    if rows:
        connection.execute(text("INSERT INTO moved_hosts VALUES (:host, :shard)"), rows)
    do("ANALYZE moved_hosts")
    do(_GIVEN)
    for table in _OF_PAGES:
        do(_MOVE_WITH_PAGES, table=table)
    for table, host in _OF_HOSTS.items():
        do(_MOVE_WITH_HOSTS, table=table, host=host)
    for table, condition in _COPIED.items():
        # A position in the feed is valid only for the old shard's feed.
        names = [name for name in models.metadata.tables[table].c.keys()[1:] if not name.startswith("changes_")]
        columns, others = ", ".join(["shard", *names]), ", ".join(f"t.{name}" for name in names)
        do(_COPY, table=table, columns=columns, others=others, condition=condition)
    for statement in _AFTERWARDS:
        do(statement)
    counted = {row.shard: row.n for row in do(_COUNT)}
    n_pages = tuple(counted.get(shard, 0) for shard in range(n_after))
    add_leases(connection, number, n_pages)
    _address_anew(connection, number, n_after)
    return n_pages


def _address_anew(connection: Connection, number: int, n_shards: int) -> None:
    """Move rows that still wait in inboxes to the new shards."""
    table = models.inbox
    for row in connection.execute(select(table).where(table.c.collection == number)).all():
        data = json_like(row.data, {}, "what was handed over")
        found = data.get("page", data)
        urls = [found["url"]] if "url" in found else found.get("urls") or [""]
        shard = shard_of(found.get("host") or host_of(urls[0]), n_shards)
        if shard != row.shard:
            one = [table.c[name] == getattr(row, name) for name in ("shard", "collection", "sender", "number")]
            connection.execute(update(table).where(*one).values(shard=shard))
