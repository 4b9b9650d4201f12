"""Commands: messages in the database by which the command line steers a running crawl."""

import time
from typing import Any, NamedTuple

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from crawlsched.exceptions import DamagedRow
from crawlsched.store import models
from crawlsched.store.reading import next_number
from crawlsched.store.rows import from_json, to_json
from crawlsched.store.store import Store

__all__ = ["StoredCommand", "finish", "pending", "send", "wait_for"]


class StoredCommand(NamedTuple):
    """A command and, once it is done, its result."""

    id: int
    name: str
    arguments: Any
    created_at: float
    done_at: float | None
    result: Any


def send(store: Store, name: str, arguments: Any, now: float) -> int:
    """Write a command for the process that owns the collection, and return its number."""
    table = models.commands
    while True:
        try:
            with store.database.explained("written"), store.database.writing() as connection:
                number = next_number(connection, store.key, table.c.id)
                row = store.row(id=number, name=name, arguments=to_json(arguments), created_at=now)
                connection.execute(insert(table), row)
                return number
        except IntegrityError:  # another process took that number first
            continue


def pending(store: Store) -> list[StoredCommand]:
    """Return the commands which are not done, oldest first."""
    return _found(store, models.commands.c.done_at.is_(None))


def finish(store: Store, number: int, result: Any, now: float) -> None:
    """Write a command's result; `Batch.finished` writes it with other changes."""
    table = models.commands
    done = update(table).where(*store.own(table), table.c.id == number).values(done_at=now, result=to_json(result))
    store.write(lambda connection: connection.execute(done))


def wait_for(store: Store, number: int, timeout: float) -> StoredCommand | None:
    """Wait for a command's result for at most `timeout` seconds; None if it is not done then."""
    deadline = time.monotonic() + timeout
    while True:
        found = _found(store, models.commands.c.id == number)
        if found and found[0].done_at is not None:
            return found[0]
        if time.monotonic() >= deadline:
            return None
        time.sleep(min(0.05, timeout))


def _found(store: Store, condition: Any) -> list[StoredCommand]:
    table = models.commands
    columns = [table.c[name] for name in StoredCommand._fields]
    rows = store.rows(select(*columns).where(*store.own(table), condition).order_by(table.c.id))
    return [StoredCommand(*row)._replace(arguments=_read(row.arguments), result=_read(row.result)) for row in rows]


def _read(value: str | None) -> Any:
    """Read JSON; None if it is damaged. A damaged command gets an error as its result, and blocks no other command."""
    try:
        return from_json(value)
    except DamagedRow:
        return None
