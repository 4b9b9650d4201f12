"""The lease: the right of one running process to write a collection. The process renews it every few seconds."""

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

#: The server ends a transaction that is idle for this time, since its process may be stopped or disconnected.
NOT_LONG_IDLE = "SET LOCAL idle_in_transaction_session_timeout = '3s'"

# A new owner's first status repeats these fields of the previous owner's status.
_NOTES = ("last_sent_at", "paused_since")


class LeaseRow(NamedTuple):
    """The present or last owner of a collection or a shard."""

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
    #: Only for a shard of a shared collection: the owner, the epoch, and the time when the owner's lease expires.
    member: str | None = None
    epoch: int = 0
    expires_at: float | None = None

    @property
    def is_shared(self) -> bool:
        """Whether this is a shard of a collection that several processes share."""
        return self.member is not None or self.epoch > 0

    def is_held(self, now: float) -> bool:
        """Whether the owner is probably still running.

        If the owner runs on this machine, the state of its process decides. If its process is stopped, or on another
        machine, its last heartbeat decides, by the clock that wrote the heartbeat.
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
    """The right of this process to write a collection, or a shard of it.

    Made by `Lease.take` for `Store.take_lease`. A store writes only while its process has the lease. The lease of a
    shard (`is_shared`) is valid until another process claims the shard; each write checks the epoch in its transaction.
    """

    def __init__(
        self, database: Database, key: Key, token: str, notes: dict[str, Any] | None = None, *, is_shared: bool = False
    ) -> None:
        #: From the previous owner's status: the time of its last request, and the start of its pause.
        self.notes = notes or {}
        self._database = database
        self.key = key
        self.token = token
        self.is_shared = is_shared

    @classmethod
    def take(cls, database: Database, key: Key, name: str, spider: str, now: float | None = None) -> "Lease":
        """Take the lease of a collection for this process, or raise `CollectionInUse`.

        A lease without a heartbeat for `STALE_AFTER` seconds is taken over if its process is stopped, or on another
        machine. `now` is by default the time by the database's clock.
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
        except IntegrityError:  # on PostgreSQL, another process has inserted the row first
            return cls.take(database, key, name, spider, now)
        database.check_identity()
        return cls(database, key, mine["token"], kept)

    def heartbeat(self, now: float | None, status: dict[str, Any]) -> bool:
        """Renew the lease, and write this `status`; return False if another process took the lease over.

        A replaced file raises `DatabaseReplaced`. After any other StoreError the next heartbeat may succeed.
        """
        self._database.check_identity()
        return self._change(now, ["heartbeat_at"], status=to_json(status))

    def release(self, now: float | None = None) -> None:
        """Give the collection or the shard back; the row still names its last owner."""
        self._change(now, ["heartbeat_at", "released_at"], member=None)

    def _change(self, now: float | None, times: Sequence[str], **values: Any) -> bool:
        with self._database.explained("written"), self._database.writing() as connection:
            at = self._database.clock(connection) if now is None else now
            change = update(models.leases).where(*own(models.leases, self.key), models.leases.c.token == self.token)
            return connection.execute(change.values(**values, **dict.fromkeys(times, at))).rowcount == 1


def lost(connection: Connection, stores: Collection["Access"]) -> set[Key]:
    """Return the shards that another process has claimed, and lock our other shards until the end of the transaction.

    For a collection that is not shared, raise `CollectionInUse` if another process has taken it.
    """
    leases = {store.key: store.lease for store in stores if store.lease is not None}
    if not leases:
        return set()
    if any(lease.is_shared for lease in leases.values()):
        connection.exec_driver_sql(NOT_LONG_IDLE)
    table = models.leases
    wanted = select(table.c.shard, table.c.token).where(table.c.collection.in_({number for _, number in leases}))
    wanted = wanted.where(table.c.shard.in_([shard for shard, _ in leases])).order_by(table.c.shard)
    # `splitting` locks the rows in the same order. The lock does not stop renewals, heartbeats and other writers, but
    # stops processes that claim the row.
    rows = connection.execute(wanted.with_for_update(read=True, key_share=True))
    tokens = {row.shard: row.token for row in rows}
    taken = {key for key, lease in leases.items() if tokens.get(key[0]) != lease.token}
    for store in stores:
        if store.key in taken and not leases[store.key].is_shared:
            raise store.taken_over()
    return taken


def shards_of(connection: Connection, collection: int) -> int | None:
    """Return how many shards a collection has; None if it is not shared."""
    table = models.budgets
    found: int | None = connection.execute(
        select(table.c.n_shards).where(table.c.shard == -1, table.c.collection == collection)
    ).scalar()
    return found


def lease_row(connection: Connection, key: Key, *, lock: bool = False) -> LeaseRow | None:
    """Read the lease of a collection, or of one of its shards."""
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
    """Raise `CollectionInUse` while a process crawls any collection of a database, or the collection of this name."""
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
    """Return a name of the machine: the host, its boot, and the namespace of process ids."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # not Linux
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def process_start(pid: int) -> str | None:
    """Return when a process of this machine started, in the kernel's ticks; None if no process has that pid.

    A later process may get the same pid, but starts at another time. The result is "" if the kernel hides the time.
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
    """Return the fields of ``/proc/PID/stat`` from the process's state on; empty if they cannot be read."""
    try:
        # The program's name comes before these fields, in brackets, and may hold spaces and brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def process_has_ended(on: str, pid: int, started: str) -> bool:
    """Whether a process has certainly ended; this can be true only on its own `machine`."""
    now = process_start(pid) if on == machine() else started
    # If the kernel hides when a process started, any process with the pid counts as this process.
    return now is None or ("" not in (now, started) and now != started)


def is_stopped(pid: int) -> bool:
    """Whether a process of this machine is stopped (SIGSTOP, a debugger): it exists, but does not run."""
    return _stat(pid)[:1] in (["T"], ["t"])


def me(spider: str) -> dict[str, Any]:
    """Return the columns that describe this process in a row of `leases` or `members`."""
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

    If `lease` is set, rows are written only while this process still has the lease. Threads of one process take turns
    to write (`turn`), instead of waiting for each other's locks in the database.
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
        """Write, if this process still has the lease; a refused row raises the driver's error."""
        with self.turn, self.database.explained("written"), self.database.writing() as connection:
            if lost(connection, [self]):
                raise self.taken_over()
            return change(connection)

    def taken_over(self) -> CollectionInUse:
        """Return the error for a process whose collection another process has taken over."""
        shard = f"shard {self.key[0]} of the " if self.lease is not None and self.lease.is_shared else ""
        return CollectionInUse(
            f"The {shard}collection {self.name!r} was taken over by another process, and nothing more is written by "
            f"this one{'' if shard else '; stop this crawl'} (crawlsched status shows the new owner)."
        )

    def write_slice(self, change: Callable[[Connection], T]) -> T:
        """Write one slice of many, then rest as long as the slice took, so that other writers get a turn."""
        began = time.monotonic()
        result = self.write(change)
        time.sleep(min(1.0, time.monotonic() - began))
        return result
