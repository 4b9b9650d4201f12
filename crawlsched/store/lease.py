"""The lease: one running process owns a collection, renews its lease every few seconds, and notices its loss."""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from crawlsched.exceptions import CollectionInUse
from crawlsched.store import models
from crawlsched.store.database import Database
from crawlsched.store.reading import Part
from crawlsched.store.rows import json_like, own, to_json

__all__ = [
    "NOT_LONG_IDLE",
    "Access",
    "Lease",
    "LeaseRow",
    "lease_row",
    "lost",
    "me",
    "process_has_ended",
    "shards_of",
]

T = TypeVar("T")

Key = tuple[int, int]

#: Seconds without a heartbeat after which a lease counts as abandoned.
STALE_AFTER = 30.0

#: The longest time for which the transaction of a stopped or disconnected process can keep others out.
NOT_LONG_IDLE = "SET LOCAL idle_in_transaction_session_timeout = '3s'"

# The part of the previous owner's status that is kept even if the new owner ends before its first heartbeat.
_NOTES = ("last_sent_at", "paused_since")


class LeaseRow(NamedTuple):
    """Who owns a collection, or owned it last."""

    token: str
    host: str
    machine: str
    pid: int
    process_started: str
    spider: str
    started_at: float
    heartbeat_at: float
    released_at: float | None
    status: dict[str, Any]
    #: For a shard that several processes share: its owner, its epoch, and until when that member's own lease is valid.
    member: str | None = None
    epoch: int = 0
    expires_at: float | None = None

    @property
    def is_shared(self) -> bool:
        """Whether this is a shard of a collection that several processes share."""
        return self.member is not None or self.epoch > 0

    def is_held(self, now: float) -> bool:
        """Whether the owner is still running, as far as can be known.

        On this machine the state of the process decides, without any clock. If the process is stopped, or on another
        machine, its last heartbeat decides, by the clock that wrote it.
        """
        if self.is_shared:
            return self.expires_at is not None and self.expires_at > now
        if self.released_at is not None:
            return False
        is_recent = now - self.heartbeat_at <= STALE_AFTER
        if self.machine != machine():
            return is_recent
        has_ended = process_has_ended(self.machine, self.pid, self.process_started)
        return not has_ended and (is_recent or not is_stopped(self.pid))


class Lease:
    """The right to write a collection, held by this process.

    Made by `Lease.take`; `Store.take_lease` keeps it, and a store writes only while the lease is still its own. The
    lease of a shard (`is_shared`) holds until the next claim, and a writer checks its epoch inside its transaction.
    """

    def __init__(
        self, database: Database, key: Key, token: str, notes: dict[str, Any] | None = None, *, is_shared: bool = False
    ) -> None:
        #: The previous owner's status for the next one: the time of its last request, and whether it pauses.
        self.notes = notes or {}
        self._database = database
        self.key = key
        self.token = token
        self.is_shared = is_shared

    @classmethod
    def take(cls, database: Database, key: Key, name: str, spider: str, now: float | None = None) -> "Lease":
        """Become the one process that writes a collection, or raise `CollectionInUse`.

        A lease without a heartbeat for `STALE_AFTER` seconds is taken over if its process is elsewhere or stopped.
        `now` is by default the time by the clock of the database, which all share.
        """
        try:
            with database.explained("written"), database.writing() as connection:
                at = database.clock(connection) if now is None else now
                row = lease_row(connection, key, lock=True)
                if (n_shards := shards_of(connection, key[1])) is not None:
                    raise CollectionInUse(
                        f"The collection {name!r} has {n_shards} shards, which several processes share; set "
                        f"CRAWLSCHED_SHARDS = {n_shards} to join them, or give this crawl another collection with "
                        "CRAWLSCHED_COLLECTION."
                    )
                kept = {name: row.status[name] for name in _NOTES if name in row.status} if row is not None else {}
                mine = {
                    **{"token": uuid.uuid4().hex, **me(spider), "status": to_json(kept)},
                    **{"started_at": at, "heartbeat_at": at, "released_at": None},
                }
                if row is None:
                    connection.execute(insert(models.leases).values(shard=key[0], collection=key[1], **mine))
                elif row.is_held(at):
                    is_us = all(getattr(row, name) == mine[name] for name in ("machine", "pid", "process_started"))
                    owner = None if is_us else f"pid {row.pid} on host {row.host!r}"
                    raise CollectionInUse(_in_use(name, row), owner)
                else:
                    connection.execute(update(models.leases).where(*own(models.leases, key)).values(**mine))
        except IntegrityError:  # two processes found no row (PostgreSQL), and the other was first
            return cls.take(database, key, name, spider, now)
        database.check_identity()
        return cls(database, key, mine["token"], kept)

    def heartbeat(self, now: float | None, status: dict[str, Any]) -> bool:
        """Renew the lease, with this `status`; return False if another process took it over.

        A replaced file raises `DatabaseReplaced`. After another StoreError the next heartbeat may succeed.
        """
        self._database.check_identity()
        return self._change(now, ["heartbeat_at"], status=to_json(status))

    def release(self, now: float | None = None) -> None:
        """Give the collection or the shard back; its last owner stays in the row."""
        self._change(now, ["heartbeat_at", "released_at"], member=None)

    def _change(self, now: float | None, times: Sequence[str], **values: Any) -> bool:
        with self._database.explained("written"), self._database.writing() as connection:
            at = self._database.clock(connection) if now is None else now
            change = update(models.leases).where(*own(models.leases, self.key), models.leases.c.token == self.token)
            return connection.execute(change.values(**values, **dict.fromkeys(times, at))).rowcount == 1


