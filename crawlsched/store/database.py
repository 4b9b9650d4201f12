"""The database: an engine made from a URL. Each failure becomes a `StoreError` of one sentence.

SQLite is the default, in WAL mode; psycopg 3 connects to PostgreSQL. For both, `Database` has a reading and a
writing transaction.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from selectors import DefaultSelector
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, NoSuchModuleError, StatementError

from crawlsched.exceptions import DatabaseReplaced, StoreError
from crawlsched.showing import without_secrets

__all__ = ["Database", "database_url", "is_row_error", "reason"]


def patient_connection(within: Callable[[], float | None]) -> Any:
    """Return a psycopg connection class that gives up after a silence of `within()` seconds (None: never)."""
    import psycopg
    from psycopg.waiting import Ready

    class PatientConnection(psycopg.Connection[Any]):
        def cursor(self, *name: Any, **options: Any) -> Any:
            """Open a cursor; the rows of a named cursor are sent in binary form, not as text."""
            return super().cursor(*name, **{"binary": bool(name), **options})

        def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
            """Run the driver's generator as psycopg's `wait` does, but with a limit of time."""
            try:
                wanted = next(gen)
                with DefaultSelector() as selector:
                    while True:
                        selector.register(self.fileno(), wanted)
                        silent_since = time.monotonic()
                        # The limit is read again and again, since it becomes shorter when the crawl ends.
                        while not (found := selector.select(timeout=0.5)):
                            longest = within()
                            if longest is not None and time.monotonic() - silent_since > longest:
                                # The connection is closed, since a late answer would be taken for the answer to another
                                # statement.
                                self.pgconn.finish()
                                raise psycopg.OperationalError(f"the server did not answer within {longest:g} s")
                        selector.unregister(self.fileno())
                        wanted = gen.send(Ready(found[0][1]))
            except StopIteration as end:
                return end.value

    return PatientConnection


def database_url(url: str) -> URL:
    """Parse a database URL (``sqlite:///path``, ``postgresql://user:password@host/name``) and choose its driver.

    >>> database_url("postgresql://me:secret@db/crawl").drivername
    'postgresql+psycopg'
    >>> database_url("mysql://db/crawl")
    Traceback (most recent call last):
    crawlsched.exceptions.StoreError: The database 'mysql://db/crawl' is of a kind that is not supported; ...
    """
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and (parsed.host or parsed.username or parsed.port):
            raise ValueError("a file is on no host")
    except (ArgumentError, ValueError):
        raise StoreError(
            f"The database URL {without_secrets(url)!r} cannot be read; write sqlite:///path/to/file.db or "
            "postgresql://user:password@host/name."
        ) from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    said = without_secrets(parsed.render_as_string())
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise StoreError(
            f"The database {said!r} is of a kind that is not supported; "
            "write sqlite:///path/to/file.db or postgresql://user:password@host/name."
        )
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise StoreError(
            f"The database {said!r} lives in memory and would be lost at the end of the crawl; "
            "name a file, as in sqlite:///crawlsched.db."
        )
    return parsed


def reason(error: BaseException) -> str:
    """Return the reason of a driver's error in a few words.

    >>> reason(OSError(28, "No space left on device"))
    'the disk is full (No space left on device)'
    """
    original = getattr(error, "orig", None) or error
    said = " ".join((getattr(original, "strerror", None) or str(original) or type(original).__name__).split())
    lowered = said.lower()
    words = next((words for words, needles in _WORDS.items() if any(needle in lowered for needle in needles)), None)
    return said if words is None else f"{words} ({said})"


# Our words for drivers' messages, each with the texts by which a message is recognised.
_WORDS = {
    "the disk is full": ("database or disk is full", "no space left"),
    "the disk quota is used up": ("disk quota",),
    "another process holds the database locked": ("is locked", "lock timeout"),
    "the database is read-only": ("readonly database", "read-only transaction"),
    "the file is not a database": ("file is not a database",),
    "the database is damaged": ("malformed", "string or blob too big", "codec can't decode"),
    "the file cannot be opened": ("unable to open database file",),
    "the user or the password is wrong": ("password authentication failed",),
    "no server answers there": ("connection refused",),
    "the server's name is unknown": ("could not translate host name", "failed to resolve host"),
    "the connection was lost": ("server closed the connection", "terminating connection"),
    "the server hangs": ("did not answer within",),
    "the server is too slow": ("statement timeout",),
}


class Database:
    """An engine with a reading and a writing transaction; it connects when it is first used.

    With ``?pgbouncer=true`` at the end of a PostgreSQL URL, sessions have no state, since a pool may change the session
    after each transaction. `busy_timeout` is the longest wait, in seconds, for another process's lock on an SQLite
    file. `answer_within` is the longest wait for a silent PostgreSQL server, or for a lock there; None: no limit.
    """

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        busy_timeout: float = 5.0,
        answer_within: float | None = 20.0,
        application: str = "crawlsched",
    ) -> None:
        self.text = url
        url_of_pool = database_url(url)
        self.url = url_of_pool.difference_update_query(["pgbouncer"])
        self.is_pooled = url_of_pool.query.get("pgbouncer") == "true"
        self.read_only = read_only
        self.busy_timeout = busy_timeout
        self.answer_within = answer_within
        self.application = application
        self._identity: tuple[int, int] | None = None
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = self._sqlite_engine() if self.is_sqlite else self._postgresql_engine()

    @property
    def name(self) -> str:
        """The URL without its secrets, for messages."""
        return without_secrets(self.url.render_as_string(hide_password=True), *self._secrets())

    def _secrets(self) -> list[str]:
        """Return the secrets in the URL: its password, and passwords in its query."""
        query = [value for name, value in self.url.query.items() if "password" in name.lower()]
        listed = [text for value in query for text in (value if isinstance(value, tuple) else (value,))]
        return [text for text in (self.url.password, *listed) if text and len(text) > 3]

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a reading transaction; each failure is a `StoreError`."""
        with self.explained("read"), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a writing transaction, which commits at the end; a failure raises the driver's error."""
        with self.engine.connect() as connection:
            # On SQLite the write lock is taken first, since a transaction that has begun to read cannot wait for it.
            connection = connection.execution_options(crawlsched_writes=True)
            with connection.begin():
                yield connection

    @contextmanager
    def at_once(self) -> Iterator[Connection]:
        """Open a connection on which PostgreSQL commits each statement by itself; a failure raises the driver's error.

        Otherwise, if a process is stopped before its commit, rows that all processes need would stay locked.
        """
        with self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Turn the driver's errors into a `StoreError` of one sentence, except errors that a row causes."""
        try:
            yield
        # A damaged schema raises UnicodeDecodeError.
        except (DBAPIError, sqlite3.Error, OSError, UnicodeDecodeError) as error:
            if what == "written" and is_row_error(error) and not isinstance(error, UnicodeDecodeError):
                raise
            why = without_secrets(reason(error), *self._secrets())
            # The driver's message may repeat values of the row, so it is left out.
            remedy = next((remedy for words, remedy in _REMEDIES.items() if words in why), _REMEDY)
            cause = error if self.is_sqlite else None
            raise StoreError(f"The database {self.name!r} cannot be {what}: {why}; {remedy}") from cause
        except (NoSuchModuleError, ImportError) as error:
            raise StoreError(
                f"The database {self.name!r} needs the driver psycopg, which is not installed; "
                'install it with pip install "crawlsched[postgresql]".'
            ) from error

    def clock(self, connection: Connection) -> float:
        """Return the time in POSIX seconds by the database's clock, which all its processes share."""
        of_sqlite = "SELECT (julianday('now') - 2440587.5) * 86400.0"
        of_postgresql = "SELECT extract(epoch FROM clock_timestamp())"
        return float(connection.exec_driver_sql(of_sqlite if self.is_sqlite else of_postgresql).scalar_one())

    def check_identity(self) -> None:
        """Raise `DatabaseReplaced` if an SQLite file is not the file that was opened first."""
        if not self.is_sqlite:
            return
        try:
            found = Path(str(self.url.database)).stat()
            identity = (found.st_dev, found.st_ino)
        except FileNotFoundError:
            identity = None
        except OSError:
            return  # the disk cannot be read now
        if self._identity is None:
            self._identity = identity
        if identity is None or identity != self._identity:
            what = "was deleted" if identity is None else "was replaced by another file"
            raise DatabaseReplaced(
                f"The database {self.name!r} {what} while the crawl was running, so nothing that it learns would be "
                "kept; start the crawl again."
            )

    def close(self) -> None:
        """Close every connection. SQLite moves its WAL into the file, so that a copy of the file is complete."""
        if self.is_sqlite and not self.read_only and self.engine.pool.checkedin():  # type: ignore[attr-defined]
            with suppress(DBAPIError, sqlite3.Error), closing(self.engine.raw_connection()) as connection:
                # Wait at most a second for readers. The last process to close the file moves the rest of the WAL.
                connection.cursor().execute("PRAGMA busy_timeout=1000")
                connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.engine.dispose()

    def _sqlite_engine(self) -> Engine:
        url = self.url
        if self.read_only:
            path = Path(str(url.database)).absolute()
            url = url.set(database=path.as_uri(), query={"mode": "ro", "uri": "true"})
        engine = create_engine(url, connect_args={"timeout": self.busy_timeout})
        if not self.read_only:
            event.listen(engine, "do_connect", self._make_private)
        event.listen(engine, "connect", self._configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _make_private(self, dialect: Any, record: object, arguments: Any, options: Any) -> None:
        """Make a missing file, readable by its owner only, since it may hold cookies and passwords."""
        if self._identity is not None:  # the file is in use: do not make another in its place
            self.check_identity()
        path = Path(str(self.url.database))
        with suppress(OSError):  # the driver's error will give the reason
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def _configure_sqlite(self, connection: Any, record: object) -> None:
        # `_begin_sqlite` begins transactions, since the driver cannot take the write lock first.
        connection.isolation_level = None
        # So an invalid text makes only its row unreadable, not the whole result.
        connection.text_factory = _text
        cursor = connection.cursor()
        if not self.read_only:
            cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA cache_size=-8192")  # kibibytes
        cursor.execute("PRAGMA wal_autocheckpoint=10000")
        cursor.execute("PRAGMA temp_store=MEMORY")
        cursor.close()

    def _postgresql_engine(self) -> Engine:
        # The server ends statements that wait or work for too long. The kernel ends connections whose packets are not
        # acknowledged. A stopped server's connections stay open, so the connection itself gives up
        # (`patient_connection`).
        limits: dict[str, Any] = {}
        if self.answer_within is not None:
            milliseconds = int(1000 * self.answer_within)
            # The limit for locks is a little shorter, so that the error names the lock.
            limits = {"lock_timeout": milliseconds * 9 // 10, "statement_timeout": milliseconds}
        options: dict[str, Any] = {
            "connect_timeout": 10,
            "application_name": self.application,
            "tcp_user_timeout": 10_000,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 2,
        }
        if self.is_pooled:
            options["prepare_threshold"] = None  # behind a pool, the prepared statement may be in another session
            limits |= {"transaction_read_only": "on"} if self.read_only else {}
        else:
            limits |= {"default_transaction_read_only": "on"} if self.read_only else {}
            options["options"] = " ".join(f"-c {name}={value}" for name, value in limits.items())
        # paramstyle: rows are passed to the driver as plain tuples. pre_ping: lost connections are made again.
        with self.explained("opened"):
            engine = create_engine(self.url, paramstyle="format", pool_pre_ping=True, connect_args=options)
        event.listen(engine, "do_connect", self._connect_patiently)
        if self.is_pooled and limits:
            said = "; ".join(f"SET LOCAL {name} = {value}" for name, value in limits.items())
            event.listen(engine, "begin", lambda connection: _limit(connection, said))
        return engine

    def _connect_patiently(self, dialect: Any, record: object, arguments: Any, options: Any) -> Any:
        if self.answer_within is not None:
            options = {**options, "connect_timeout": min(options["connect_timeout"], max(2, int(self.answer_within)))}
        return patient_connection(lambda: self.answer_within).connect(*arguments, **options)


def _text(value: bytes) -> str | bytes:
    """Return a text from SQLite. Bytes that are no valid text stay bytes, which no column accepts."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("crawlsched_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _limit(connection: Connection, limits: str) -> None:
    """Set limits for one transaction. A statement that commits by itself gets no limits."""
    if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql(limits)


# Advice to the user, by words in the reason for a failure.
_REMEDIES = {
    "locked": "end the process that holds it, or wait for it.",
    "disk is full": "make room and start again.",
    "database is damaged": "restore a backup, or name another file.",
    "not a database": "restore a backup, or name another file.",
    "database is read-only": "give this user the right to write, or name another database.",
}
_REMEDY = "check the URL, and that the database can be reached by this user."


def is_row_error(error: BaseException) -> bool:
    """Whether a row is the cause of a failure, so that trying again is useless."""
    if isinstance(error, (IntegrityError, DataError, OverflowError, UnicodeError, TypeError, ValueError)):
        return True
    if isinstance(error, StatementError) and not isinstance(error, DBAPIError):  # SQLAlchemy itself refused a value
        return error.orig is not None and is_row_error(error.orig)
    if not isinstance(error, DBAPIError):
        return False
    # PostgreSQL's class 54: the row or its key is too large (psycopg calls that an operational error).
    if str(getattr(error.orig, "sqlstate", None) or "").startswith("54"):
        return True
    said = str(error.orig).lower()
    return any(words in said for words in ("error binding parameter", "cannot adapt", "is not supported"))
