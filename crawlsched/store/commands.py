"""Commands: how another process (the command line) talks to a running crawl, through the database."""

import time
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from crawlsched.exceptions import DamagedRow
from crawlsched.store import models
from crawlsched.store.database import Database
from crawlsched.store.reading import next_number
from crawlsched.store.rows import from_json, to_json
from crawlsched.store.statements import own

__all__ = ["Command", "Commands", "insert_numbered"]

Key = tuple[int, int]


class Command(NamedTuple):
    """A command and, once it is done, its result."""

    id: int
    name: str
    arguments: Any
    created_at: float
    done_at: float | None
    result: Any


class Commands:
    """What the command line asks of the process that owns a collection, and its answers."""

    def __init__(self, database: Database, key: Key) -> None:
        self._database = database
        self._key = key

    def send(self, name: str, arguments: Any, now: float) -> int:
        """Leave a command for the process that owns the collection, and give its number."""
        values = {"name": name, "arguments": to_json(arguments), "created_at": now}
        return insert_numbered(self._database, self._key, models.commands.c.id, values)

    def pending(self) -> list[Command]:
        """Give the commands which are not done, oldest first."""
        with self._database.reading() as connection:
            return _commands(connection, self._key, models.commands.c.done_at.is_(None))

    def finish(self, number: int, result: Any, now: float) -> None:
        """Write down a command's result (`Batch.finished` does it with other changes)."""
        table = models.commands
        one = *own(table, self._key), table.c.id == number
        with self._database.explained("written"), self._database.writing() as connection:
            connection.execute(update(table).where(*one).values(done_at=now, result=to_json(result)))

    def wait_for(self, number: int, timeout: float) -> Command | None:
        """Wait until a command is done, for at most `timeout` seconds; None if it is not."""
        deadline = time.monotonic() + timeout
        while True:
            with self._database.reading() as connection:
                found = _commands(connection, self._key, models.commands.c.id == number)
            if found and found[0].done_at is not None:
                return found[0]
            if time.monotonic() >= deadline:
                return None
            time.sleep(min(0.05, timeout))


def insert_numbered(database: Database, key: Key, column: Any, values: dict[str, Any]) -> int:
    """Insert a row under the next free number; another process may take that number first, then the one after it."""
    while True:
        try:
            with database.explained("written"), database.writing() as connection:
                number = next_number(connection, key, column)
                row = {"shard": key[0], "collection": key[1], column.name: number, **values}
                connection.execute(insert(column.table).values(row))
                return number
        except IntegrityError:
            continue


def _commands(connection: Connection, key: Key, condition: Any) -> list[Command]:
    table = models.commands
    rows = connection.execute(
        select(table.c.id, table.c.name, table.c.arguments, table.c.created_at, table.c.done_at, table.c.result)
        .where(*own(table, key), condition)
        .order_by(table.c.id)
    )
    return [
        Command(row.id, row.name, _found(row.arguments), row.created_at, row.done_at, _found(row.result))
        for row in rows
    ]


def _found(value: str | None) -> Any:
    """Read JSON; what is damaged is None, and its command is answered with a sentence instead of blocking others."""
    try:
        return from_json(value)
    except DamagedRow:
        return None
