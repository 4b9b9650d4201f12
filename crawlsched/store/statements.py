"""Statements: SQLAlchemy's inserts and updates compiled once, for rows given as plain tuples.

SQLAlchemy's own handling of parameters costs more than SQLite's work on the row, so the compiled text goes to the
driver with tuples.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Dialect, Insert, Table, bindparam, update
from sqlalchemy.dialects import postgresql, sqlite

__all__ = ["Statement", "insert", "updating", "upsert"]


class Statement:
    """SQL text and the order in which it wants the columns."""

    def __init__(self, compiled: Any) -> None:
        self.sql = str(compiled)
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
    return Statement(
        statement.on_conflict_do_nothing(index_elements=keys).compile(dialect=dialect, column_keys=list(columns))
    )


@lru_cache(maxsize=256)
def upsert(table: Table, columns: tuple[str, ...], dialect: Dialect) -> Statement:
    """Insert rows, or change those whose primary key is there already."""
    statement = _insert(table, dialect)
    keys = [column.name for column in table.primary_key]
    changes = {name: statement.excluded[name] for name in columns if name not in keys}
    return Statement(
        statement.on_conflict_do_update(index_elements=keys, set_=changes).compile(
            dialect=dialect, column_keys=list(columns)
        )
    )


@lru_cache(maxsize=256)
def updating(table: Table, columns: tuple[str, ...], dialect: Dialect) -> Statement:
    """Change rows found by their primary key; a row that is not there is not made."""
    statement = (
        update(table)
        .where(*[column == bindparam(column.name, type_=column.type) for column in table.primary_key])
        .values({table.c[name]: bindparam("to_" + name, type_=table.c[name].type) for name in columns})
    )
    return Statement(statement.compile(dialect=dialect))


def _insert(table: Table, dialect: Dialect) -> Any:
    statement: Insert = postgresql.insert(table) if dialect.name == "postgresql" else sqlite.insert(table)
    return statement
