"""Members: the rows by which several processes share one collection and one rate; PostgreSQL only.

`crawlsched.sharing` has the rules, and this module applies them in the database. Each renewal calls a function in the
server. The function locks one row in ``budgets``, so renewals run one after the other.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, extract, func, insert, select, text, update

import crawlsched
from crawlsched.exceptions import CollectionInUse, StoreError
from crawlsched.sharing import LEASE, Answer, Renewal
from crawlsched.store import models
from crawlsched.store.batch import Outgoing
from crawlsched.store.database import Database
from crawlsched.store.lease import NOT_LONG_IDLE, Lease, process_has_ended
from crawlsched.store.reading import Part
from crawlsched.store.rows import OWN, among, json_like, own, put, to_json
from crawlsched.store.schema import ADVISORY_LOCK
from crawlsched.store.store import Store

__all__ = [
    "MemberSeen",
    "Seen",
    "ShardSeen",
    "SharedCollection",
    "add_leases",
    "application_of",
    "new_token",
]

# Rows of dead members are deleted after this time; until then `crawlsched status` shows them.
_KEPT_FOR = timedelta(hours=1).total_seconds()
_EMPTY_LEASE: dict[str, Any] = {
    **{"token": "", "host": "", "machine": "", "pid": 0, "process_started": "", "spider": ""},
    **{"started_at": 0.0, "heartbeat_at": 0.0, "released_at": 0.0, "status": "{}"},
}
_RENEW = text(
    "SELECT answer, shards, epochs, moment, paused FROM crawlsched_renew(CAST(:collection AS integer), :member,"
    " CAST(:number AS bigint), CAST(:using AS double precision), CAST(:wants AS double precision),"
    " CAST(:claims AS integer[]), CAST(:lease AS double precision), CAST(:about AS json), :status,"
    " CAST(:at AS double precision), CAST(:started_at AS double precision))"
)
# The limit is for each shard, so that a shard with many rows does not block the others.
_WAITING = text(
    "SELECT i.shard, i.sender, i.number, i.kind, i.data, i.created_at"
    " FROM unnest(CAST(:shards AS integer[])) AS s(shard), LATERAL"
    " (SELECT * FROM inbox WHERE inbox.shard = s.shard AND inbox.collection = :collection"
    " ORDER BY inbox.created_at LIMIT :limit) AS i ORDER BY i.created_at"
)
_MANY_WAIT = text(
    "SELECT count(*) FROM (SELECT 1 FROM leases l JOIN inbox i ON i.shard = l.shard AND i.collection = l.collection"
    " WHERE l.collection = :collection AND l.ready = 1 AND l.member IS NOT NULL LIMIT :limit) AS waiting"
)


class MemberSeen(NamedTuple):
    """The row of a member."""

    token: str
    host: str
    machine: str
    pid: int
    process_started: str
    spider: str
    version: str
    granted: float
    expires_at: float
    status: dict[str, Any]

    @property
    def has_ended(self) -> bool:
        """Whether the member's process is known to have ended. This can only be known on the same machine."""
        return process_has_ended(self.machine, self.pid, self.process_started)

    @property
    def renewed_at(self) -> float:
        """The time of the member's last renewal, by the database's clock."""
        return self.expires_at - LEASE


class ShardSeen(NamedTuple):
    """The row of a shard."""

    member: str | None
    epoch: int
    ready: bool
    n_pages: int


class Seen(NamedTuple):
    """A shared collection at one moment."""

    now: float  # by the database's clock
    rate: float
    paused_since: float | None
    members: dict[str, MemberSeen]
    shards: dict[int, ShardSeen]
    pass_since: float | None = None

    def is_alive(self, member: str | None) -> bool:
        """Whether a member's lease is valid."""
        return member in self.members and self.members[member].expires_at > self.now


