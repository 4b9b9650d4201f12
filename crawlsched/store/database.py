"""The database: one URL made into an engine, and every failure of it into one sentence.

SQLite is the default and is written in WAL mode; PostgreSQL is spoken to by psycopg 3. Both get the same two
kinds of transaction, a reading one and a writing one, from `Database`.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.sql import ColumnElement, func
from sqlalchemy.sql.expression import literal, select, text

from crawlsched.exceptions import StoreError

__all__ = ["Database", "among", "database_url", "is_row_error", "reason"]

#: Seconds for which a statement waits for another process's lock on an SQLite file.
BUSY_TIMEOUT = 5.0


def database_url(url: str) -> URL:
    """Parse a database URL and choose its driver.

    Parameters
    ----------
    url : str
        ``sqlite:///path`` or ``postgresql://user:password@host/name``.

    Returns
    -------
    sqlalchemy.URL

    Raises
    ------
    StoreError
        If the URL cannot be parsed, or names another kind of database or driver.

    Examples
    --------
    >>> database_url("postgresql://me:secret@db/crawl").drivername
    'postgresql+psycopg'
    >>> database_url("mysql://db/crawl")
    Traceback (most recent call last):
    crawlsched.exceptions.StoreError: The database 'mysql://db/crawl' is of a kind that is not supported; ...
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError(
            f"The database URL {url!r} cannot be read; write sqlite:///path/to/file.db or "
            "postgresql://user:password@host/name."
        ) from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise StoreError(
            f"The database {parsed.render_as_string()!r} is of a kind that is not supported; "
            "write sqlite:///path/to/file.db or postgresql://user:password@host/name."
        )
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise StoreError(
            f"The database {parsed.render_as_string()!r} lives in memory and would be lost at the end of the crawl; "
            "name a file, as in sqlite:///crawlsched.db."
        )
    return parsed


def reason(error: BaseException) -> str:
    """Say in a few words what the driver said.

    Examples
    --------
    >>> reason(OSError(28, "No space left on device"))
    'the disk is full (No space left on device)'
    """
    original = getattr(error, "orig", None) or error
    said = " ".join((getattr(original, "strerror", None) or str(original) or type(original).__name__).split())
    lowered = said.lower()
    for needle, words in _WORDS:
        if needle in lowered:
            return f"{words} ({said})"
    return said


_WORDS = (
    ("database or disk is full", "the disk is full"),
    ("no space left", "the disk is full"),
    ("disk quota", "the disk quota is used up"),
    ("is locked", "another process holds the database locked"),
    ("readonly database", "the database is read-only"),
    ("read-only transaction", "the database is read-only"),
    ("file is not a database", "the file is not a database"),
    ("malformed", "the database is damaged"),
    ("unable to open database file", "the file cannot be opened"),
    ("password authentication failed", "the user or the password is wrong"),
    ("connection refused", "no server answers there"),
    ("could not translate host name", "the server's name is unknown"),
    ("failed to resolve host", "the server's name is unknown"),
    ("server closed the connection", "the connection was lost"),
    ("terminating connection", "the connection was lost"),
)


