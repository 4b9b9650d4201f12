"""Statements: rows as dictionaries, inserted, changed or deleted many at a time, on either kind of database."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Table, Text, and_, bindparam, delete, func, literal, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

__all__ = ["OWN", "among", "among_those", "json_list", "own", "put", "same"]

#: What stands before the name of a column by which `put` finds a row to change or to delete.
OWN = "own_"


def own(table: Table, key: tuple[int, int]) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Make the conditions that keep to a collection, or one shard of it."""
    return table.c.shard == key[0], table.c.collection == key[1]


def same(one: Table, other: Table, *names: str) -> ColumnElement[bool]:
    """Make the condition that two tables are joined by: rows of one collection, alike in some columns."""
    return and_(*[one.c[name] == other.c[name] for name in ("shard", "collection", *names)])


class _Among(FunctionElement[Any]):
    type = NullType()  # of a truth value SQLAlchemy would ask whether it is 1, and then no index helps
    inherit_cache = True


@compiles(_Among)
def _among(condition: Any, compiler: Any, **options: Any) -> str:
    column, numbers = (compiler.process(part, **options) for part in condition.clauses)
    return f"{column} = ANY(ARRAY(SELECT value::bigint FROM json_array_elements_text(CAST({numbers} AS json))))"


@compiles(_Among, "sqlite")
def _among_sqlite(condition: Any, compiler: Any, **options: Any) -> str:
    column, numbers = (compiler.process(part, **options) for part in condition.clauses)
    return f"{column} IN (SELECT value FROM json_each({numbers}))"


def among(column: ColumnElement[Any], values: Sequence[int] | np.ndarray) -> ColumnElement[Any]:
    """Make the condition that a column is one of many integers, with a single parameter however many they are."""
    return _Among(column, literal(json_list(values), Text()))


def among_those(column: ColumnElement[Any], name: str) -> ColumnElement[Any]:
    """Make the same condition for a statement that is kept: a parameter of that name takes what `json_list` makes."""
    return _Among(column, bindparam(name, type_=Text()))


def json_list(values: Sequence[int] | np.ndarray) -> str:
    """Make integers into one parameter."""
    return json.dumps([int(value) for value in values])


def put(connection: Connection, table: Table, rows: Sequence[dict[str, Any]], how: str = "upsert") -> None:
    """Write rows that all have the same columns.

    What is there already is changed by "upsert" and left by "insert". "update" and "delete" find rows by the columns
    whose names begin with `OWN`. "next text" keeps a page's present text as the one before, unless it is the same or
    newer.
    """
    if rows:
        connection.execute(_statement(table, how, tuple(rows[0]), connection.dialect.name), rows)


@lru_cache(maxsize=256)
def _statement(table: Table, how: str, names: tuple[str, ...], dialect: str) -> Any:
    if how in ("update", "delete"):
        own = [name for name in names if name.startswith(OWN)]
        found = [table.c[name.removeprefix(OWN)] == bindparam(name) for name in own]
        return (update(table) if how == "update" else delete(table)).where(*found)
    new = _insert(table, dialect)
    keys = [column.name for column in table.primary_key]
    if how == "insert":
        return new.on_conflict_do_nothing(index_elements=keys)
    changes = {name: new.excluded[name] for name in names if name not in keys}
    if how == "upsert":
        return new.on_conflict_do_update(index_elements=keys, set_=changes)
    changes["before"] = func.coalesce(new.excluded.before, table.c.text)
    changes["before_seen_at"] = func.coalesce(new.excluded.before_seen_at, table.c.seen_at)
    is_newer = table.c.seen_at < new.excluded.seen_at
    return new.on_conflict_do_update(index_elements=keys, set_=changes, where=is_newer)


def _insert(table: Table, dialect: str) -> Any:
    # To load the module of PostgreSQL takes as long as a short command does, and it needs no other.
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    return sqlite.insert(table)
