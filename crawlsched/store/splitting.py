"""Splitting: a collection divided among more shards, with all that was learned of its pages; PostgreSQL only.

A collection of one process is one with a single shard. Whoever splits it finds nobody crawling, and all is done in one
transaction: it is divided, or it is as it was.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select, text, update

from crawlsched.exceptions import StoreError
from crawlsched.sharing import is_number_of_shards, shard_of
from crawlsched.store import models
from crawlsched.store.database import Database
from crawlsched.store.lease import require_idle, shards_of
from crawlsched.store.members import add_leases
from crawlsched.store.rows import json_like
from crawlsched.store.tombstones import host_of

__all__ = ["Split", "split"]

_OF_PAGES = ("page_traces", "page_texts", "announcements", "further_sources", "observations", "changes")
# A page keeps its number: a shard that is new had none, so none is there twice. Pages move last, for they say where to.
_MOVE_PAGES = (
    "UPDATE {table} t SET shard = h.shard FROM pages p JOIN moved_hosts h ON h.host = p.host"
    " WHERE t.collection = :collection AND p.collection = :collection AND p.shard = t.shard AND p.page = t.page"
    " AND h.shard <> t.shard"
)
_MOVE_BY_HOST = (
    "UPDATE pages t SET shard = h.shard FROM moved_hosts h"
    " WHERE t.collection = :collection AND h.host = t.host AND h.shard <> t.shard",
    # Sources that are asked belong to their hosts, and so do the dates of theirs that went back.
    "UPDATE hosts t SET shard = h.shard FROM moved_hosts h"
    " WHERE t.collection = :collection AND h.host = t.host AND h.shard <> t.shard",
    "UPDATE sources t SET shard = h.shard FROM moved_hosts h WHERE t.collection = :collection AND h.host = t.host"
    " AND h.shard <> t.shard AND t.kind IN ('sitemap', 'robots', 'backwards')",
    "UPDATE noise_masks t SET shard = h.shard FROM moved_hosts h WHERE t.collection = :collection"
    " AND h.shard <> t.shard AND h.host = CASE WHEN t.template LIKE '//%'"
    " THEN split_part(substr(t.template, 3), ' ', 1) ELSE split_part(t.template, '/', 1) END",
)
# The names of senders are known in every shard, and so is what the others have to know.
_COPY = (
    "INSERT INTO {table} ({columns}) SELECT s.shard, {others} FROM {table} t"
    " JOIN generate_series(:n_before, :n_after - 1) AS s(shard) ON s.shard % :n_before = t.shard"
    " WHERE t.collection = :collection AND {condition}"
)
_COPIED = {
    "collections": "true",
    "sources": "t.kind NOT IN ('sitemap', 'robots', 'backwards')",
    "noise_masks": "NOT EXISTS (SELECT 1 FROM moved_hosts h WHERE h.host = CASE WHEN t.template LIKE '//%'"
    " THEN split_part(substr(t.template, 3), ' ', 1) ELSE split_part(t.template, '/', 1) END)",
    "tombstones": "true",
    "followers": "true",
    # A plan of all pages is as good for some of them.
    "plans": "true",
    "commands": "t.done_at IS NULL",
}
# A shard gives no number to a page that was given where its pages come from.
_GIVEN = (
    "UPDATE collections t SET pages_given = greatest(t.pages_given, (SELECT max(p.page) FROM pages p"
    " WHERE p.shard = t.shard AND p.collection = t.collection)) WHERE t.collection = :collection"
)
_COPY_TEMPLATES = (
    "INSERT INTO request_templates (shard, collection, digest, data) SELECT DISTINCT p.shard, t.collection, t.digest,"
    " t.data FROM request_templates t JOIN pages p ON p.collection = t.collection AND p.template = t.digest"
    " AND p.shard % :n_before = t.shard WHERE t.collection = :collection AND p.shard >= :n_before"
)
_UNKNOWN_SOURCE = (
    " t.collection = :collection AND t.source >= 0 AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.shard = t.shard"
    " AND s.collection = t.collection AND s.source = t.source)"
)
# What a sitemap says of other shards' pages is not handed over, so they are pages that nobody announces.
_FORGET_SOURCES = (
    "UPDATE pages t SET source = -1, n_signals = 0, n_signals_total = 0, signalled_since = NULL, true_signals = 0,"
    f" false_signals = 0 WHERE{_UNKNOWN_SOURCE}",
    f"UPDATE observations t SET source = -1 WHERE{_UNKNOWN_SOURCE}",
    f"DELETE FROM announcements t WHERE{_UNKNOWN_SOURCE}",
    f"DELETE FROM further_sources t WHERE{_UNKNOWN_SOURCE}",
    "UPDATE sources t SET parent = NULL WHERE t.collection = :collection AND t.parent IS NOT NULL AND NOT EXISTS"
    " (SELECT 1 FROM sources s WHERE s.shard = t.shard AND s.collection = t.collection AND s.source = t.parent)",
)
_WITH_HOSTS = ("pages", "hosts", "sources")
_COUNT = "SELECT shard, count(*) AS n FROM pages WHERE collection = :collection GROUP BY shard"


class Split(NamedTuple):
    """What `split` has done."""

    n_before: int  # shards; 1 before: it belonged to one process
    n_after: int
    rate: float  # requests per second of all processes together
    n_pages: tuple[int, ...]  # of each shard


class _Division(NamedTuple):
    """One collection on its way from some shards to more, inside its transaction."""

    connection: Connection
    number: int
    n_before: int
    n_after: int

    def do(self, statement: str) -> Any:
        """Execute a statement of this module."""
        numbers = {"collection": self.number, "n_before": self.n_before, "n_after": self.n_after}
        return self.connection.execute(text(statement), numbers)


def split(database: Database, name: str, n_shards: int | None = None, rate: float = 1.0) -> Split:
    """Divide a collection among more shards (by default twice as many) while nobody crawls it, or can begin to.

    The number is a power of two, at most 4096. `rate` counts if it belonged to one process whose last crawl has left
    none. Where anything is wrong, nothing is changed.
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
        _lock(database, connection, name, number)
        n_before = shards_of(connection, number)
        n_after = 2 * (n_before or 1) if n_shards is None else n_shards
        if not is_number_of_shards(n_after) or n_after <= (n_before or 1):
            has = "none" if n_before is None else f"{n_before} of them"
            raise StoreError(
                f"The collection {name!r} cannot be divided into {n_after} shards; it has {has}, and takes a larger "
                "power of two, up to 4096."
            )
        division = _Division(connection, number, n_before or 1, n_after)
        rate = _share_rate(division, is_shared=n_before is not None, rate=rate)
        _move(division)
    with database.explained("written"), database.writing() as connection:
        # Without statistics the server reads far too much to find one page.
        connection.execute(text("ANALYZE"))
        return Split(n_before or 1, n_after, rate, tuple(_counted(connection, number, n_after)))


