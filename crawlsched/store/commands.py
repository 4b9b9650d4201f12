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

__all__ = ["Command", "command", "finish", "pending", "send", "wait_for"]

Key = tuple[int, int]


class Command(NamedTuple):
    """A command and, once it is done, its result."""

    id: int
    name: str
    arguments: Any
    created_at: float
    done_at: float | None
    result: Any


def send(database: Database, key: Key, name: str, arguments: Any, now: float) -> int:
    """Leave a command for the process that owns the collection, and give its number."""
    table = models.commands
    values = {"shard": key[0], "collection": key[1], "name": name, "arguments": to_json(arguments), "created_at": now}
    return insert_numbered(database, key, table.c.id, values)


def insert_numbered(database: Database, key: Key, column: Any, values: dict[str, Any]) -> int:
    """Insert a row under the next free number; another process may take that number first, then the one after it."""
    while True:
        try:
            with database.explained("written"), database.writing() as connection:
                number = next_number(connection, key, column)
                connection.execute(insert(column.table).values(**values, **{column.name: number}))
                return number
        except IntegrityError:
            continue


def pending(connection: Connection, key: Key) -> list[Command]:
    """Give the commands which are not done, oldest first."""
    table = models.commands
    return _commands(connection, key, table.c.done_at.is_(None))


def command(connection: Connection, key: Key, number: int) -> Command | None:
    """Give one command."""
    found = _commands(connection, key, models.commands.c.id == number)
    return found[0] if found else None


def finish(connection: Connection, key: Key, number: int, result: Any, now: float) -> None:
    """Write down a command's result."""
    table = models.commands
    connection.execute(
        update(table)
        .where(table.c.shard == key[0], table.c.collection == key[1], table.c.id == number)
        .values(done_at=now, result=to_json(result))
    )


def wait_for(database: Database, key: Key, number: int, timeout: float) -> Command | None:
    """Wait until a command is done, for at most `timeout` seconds; None if it is not."""
    deadline = time.monotonic() + timeout
    while True:
        with database.reading() as connection:
            found = command(connection, key, number)
        if found is not None and found.done_at is not None:
            return found
        if time.monotonic() >= deadline:
            return None
        time.sleep(min(0.05, timeout))


def _commands(connection: Connection, key: Key, condition: Any) -> list[Command]:
    table = models.commands
    rows = connection.execute(
        select(table.c.id, table.c.name, table.c.arguments, table.c.created_at, table.c.done_at, table.c.result)
        .where(table.c.shard == key[0], table.c.collection == key[1], condition)
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