class SharedCollection(Part):
    """One collection that several processes crawl; made by `SharedCollection.open`."""

    def __init__(self, database: Database, name: str, number: int, n_shards: int) -> None:
        super().__init__(database, (-1, number))  # rows of the whole collection have shard -1
        self.name = name
        self.number = number
        self.n_shards = n_shards

    @classmethod
    def open(cls, database: Database, name: str, n_shards: int | None = None, rate: float = 1.0) -> SharedCollection:
        """Open a shared collection; if `n_shards` is given, make a missing collection, with this `rate`."""
        if database.is_sqlite:
            raise StoreError(
                "CRAWLSCHED_SHARDS needs PostgreSQL, for several processes cannot share an SQLite file; "
                "name a server with CRAWLSCHED_DATABASE_URL, or set CRAWLSCHED_SHARDS = None."
            )
        with database.reading() as connection:
            found = _find(connection, database, name)
        if found is None:
            if n_shards is None:
                raise StoreError(f"The database {database.name!r} has no collection {name!r} that processes share.")
            found = cls._make(database, name, n_shards, rate)
        return cls(database, name, *found)

    @staticmethod
    def _make(database: Database, name: str, n_shards: int, rate: float) -> tuple[int, int]:
        with database.explained("written"), database.writing() as connection:
            connection.exec_driver_sql(NOT_LONG_IDLE)
            connection.execute(select(func.pg_advisory_xact_lock(ADVISORY_LOCK + 1)))  # others may make it, too
            if (found := _find(connection, database, name)) is not None:
                return found
            highest = connection.execute(select(func.max(models.collections.c.collection))).scalar()
            number = (highest or 0) + 1
            shards = [{"shard": shard, "collection": number} for shard in range(n_shards)]
            connection.execute(insert(models.collections), [{**key, "name": name} for key in shards])
            add_leases(connection, number, [0] * n_shards)
            connection.execute(insert(models.budgets).values(shard=-1, collection=number, n_shards=n_shards, rate=rate))
        return number, n_shards

    def _at_once(self, change: Any, **values: Any) -> Any:
        """Execute one statement, which PostgreSQL commits by itself, and return its first row."""
        with self.database.explained("written"), self.database.at_once() as connection:
            result = connection.execute(change, values)
            return result.first() if result.returns_rows else None

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self.database.explained("written"), self.database.writing() as connection:
            connection.exec_driver_sql(NOT_LONG_IDLE)
            yield connection

    def store(self, shard: int) -> Store:
        """Return the store of a shard; all shards of this process share their connections."""
        return Store(self.database, self.name, (shard, self.number))

    def look(self) -> Seen:
        """Read members and shards without a lock, so both may be outdated; only `renew` limits the sum of the rates."""
        with self.database.reading() as connection:
            now = self.database.clock(connection)
            budgets, members, leases = models.budgets, models.members, models.leases
            budget = connection.execute(select(budgets).where(*self.own(budgets))).one()
            if budget.n_shards != self.n_shards:
                raise StoreError(
                    f"The collection {self.name!r} was divided into {budget.n_shards} shards, and this process knows "
                    f"of {self.n_shards}; start it again."
                )
            wanted = select(*[members.c[name] for name in MemberSeen._fields]).where(*self.own(members))
            rows = connection.execute(wanted).all()
            wanted = select(leases.c.shard, *[leases.c[name] for name in ShardSeen._fields])
            wanted = wanted.where(leases.c.collection == self.number).order_by(leases.c.shard)
            shards = connection.execute(wanted).all()
        seen = (MemberSeen(*row)._replace(status=json_like(row.status, {}, "a member's status")) for row in rows)
        return Seen(
            now,
            budget.rate,
            budget.paused_since,
            {member.token: member for member in seen},
            {row.shard: ShardSeen(row.member, row.epoch, bool(row.ready), row.n_pages) for row in shards},
            budget.pass_since,
        )

    def renew(
        self,
        said: Renewal,
        about: Mapping[str, Any],
        status: Mapping[str, Any],
        *,
        at: float | None = None,
        started_at: float | None = None,
    ) -> Answer | None:
        """Renew a member's grant, by the server's clock; None if the server has already served a later renewal."""
        row = self._at_once(
            _RENEW,
            **{**vars(said), "claims": list(said.claims), "collection": self.number},
            **{"lease": LEASE, "about": to_json({**about, "version": crawlsched.__version__})},
            **{"status": to_json(dict(status)), "at": at, "started_at": started_at},
        )
        return None if row is None else Answer(row.answer, dict(zip(row.shards, row.epochs, strict=True)), row.paused)

    def leave(self, member: str) -> None:
        """End a member that no longer sends, so that its rate and its shards are free."""
        members, leases = models.members, models.leases
        with self._writing() as connection:
            now = self.database.clock(connection)
            of_all = self.own(members)
            connection.execute(
                update(leases).where(leases.c.collection == self.number, leases.c.member == member).values(member=None)
            )
            connection.execute(delete(members).where(*of_all, members.c.token == member))
            connection.execute(delete(members).where(*of_all, members.c.expires_at < now - _KEPT_FOR))

    def end_sessions(self, member: str) -> int:
        """End the connections of a member whose lease is over; return how many there were.

        If a process is stopped while it sends rows, its locks remain as long as its machine is reachable.
        Before version 17, PostgreSQL has no time-out for such a transaction.
        """
        ended = text("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = :name")
        return int(self._at_once(ended, name=application_of(member))[0])

    def lease(self, shard: int, member: str, epoch: int) -> Lease:
        """Return the right to write a shard that a member has claimed."""
        return Lease(self.database, (shard, self.number), f"{member}:{epoch}", is_shared=True)

    def publish(self, shard: int, token: str, *, n_pages: int, ready: bool = True) -> None:
        """Write whether a shard is loaded, and its number of pages."""
        table = models.leases
        this = *own(table, (shard, self.number)), table.c.token == token
        self._at_once(update(table).where(*this).values(ready=int(ready), n_pages=n_pages))

    def beat(self, said: Sequence[tuple[int, str, int, Mapping[str, Any]]]) -> None:
        """Write the sizes of shards, and notes for their next owners; shards with a new owner are left out."""
        if not said:
            return
        with self._writing() as connection:
            of_all = {OWN + "collection": self.number, "heartbeat_at": self.database.clock(connection)}
            rows = [
                {**of_all, OWN + "shard": shard, OWN + "token": token, "n_pages": n, "status": to_json(status)}
                for shard, token, n, status in said
            ]
            put(connection, models.leases, rows, "update")

    def hand_over(self, rows: Sequence[Outgoing]) -> None:
        """Write rows to the inboxes of shards. Findings of a visit are written with the visit's batch instead."""
        if not rows:
            return
        made = [{"collection": self.number, **row._asdict(), "data": to_json(row.data)} for row in rows]
        with self._writing() as connection:
            put(connection, models.inbox, made, "insert")

    def received(self, shards: Sequence[int], limit: int) -> list[Outgoing]:
        """Read the inboxes of shards, at most `limit` rows of each, oldest first; `Batch.received` deletes rows."""
        rows = self.rows(_WAITING, collection=self.number, shards=list(shards), limit=limit)
        return [Outgoing(*row)._replace(data=json_like(row.data, {}, "what was handed over")) for row in rows]

    def waits(self, limit: int) -> bool:
        """Whether more than `limit` rows wait in the inboxes of loaded shards."""
        return bool(self.rows(_MANY_WAIT, collection=self.number, limit=limit + 1)[0][0] > limit)

    def commanded(self, shards: Sequence[int]) -> list[int]:
        """Return which of these shards have a command that is not done."""
        table = models.commands
        wanted = select(table.c.shard).where(table.c.collection == self.number, table.c.done_at.is_(None)).distinct()
        return [shard for (shard,) in self.rows(wanted.where(among(table.c.shard, shards)))]

    def waiting(self) -> dict[int, tuple[int, float]]:
        """Return the number of rows in each shard's inbox, and the time of the oldest row."""
        table = models.inbox
        counted = select(table.c.shard, func.count(), func.min(table.c.created_at))
        rows = self.rows(counted.where(table.c.collection == self.number).group_by(table.c.shard))
        return {shard: (n, oldest) for shard, n, oldest in rows}

    def set_rate(self, rate: float) -> None:
        """Set the rate of all members together; after some seconds they use it."""
        self._at_once(update(models.budgets).where(*self.own(models.budgets)).values(rate=rate))

    def pause(self, *, paused: bool) -> float | None:
        """Pause or resume all members; return the start of the pause, by the database's clock."""
        budgets = models.budgets
        since = func.coalesce(budgets.c.paused_since, extract("epoch", func.clock_timestamp()))
        change = update(budgets).where(*self.own(budgets)).values(paused_since=since if paused else None)
        paused_since: float | None = self._at_once(change.returning(budgets.c.paused_since)).paused_since
        return paused_since

    def join_pass(self) -> float:
        """Join the present pass, or begin a pass; return its start, by the database's clock."""
        budgets, members = models.budgets, models.members
        of_all = self.own(budgets)
        with self._writing() as connection:
            since: float | None = connection.execute(
                select(budgets.c.pass_since).where(*of_all).with_for_update()
            ).scalar_one()
            now = self.database.clock(connection)
            last = select(func.max(members.c.expires_at)).where(members.c.collection == self.number)
            # A pass without members is over only after `LEASE` seconds, since a new pass has no member yet.
            if since is None or now > max(since, connection.execute(last).scalar() or since) + LEASE:
                since = now
                connection.execute(update(budgets).where(*of_all).values(pass_since=since))
        return since

    def end_pass(self, since: float) -> None:
        """End the pass that began at this time, for all its members."""
        budgets = models.budgets
        this = *self.own(budgets), budgets.c.pass_since == since
        self._at_once(update(budgets).where(*this).values(pass_since=None))


