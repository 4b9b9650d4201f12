"""Statements: SQLAlchemy's inserts and updates compiled once, for rows given as plain tuples.

SQLAlchemy's own handling of parameters costs more than SQLite's work on the row, so the compiled text goes to the
driver with tuples.
"""

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Dialect, Table, bindparam, delete, func, update
from sqlalchemy.dialects import sqlite

__all__ = ["ROWS_AT_ONCE", "Statement", "deleting", "insert", "replacing_text", "updating", "upsert"]

#: Rows in one statement, where many are written by one: 50 rows of 20 columns are far below SQLite's 32,766 values.
ROWS_AT_ONCE = 50


class Statement:
    """SQL text and the order in which it wants the columns.

    Attributes
    ----------
    sql : str
        For one row.
    sql_for_many : str or None
        For `ROWS_AT_ONCE` rows, their values one after the other; None where the driver does well with one at a time.
    names : tuple of str
        The columns.
    """

    def __init__(self, compiled: Any, sql_for_many: str | None = None) -> None:
        self.sql = str(compiled)
        self.sql_for_many = sql_for_many
        self.names: tuple[str, ...] = tuple(name.removeprefix("to_") for name in compiled.positiontup)

    def rows(self, columns: dict[str, Sequence[Any]], n: int) -> list[tuple[Any, ...]]:
        """Make tuples out of columns; a column that is not a sequence of rows is the same in each."""
        ordered = [columns[name] for name in self.names]
        return list(zip(*[c if isinstance(c, list) else [c] * n for c in ordered], strict=True))


@lru_cache(maxsize=256)
def insert(table: Table, columns: tuple[str, ...], dialect: Dialect) -> Statement:
    """Insert rows and leave those whose primary key is there already."""
    statement = _insert(table, dialect)
    keys = [column.name for column in table.primary_key]
    compiled = statement.on_conflict_do_nothing(index_elements=keys).compile(dialect=dialect, column_keys=list(columns))
    return _inserting(compiled, dialect)


@lru_cache(maxsize=256)
def upsert(table: Table, columns: tuple[str, ...], dialect: Dialect) -> Statement:
    """Insert rows, or change those whose primary key is there already."""
    statement = _insert(table, dialect)
    keys = [column.name for column in table.primary_key]
    changes = {name: statement.excluded[name] for name in columns if name not in keys}
    compiled = statement.on_conflict_do_update(index_elements=keys, set_=changes).compile(
        dialect=dialect, column_keys=list(columns)
    )
    return _inserting(compiled, dialect)


@lru_cache(maxsize=256)
def replacing_text(table: Table, columns: tuple[str, ...], dialect: Dialect) -> Statement:
    """Insert a page's text; one that is there becomes the one before, unless it is the same or newer."""
    statement = _insert(table, dialect)
    compiled = statement.on_conflict_do_update(
        index_elements=[column.name for column in table.primary_key],
        set_={
            "before": func.coalesce(statement.excluded.before, table.c.text),
            "before_seen_at": func.coalesce(statement.excluded.before_seen_at, table.c.seen_at),
            "text": statement.excluded.text,
            "seen_at": statement.excluded.seen_at,
        },
        where=table.c.seen_at < statement.excluded.seen_at,
    ).compile(dialect=dialect, column_keys=list(columns))
    return Statement(compiled)


@lru_cache(maxsize=256)
def updating(table: Table, columns: tuple[str, ...], dialect: Dialect) -> Statement:
    """Change rows found by their number, the third of their key; a row that is not there is not made."""
    keys = list(table.primary_key)[:3]
    statement = (
        update(table)
        .where(*[column == bindparam(column.name, type_=column.type) for column in keys])
        .values({table.c[name]: bindparam("to_" + name, type_=table.c[name].type) for name in columns})
    )
    compiled = statement.compile(dialect=dialect)
    if not _writes_many(dialect):
        return Statement(compiled)
    names = Statement(compiled).names
    return Statement(compiled, _updating_many(table, names, tuple(column.name for column in keys)))


@lru_cache(maxsize=16)
def deleting(table: Table, dialect: Dialect) -> Statement:
    """Delete rows found by their primary key."""
    found = [column == bindparam(column.name, type_=column.type) for column in table.primary_key]
    return Statement(delete(table).where(*found).compile(dialect=dialect))


def _inserting(compiled: Any, dialect: Dialect) -> Statement:
    """Make an insert's text for many rows out of that for one."""
    one = f"({', '.join('?' * len(compiled.positiontup))})"
    if not _writes_many(dialect) or one not in str(compiled):
        return Statement(compiled)
    return Statement(compiled, str(compiled).replace(one, ", ".join([one] * ROWS_AT_ONCE), 1))


def _updating_many(table: Table, names: tuple[str, ...], keys: tuple[str, ...]) -> str:
    one = f"({', '.join('?' * len(names))})"
    columns = ", ".join(f'"{name}"' for name in names)
    changes = ", ".join(f'"{name}" = new."{name}"' for name in names if name not in keys)
    found = " AND ".join(f'{table.name}."{name}" = new."{name}"' for name in keys)
    rows = ", ".join([one] * ROWS_AT_ONCE)
    return f"WITH new ({columns}) AS (VALUES {rows}) UPDATE {table.name} SET {changes} FROM new WHERE {found}"


def _writes_many(dialect: Dialect) -> bool:
    # SQLite's driver gives the interpreter's lock away and takes it again for every row; beside a busy crawling thread
    # that costs more than the writing. UPDATE ... FROM came with SQLite 3.33. PostgreSQL's driver sends all at once.
    return dialect.name == "sqlite" and sqlite3.sqlite_version_info >= (3, 33)


def _insert(table: Table, dialect: Dialect) -> Any:
    # To load the module of PostgreSQL takes as long as a short command does, and it needs no other.
    if dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    return sqlite.insert(table)
