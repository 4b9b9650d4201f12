"""Backups of an SQLite database: a copy as of one moment while crawls go on, and such a copy put back."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from crawlsched.exceptions import StoreError
from crawlsched.store import schema
from crawlsched.store.database import Database

__all__ = ["copy_database", "require_sound"]

_PAGES_AT_ONCE = 2_000


def copy_database(source: Database, file: Path, shown: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Copy a database to a file, in place of what the file holds.

    What is written meanwhile is not in the copy, and no writer waits. ``shown(done, total)`` counts pages of the file.
    """
    if not source.is_sqlite:
        raise StoreError(f"The database {source.name!r} is PostgreSQL's; pg_dump copies it, pg_restore puts it back.")
    path = Path(str(source.url.database)).absolute()
    with (
        source.explained("copied"),
        closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as reading,
        closing(sqlite3.connect(file, timeout=source.busy_timeout)) as writing,
    ):
        # One transaction for all of it: or each write of the crawl would make the copy begin anew.
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reading.backup(writing, pages=_PAGES_AT_ONCE, progress=lambda _, left, total: shown(total - left, total))
        reading.execute("COMMIT")


def require_sound(file: Path) -> str:
    """Return a database file's revision, or raise StoreError if it is not ours and whole."""
    url = f"sqlite:///{file.absolute()}"
    revision = schema.current(url)
    if revision is None:
        raise StoreError(f"The file {str(file)!r} holds no tables of crawlsched.")
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as opened:
        found = [row[0] for row in opened.execute("PRAGMA quick_check")]
    if found != ["ok"]:
        raise StoreError(f"The file {str(file)!r} is damaged: {'; '.join(found)[:200]}.")
    return revision