def lost(connection: Connection, stores: Collection["Access"]) -> set[Key]:
    """Return the shards that another process has taken; ours stay ours until the end of the transaction.

    If another process has taken the collection of a single process, that is an error.
    """
    leases = {store.key: store.lease for store in stores if store.lease is not None}
    if not leases:
        return set()
    if any(lease.is_shared for lease in leases.values()):
        connection.exec_driver_sql(NOT_LONG_IDLE)
    table = models.leases
    wanted = select(table.c.shard, table.c.token).where(table.c.collection.in_({number for _, number in leases}))
    wanted = wanted.where(table.c.shard.in_([shard for shard, _ in leases])).order_by(table.c.shard)
    # Rows are locked in the same order as by a splitting. The lock lets renewals, heartbeats and other writers pass,
    # but no process that claims the row.
    rows = connection.execute(wanted.with_for_update(read=True, key_share=True))
    tokens = {row.shard: row.token for row in rows}
    taken = {key for key, lease in leases.items() if tokens.get(key[0]) != lease.token}
    for store in stores:
        if store.key in taken and not leases[store.key].is_shared:
            raise store.taken_over()
    return taken


def shards_of(connection: Connection, collection: int) -> int | None:
    """Return how many shards a collection has; None: it is not shared."""
    table = models.budgets
    found: int | None = connection.execute(
        select(table.c.n_shards).where(table.c.shard == -1, table.c.collection == collection)
    ).scalar()
    return found


def lease_row(connection: Connection, key: Key, *, lock: bool = False) -> LeaseRow | None:
    """Read who owns a collection, or one of its shards."""
    table, members = models.leases, models.members
    wanted = [table.c[name] for name in LeaseRow._fields[:-1]]
    expires_at = (
        select(members.c.expires_at)
        .where(members.c.shard == -1, members.c.collection == key[1], members.c.token == table.c.member)
        .scalar_subquery()
    )
    statement = select(*wanted, expires_at).where(*own(table, key))
    row = connection.execute(statement.with_for_update() if lock else statement).one_or_none()
    return None if row is None else LeaseRow(*row)._replace(status=json_like(row.status, {}, "the lease"))


