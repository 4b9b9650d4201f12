"""Copying: copy a database into an empty database, or an SQLite file to another file while crawls go on."""

import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, Text, collate, func, insert, select, text

from crawlsched.exceptions import StoreError
from crawlsched.store import schema
from crawlsched.store.database import Database, is_row_error, reason
from crawlsched.store.lease import require_idle
from crawlsched.store.models import metadata
from crawlsched.store.rows import ROWS_AT_ONCE

__all__ = ["copy_all", "copy_file", "require_sound"]

Shown = Callable[[int, int], None]


def copy_all(source_url: str, target_url: str, shown: Shown = lambda done, total: None) -> dict[str, int]:
    """Copy every table of a database into an empty database, in one transaction; return the number of rows of each.

    No other process can write to the two databases meanwhile. Each row is read back and compared; after a difference
    the target stays empty. ``shown(done, total)`` is called with the number of rows written and read back.
    """
    schema.check(source_url)
    # A copy takes long, so a long wait is no sign of a server that hangs.
    source, target = Database(source_url, answer_within=None), Database(target_url, answer_within=None)
    schema.upgrade(target_url)
    with closing(source), closing(target):
        with source.explained("read"), source.writing() as reading:
            _lock(reading)
            require_idle(source, reading)
            with target.explained("written"), target.writing() as writing:
                _lock(writing)
                _require_empty(writing, target.name)
                copied = _copy(reading, writing, source.name, target.name, shown)
        if not target.is_sqlite:
            # Without statistics of its tables, PostgreSQL would read far too much to find one page.
            with target.explained("written"), target.writing() as writing:
                writing.execute(text("ANALYZE"))
        return copied


def _copy(reading: Connection, writing: Connection, source: str, target: str, shown: Shown) -> dict[str, int]:
    tables = metadata.sorted_tables
    counts = {table.name: reading.execute(select(func.count()).select_from(table)).scalar_one() for table in tables}
    done, total = 0, 2 * sum(counts.values())

    def counted(rows: Iterator[Any]) -> Iterator[Any]:
        nonlocal done
        for row in rows:
            done += 1
            if done % ROWS_AT_ONCE == 0:
                shown(done, total)
            yield row

    for table in tables:
        names = [column.name for column in table.columns]
        with closing(_rows(reading, table)) as rows:
            while some := list(islice(counted(rows), ROWS_AT_ONCE)):
                try:
                    writing.execute(insert(table), [dict(zip(names, row, strict=True)) for row in some])
                except Exception as error:
                    if not is_row_error(error):
                        raise
                    raise StoreError(
                        f"The table {table.name!r} of {source!r} cannot be copied to {target!r}, so nothing was: "
                        f"{reason(error)}."
                    ) from None
        with closing(_rows(reading, table)) as rows, closing(_rows(writing, table)) as copies:
            for row, copy in zip_longest(rows, counted(copies)):
                if row != copy:
                    raise StoreError(
                        f"A row of the table {table.name!r} of {source!r} would not be the same in {target!r}, so "
                        f"nothing was copied: {_key_of(table, row or copy)}."
                    )
    shown(total, total)
    return counts


def _rows(connection: Connection, table: Table) -> Generator[tuple[Any, ...], None, None]:
    """Yield the rows in the order of the primary key, which both kinds of database share."""
    is_sqlite = connection.dialect.name == "sqlite"
    order = [
        column if is_sqlite or not isinstance(column.type, Text) else collate(column, "C")
        for column in table.primary_key.columns
    ]
    wanted = select(table).order_by(*order).execution_options(yield_per=ROWS_AT_ONCE)
    with connection.execute(wanted) as result:
        yield from map(tuple, result)


def _lock(connection: Connection) -> None:
    """Lock the tables against other writers until the end of the transaction. SQLite does this by itself."""
    if connection.dialect.name == "postgresql":
        names = ", ".join(f'"{table.name}"' for table in metadata.sorted_tables)
        connection.execute(text(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE"))


def _require_empty(connection: Connection, name: str) -> None:
    for table in metadata.sorted_tables:
        if connection.execute(select(text("1")).select_from(table).limit(1)).first():
            raise StoreError(
                f"The database {name!r} is not empty (its table {table.name!r} has rows); name an empty one to copy to."
            )


def _key_of(table: Table, row: tuple[Any, ...]) -> str:
    values = dict(zip((column.name for column in table.columns), row, strict=True))
    return ", ".join(f"{column.name} {values[column.name]!r:.80}" for column in table.primary_key.columns)


def copy_file(source: Database, file: Path, shown: Shown = lambda done, total: None) -> None:
    """Copy an SQLite database to a file, which is replaced.

    The copy lacks changes that are written meanwhile; other processes can go on writing. ``shown(done, total)`` is
    called with numbers of copied pages of the file.
    """
    if not source.is_sqlite:
        raise StoreError(f"The database {source.name!r} is PostgreSQL's; pg_dump copies it, pg_restore puts it back.")
    path = Path(str(source.url.database)).absolute()
    with (
        source.explained("copied"),
        closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as reading,
        closing(sqlite3.connect(file, timeout=source.busy_timeout)) as writing,
    ):
        # The copy is one transaction, since otherwise SQLite would begin it anew after each write of a crawl.
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reading.backup(writing, pages=ROWS_AT_ONCE, progress=lambda _, left, total: shown(total - left, total))
        reading.execute("COMMIT")


def require_sound(file: Path) -> str:
    """Return a database file's revision, or raise StoreError if the file is damaged or not made by crawlsched."""
    url = f"sqlite:///{file.absolute()}"
    revision = schema.current(url)
    if revision is None:
        raise StoreError(f"The file {str(file)!r} holds no tables of crawlsched.")
    with closing(Database(url, read_only=True)) as opened:
        if found := schema.damage(opened):
            raise StoreError(f"The file {str(file)!r} is damaged: {'; '.join(found)[:200]}.")
    return revision