def _counted(connection: Connection, collection: int, n_shards: int) -> list[int]:
    """Count the pages of each shard."""
    counted = {row.shard: row.n for row in connection.execute(text(_COUNT), {"collection": collection})}
    return [counted.get(shard, 0) for shard in range(n_shards)]


def _lock(database: Database, connection: Connection, name: str, number: int) -> None:
    """Keep everybody from claiming and writing until the end; refuse if somebody crawls."""
    connection.execute(text("SET LOCAL lock_timeout = '15s'"))
    # In the order in which a renewal locks them.
    for table in (models.budgets, models.leases):
        locked = select(table.c.shard).where(table.c.collection == number).order_by(table.c.shard).with_for_update()
        connection.execute(locked)
    require_idle(database, connection, name)


def _share_rate(division: _Division, *, is_shared: bool, rate: float) -> float:
    """Write down how many shards there are from now on, and return the rate of all together."""
    connection, budgets, leases = division.connection, models.budgets, models.leases
    of_all = budgets.c.shard == -1, budgets.c.collection == division.number
    if is_shared:
        changed = update(budgets).where(*of_all).values(n_shards=division.n_after).returning(budgets.c.rate)
        return float(connection.execute(changed).scalar_one())
    left = select(leases.c.status).where(leases.c.collection == division.number)
    status = json_like(connection.execute(left).scalar(), {}, "the lease")
    rate = float(status.get("bandwidth") or rate)
    key = {"shard": -1, "collection": division.number}
    values = {"n_shards": division.n_after, "rate": rate, "paused_since": status.get("paused_since")}
    connection.execute(insert(budgets).values(**key, **values))
    return rate


def _move(division: _Division) -> None:
    _find_hosts(division)
    division.do(_GIVEN)
    for statement in (*(_MOVE_PAGES.format(table=table) for table in _OF_PAGES), *_MOVE_BY_HOST):
        division.do(statement)
    for table, condition in _COPIED.items():
        # How far the feed was read and deleted is of its own shard.
        names = [name for name in models.metadata.tables[table].c.keys()[1:] if not name.startswith("changes_")]
        columns, others = ", ".join(["shard", *names]), ", ".join(f"t.{name}" for name in names)
        division.do(_COPY.format(table=table, columns=columns, others=others, condition=condition))
    for statement in (_COPY_TEMPLATES, *_FORGET_SOURCES):
        division.do(statement)
    # Which says how many pages there were before.
    division.do("UPDATE plans SET data = (data::jsonb - 'page_counts')::text WHERE collection = :collection")
    division.do("DELETE FROM first_pages WHERE collection = :collection")  # a plan makes them anew
    division.do("DELETE FROM leases WHERE collection = :collection")  # nobody owns anything
    n_pages = _counted(division.connection, division.number, division.n_after)
    add_leases(division.connection, division.number, n_pages)
    _address_anew(division)


def _find_hosts(division: _Division) -> None:
    """Make the table of hosts and their new shards, for what is done by SQL."""
    division.do("CREATE TEMP TABLE moved_hosts (host text PRIMARY KEY, shard integer NOT NULL) ON COMMIT DROP")
    named = " UNION ".join(f"SELECT host FROM {table} WHERE collection = :collection" for table in _WITH_HOSTS)
    hosts = division.do(named).scalars()
    rows = [{"host": host, "shard": shard_of(host, division.n_after)} for host in hosts]
    if rows:
        division.connection.execute(text("INSERT INTO moved_hosts VALUES (:host, :shard)"), rows)
    division.do("ANALYZE moved_hosts")


def _address_anew(division: _Division) -> None:
    """Send what was handed over, and not taken in yet, on to the new shards."""
    connection, table = division.connection, models.inbox
    for row in connection.execute(select(table).where(table.c.collection == division.number)).all():
        data = json_like(row.data, {}, "what was handed over")
        urls = [data["url"]] if "url" in data else data.get("urls") or [""]
        shard = shard_of(data.get("host") or host_of(urls[0]), division.n_after)
        if shard != row.shard:
            one = [table.c[name] == getattr(row, name) for name in ("shard", "collection", "sender", "number")]
            connection.execute(update(table).where(*one).values(shard=shard))
