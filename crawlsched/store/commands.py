"""Commands: how another process (the command line) talks to a running crawl, through the database."""

import time
from typing import Any, NamedTuple

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from crawlsched.exceptions import DamagedRow
from crawlsched.store import models
from crawlsched.store.access import Access, Part
from crawlsched.store.reading import next_number
from crawlsched.store.rows import from_json, to_json

__all__ = ["Command", "Commands", "insert_numbered"]


class Command(NamedTuple):
    """A command and, once it is done, its result."""

    id: int
    name: str
    arguments: Any
    created_at: float
    done_at: float | None
    result: Any


class Commands(Part):
    """What the command line asks of the process that owns a collection, and its answers."""

    def send(self, name: str, arguments: Any, now: float) -> int:
        """Leave a command for the process that owns the collection, and give its number."""
        values = {"name": name, "arguments": to_json(arguments), "created_at": now}
        return insert_numbered(self._access, models.commands.c.id, values)

    def pending(self) -> list[Command]:
        """Give the commands which are not done, oldest first."""
        return self._found(models.commands.c.done_at.is_(None))

    def finish(self, number: int, result: Any, now: float) -> None:
        """Write down a command's result (`Batch.finished` does it with other changes)."""
        table = models.commands
        one = *self._access.own(table), table.c.id == number
        done = update(table).where(*one).values(done_at=now, result=to_json(result))
        self._access.write(lambda connection: connection.execute(done))

    def wait_for(self, number: int, timeout: float) -> Command | None:
        """Wait until a command is done, for at most `timeout` seconds; None if it is not."""
        deadline = time.monotonic() + timeout
        while True:
            found = self._found(models.commands.c.id == number)
            if found and found[0].done_at is not None:
                return found[0]
            if time.monotonic() >= deadline:
                return None
            time.sleep(min(0.05, timeout))

    def _found(self, condition: Any) -> list[Command]:
        table = models.commands
        columns = [table.c[name] for name in Command._fields]
        rows = self._access.rows(select(*columns).where(*self._access.own(table), condition).order_by(table.c.id))
        return [Command(*row)._replace(arguments=_read(row.arguments), result=_read(row.result)) for row in rows]


def insert_numbered(access: Access, column: Any, values: dict[str, Any]) -> int:
    """Insert a row under the next free number; another process may take that number first, then the one after it."""
    while True:
        try:
            with access.database.explained("written"), access.database.writing() as connection:
                number: int = next_number(connection, access.key, column)
                connection.execute(insert(column.table).values(access.row(**{column.name: number}, **values)))
                return number
        except IntegrityError:
            continue


def _read(value: str | None) -> Any:
    """Read JSON; what is damaged is None, and its command is answered with a sentence instead of blocking others."""
    try:
        return from_json(value)
    except DamagedRow:
        return None