def add_leases(connection: Connection, number: int, n_pages: Sequence[int]) -> None:
    """Make the lease rows of shards without an owner; `n_pages` has their numbers of pages."""
    rows = [{"shard": n, "collection": number, "n_pages": pages, **_EMPTY_LEASE} for n, pages in enumerate(n_pages)]
    connection.execute(insert(models.leases), rows)


def new_token() -> str:
    """Make the token of a member. It is never stored on disk, so that a copied machine makes a different token."""
    return uuid.uuid4().hex


def application_of(member: str) -> str:
    """Return the application name of a member's connections."""
    return f"crawlsched {member}"


def _find(connection: Connection, database: Database, name: str) -> tuple[int, int] | None:
    """Return the number of a shared collection, and how many shards it has; None if there is no such collection."""
    collections, budgets = models.collections, models.budgets
    found = select(collections.c.collection, budgets.c.n_shards).join(
        budgets, (budgets.c.collection == collections.c.collection) & (budgets.c.shard == -1), isouter=True
    )
    rows = connection.execute(found.where(collections.c.name == name).distinct()).all()
    if any(row.n_shards is None for row in rows):
        raise CollectionInUse(
            f"The collection {name!r} in {database.name!r} belongs to one process at a time; divide it with "
            "`crawlsched db split`, set CRAWLSCHED_SHARDS = None, or give the shared one another name with "
            "CRAWLSCHED_COLLECTION."
        )
    return (rows[0].collection, rows[0].n_shards) if rows else None