class Database:
    """An engine with a reading and a writing transaction.

    Parameters
    ----------
    url : str
        See `database_url`.
    read_only : bool
        Refuse every write; an SQLite file is then never created either.
    cache_size : int
        Bytes of SQLite's page cache per connection.
    busy_timeout : float, optional
        Seconds for which a statement waits for another process's lock on an SQLite file.

    Raises
    ------
    StoreError
        If the URL is wrong or the driver is not installed. Nothing is connected yet.
    """

    def __init__(
        self, url: str, *, read_only: bool = False, cache_size: int = 8 * 2**20, busy_timeout: float | None = None
    ) -> None:
        self.text = url
        self.url = database_url(url)
        self.read_only = read_only
        self.cache_size = cache_size
        self.busy_timeout = BUSY_TIMEOUT if busy_timeout is None else busy_timeout
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = self._sqlite_engine() if self.is_sqlite else self._postgresql_engine()

    @property
    def name(self) -> str:
        """The URL with its password hidden, for messages."""
        return self.url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction which reads, with failures as `StoreError`."""
        with self.explained("read"), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction which writes and commits at the end; failures are the driver's own."""
        with self.engine.connect() as connection:
            # On SQLite the lock is taken at once: a transaction that begins by reading cannot wait for it later.
            connection = connection.execution_options(crawlsched_writes=True)
            with connection.begin():
                yield connection

    @contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Turn the driver's failures into a `StoreError` of one sentence, except those that lie in a row.

        Parameters
        ----------
        what : str
            What was tried: "opened", "read", "written".
        """
        import sqlite3

        try:
            yield
        except (DBAPIError, sqlite3.Error, OSError) as error:
            if is_row_error(error):
                raise
            raise StoreError(
                f"The database {self.name!r} cannot be {what}: {reason(error)}; {_remedy(reason(error))}"
            ) from error
        except UnicodeDecodeError as error:  # SQLite, about a schema that is none
            raise StoreError(
                f"The database {self.name!r} cannot be {what}: the database is damaged (a text in it is none); "
                f"{_remedy('damaged')}"
            ) from error
        except (NoSuchModuleError, ImportError) as error:
            raise StoreError(_no_driver(self.name)) from error

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def _sqlite_engine(self) -> Engine:
        url = self.url
        if self.read_only:
            path = Path(str(url.database)).absolute()
            url = url.set(database=path.as_uri(), query={"mode": "ro", "uri": "true"})
        engine = create_engine(url, connect_args={"timeout": self.busy_timeout})
        event.listen(engine, "connect", self._configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _configure_sqlite(self, connection: Any, record: object) -> None:
        # The driver's own way of beginning transactions cannot take the write lock first; `_begin_sqlite` does it.
        connection.isolation_level = None
        cursor = connection.cursor()
        if not self.read_only:
            cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute(f"PRAGMA cache_size=-{self.cache_size // 1024}")
        cursor.execute("PRAGMA wal_autocheckpoint=10000")
        cursor.execute("PRAGMA temp_store=MEMORY")
        cursor.close()

    def _postgresql_engine(self) -> Engine:
        options = {"connect_timeout": 10, "application_name": "crawlsched"}
        if self.read_only:
            options["options"] = "-c default_transaction_read_only=on"
        try:
            # paramstyle: rows reach the driver as plain tuples. pre_ping: a server that was restarted is met again.
            return create_engine(self.url, paramstyle="format", pool_pre_ping=True, connect_args=options)
        except (NoSuchModuleError, ImportError) as error:
            raise StoreError(_no_driver(self.name)) from error


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("crawlsched_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _no_driver(name: str) -> str:
    return (
        f"The database {name!r} needs the driver psycopg, which is not installed; "
        'install it with pip install "crawlsched[postgresql]".'
    )


def _remedy(why: str) -> str:
    if "locked" in why:
        return "end the process that holds it, or wait for it."
    if "disk" in why and "full" in why:
        return "make room and start again."
    if "damaged" in why or "not a database" in why:
        return "restore a backup, or name another file."
    if "read-only" in why:
        return "give this user the right to write, or name another database."
    return "check the URL, and that the database can be reached by this user."


def among(column: ColumnElement[Any], values: Sequence[int] | np.ndarray, dialect: str) -> ColumnElement[bool]:
    """Make the condition that a column is one of many integers, with a single parameter however many they are."""
    numbers = [int(value) for value in values]
    if dialect == "sqlite":
        return column.in_(select(text("value")).select_from(func.json_each(literal(json.dumps(numbers)))))
    from sqlalchemy import ARRAY, BigInteger

    return column == func.any(literal(numbers, ARRAY(BigInteger)))


def is_row_error(error: BaseException) -> bool:
    """Say whether a failure lies in a row, so that the same row would fail again for ever."""
    if isinstance(error, (IntegrityError, DataError, OverflowError, UnicodeError, TypeError, ValueError)):
        return True
    if not isinstance(error, DBAPIError):
        return False
    # PostgreSQL's class 54: the row or its key is too large (psycopg calls that an operational error).
    if str(getattr(error.orig, "sqlstate", None) or "").startswith("54"):
        return True
    said = str(error.orig).lower()
    return any(words in said for words in ("error binding parameter", "cannot adapt", "is not supported"))
