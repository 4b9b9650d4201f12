"""Partitions: in PostgreSQL the observations of a day are a table, and what is too old goes with its table.

Deleting rows costs as much as writing them, and leaves holes. Days are those of UTC. Beside them stands
``observations_default``, what fits nowhere: nothing is ever refused because nobody has made its day.
"""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from math import inf

from sqlalchemy import ColumnElement, Connection, func, literal_column, or_, select, text, update

from crawlsched.exceptions import StoreError
from crawlsched.store import models
from crawlsched.store.database import Database
from crawlsched.store.schema import ADVISORY_LOCK

__all__ = ["drop", "is_deleted", "make_ahead"]

logger = logging.getLogger("crawlsched.store")

DAY = 86_400.0
# Today's and that of so many days more are made.
_AHEAD = 3
# Who waits for a table holds up all that come behind; it is tried again with the next plan.
_PATIENCE = "SET LOCAL lock_timeout = '2s'"
_TAKE_TURN = text("SELECT pg_try_advisory_xact_lock(:lock)")
_TABLES = text(
    "SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds FROM pg_inherits i"
    " JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'observations'::regclass"
)
_IS_TAKEN = text("SELECT EXISTS (SELECT 1 FROM observations_default WHERE time >= :begin AND time < :end)")
_OF_NO_DAY = "observations_default"


def _begin(day: float) -> float:
    return day // DAY * DAY


def _name(begin: float) -> str:
    return f"observations_{datetime.fromtimestamp(begin, UTC):%Y%m%d}"


def make_ahead(database: Database, now: float) -> None:
    """Make the tables of today and the next days, unless they are there.

    Parameters
    ----------
    database : Database
        PostgreSQL.
    now : float
        POSIX seconds.
    """
    days = {_name(begin): begin for begin in (_begin(now) + DAY * number for number in range(_AHEAD + 1))}
    try:
        with database.reading() as connection:
            missing = _missing(connection, days)
        if not missing:
            return
        with database.explained("written"), database.writing() as connection:
            if not _has_turn(connection):
                return
            for name in _missing(connection, days):
                limits = {"begin": days[name], "end": days[name] + DAY}
                if not connection.execute(_IS_TAKEN, limits).scalar_one():  # else its rows stay where they are
                    bounds = f"FROM ({limits['begin']:.0f}) TO ({limits['end']:.0f})"
                    connection.exec_driver_sql(f"CREATE TABLE {name} PARTITION OF observations FOR VALUES {bounds}")
    except StoreError as error:
        logger.warning("The tables for the observations of the next days are not made yet: %s", error)


def drop(database: Database, key: tuple[int, int], before: float) -> None:
    """Say that a collection wants no observations before a time, and drop the tables of days that nobody wants.

    Parameters
    ----------
    database : Database
        PostgreSQL.
    key : tuple of int
        Shard and number of the collection; what is said is said of all of its shards.
    before : float
        POSIX seconds.
    """
    table = models.collections
    try:
        with database.explained("written"), database.writing() as connection:
            if not _has_turn(connection):
                return
            mine = update(table).where(table.c.collection == key[1])
            connection.execute(mine.values(observations_pruned=before))
            wanted = connection.execute(select(func.min(func.coalesce(table.c.observations_pruned, 0.0)))).scalar_one()
            for name, end in _ends(connection).items():
                if end <= wanted:
                    connection.exec_driver_sql(f"DROP TABLE {name}")
                    logger.info("The table %s was dropped: its observations are too old for all collections.", name)
    except StoreError as error:
        logger.warning("Old observations are not dropped yet: %s", error)


def is_deleted(before: float) -> ColumnElement[bool]:
    """Give the condition that an observation is deleted by itself: its day is over, or it is of no day's table."""
    time = models.observations.c.time
    of_no_day = func.split_part(literal_column("observations.tableoid::regclass::text"), ".", -1) == _OF_NO_DAY
    return (time < before) & or_(time < _begin(before), of_no_day)


def _has_turn(connection: Connection) -> bool:
    connection.exec_driver_sql(_PATIENCE)
    return bool(connection.execute(_TAKE_TURN, {"lock": ADVISORY_LOCK + 2}).scalar_one())


def _ends(connection: Connection) -> dict[str, float]:
    """Return the time at which each table ends."""
    ends = {row.name: re.search(r"TO \('([^']+)'\)", row.bounds) for row in connection.execute(_TABLES)}
    return {name: float(found[1]) if found else inf for name, found in ends.items()}


def _missing(connection: Connection, days: dict[str, float]) -> list[str]:
    return sorted(days.keys() - _ends(connection).keys())