def require_idle(database: Database, connection: Connection, name: str | None = None) -> None:
    """Raise `CollectionInUse` while a process crawls any collection of a database, or the one of this name."""
    table = models.collections
    only = [] if name is None else [table.c.name == name]
    wanted = select(table.c.shard, table.c.collection, table.c.name).where(*only)
    now = database.clock(connection)
    for shard, number, found in connection.execute(wanted).all():
        row = lease_row(connection, (shard, number))
        if row is not None and row.is_held(now):
            raise CollectionInUse(
                f"The collection {found!r} of {database.name!r} is being crawled (pid {row.pid} on {row.host!r}); end "
                "all its crawls first."
            )


@cache
def machine() -> str:
    """Name the set of processes that this one can see: the host, its boot, and the namespace of pids."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # no Linux
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def process_start(pid: int) -> str | None:
    """Return when a process of this machine started, in the kernel's ticks; None: there is none with that pid.

    A later process may get the same pid, but starts at another time. If the kernel does not tell, the result is "".
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except (PermissionError, OverflowError):
        pass
    fields = _stat(pid)
    if not fields:
        return ""
    return None if fields[0] in "ZX" else fields[19]


def _stat(pid: int) -> list[str]:
    """Return the kernel's fields of a process, beginning with its state; an empty result if there are none."""
    try:
        # The name of the program, in brackets, may itself hold spaces and brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def process_has_ended(on: str, pid: int, started: str) -> bool:
    """Whether a process has certainly ended, which only its own machine (`machine`) can know."""
    now = process_start(pid) if on == machine() else started
    # If the kernel does not tell when it started, or hides it, any process with the pid counts as this one.
    return now is None or ("" not in (now, started) and now != started)


def is_stopped(pid: int) -> bool:
    """Whether a process of this machine is stopped (SIGSTOP, a debugger): it exists, but does not run."""
    return _stat(pid)[:1] in (["T"], ["t"])


def me(spider: str) -> dict[str, Any]:
    """Describe this process, for rows that it owns."""
    return {
        "host": socket.gethostname(),
        "machine": machine(),
        "pid": os.getpid(),
        "process_started": process_start(os.getpid()) or "",
        "spider": spider,
    }


def _in_use(name: str, row: LeaseRow) -> str:
    since, beat = (
        f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC" for at in (row.started_at, row.heartbeat_at)
    )
    return (
        f"The collection {name!r} is owned by another running process: pid {row.pid} on host {row.host!r} "
        f"(spider {row.spider!r}, since {since}, last heartbeat {beat}); end that process, let this crawl wait for its "
        "end with CRAWLSCHED_STANDBY, or give it another collection with CRAWLSCHED_COLLECTION (a process that was "
        f"killed is replaced at once on its own machine, after {STALE_AFTER:g} s on another)."
    )


class Access(Part):
    """Access to a collection, or to one shard of it.

    If there is a `lease`, rows are written only while it is this process's. Two threads of one process take
    turns to write (`turn`), instead of waiting for each other's locks in the database.
    """

    def __init__(self, database: Database, name: str, key: tuple[int, int]) -> None:
        super().__init__(database, key)
        self.name = name
        self.lease: Lease | None = None
        self.turn = threading.RLock()

    def row(self, **values: Any) -> dict[str, Any]:
        """Make a row of this collection."""
        return {"shard": self.key[0], "collection": self.key[1], **values}

    def write(self, change: Callable[[Connection], T]) -> T:
        """Write, if this process still holds the lease; the error of a refused row is passed on unchanged."""
        with self.turn, self.database.explained("written"), self.database.writing() as connection:
            if lost(connection, [self]):
                raise self.taken_over()
            return change(connection)

    def taken_over(self) -> CollectionInUse:
        """Return the error for a process whose collection another one has taken over."""
        shard = f"shard {self.key[0]} of the " if self.lease is not None and self.lease.is_shared else ""
        return CollectionInUse(
            f"The {shard}collection {self.name!r} was taken over by another process, and nothing more is written by "
            f"this one{'' if shard else '; stop this crawl'} (crawlsched status shows the new owner)."
        )

    def write_slice(self, change: Callable[[Connection], T]) -> T:
        """Write one slice of many, then rest as long as it took: other writers need a turn."""
        began = time.monotonic()
        result = self.write(change)
        time.sleep(min(1.0, time.monotonic() - began))
        return result
