"""Access: the right to read and write one collection, or one shard of it, in one database."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable

from crawlsched.exceptions import CollectionInUse
from crawlsched.store.database import Database
from crawlsched.store.lease import Lease, ShardLease, still_own
from crawlsched.store.statements import own

__all__ = ["Access", "Part"]

T = TypeVar("T")


class Access:
    """What everything shares that reads and writes a collection.

    Under a `lease` something is written only as long as the lease is this process's. Two threads of one process take
    turns to write (`turn`), instead of waiting for each other's locks in the database.
    """

    def __init__(self, database: Database, name: str, key: tuple[int, int]) -> None:
        self.database = database
        self.name = name
        self.key = key
        self.lease: Lease | None = None
        self.turn = threading.RLock()

    def own(self, table: Any) -> tuple[Any, Any]:
        """Make the conditions that keep a question to this collection."""
        return own(table, self.key)

    def rows(self, wanted: Executable) -> list[Any]:
        """Read rows."""
        with self.database.reading() as connection:
            return list(connection.execute(wanted))

    def row(self, **values: Any) -> dict[str, Any]:
        """Make a row of this collection."""
        return {"shard": self.key[0], "collection": self.key[1], **values}

    def write(self, change: Callable[[Connection], T]) -> T:
        """Change something, if this process still may; the error of a row that is refused is given on as it is."""
        with self.turn, self.database.explained("written"), self.database.writing() as connection:
            if self.lease is not None and not all(still_own(connection, [self.lease])):
                raise self.taken_over()
            return change(connection)

    def taken_over(self) -> CollectionInUse:
        """Return the error of who writes what is another process's."""
        shard = f"shard {self.key[0]} of the " if isinstance(self.lease, ShardLease) else ""
        return CollectionInUse(
            f"The {shard}collection {self.name!r} was taken over by another process, and nothing more is written by "
            f"this one{'' if shard else '; stop this crawl'} (crawlsched status shows the new owner)."
        )

    def write_slice(self, change: Callable[[Connection], T]) -> T:
        """Change one slice of many, then rest as long as it took: whoever writes in between has to get a turn."""
        began = time.monotonic()
        result = self.write(change)
        self.rest(began)
        return result

    @staticmethod
    def rest(began: float) -> None:
        """Rest as long as a slice took that began then, seconds of the monotonic clock."""
        time.sleep(min(1.0, time.monotonic() - began))


class Part:
    """Something that a collection has, and what reads and writes it."""

    def __init__(self, access: Access) -> None:
        self._access = access
