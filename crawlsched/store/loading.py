"""Loading: the whole collection as arrays, block by block, without an object per page.

SQLAlchemy's rows would cost more than the reading itself, so they come from the driver's own cursor.
"""

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sqlalchemy import Select, and_, case, func, literal, null, select

from crawlsched.store import models
from crawlsched.store.database import Database, among

__all__ = ["page_blocks"]

logger = logging.getLogger("crawlsched.store")

Arrays = dict[str, np.ndarray]

#: Rows per call of the driver.
_FETCH = 5_000

_TYPES = {
    "page": np.int64,
    "state": np.uint8,
    "importance": np.float32,
    "n_crawls": np.uint32,
    "n_changes": np.uint32,
    "n_errors": np.uint8,
    "n_signals": np.uint16,
    "n_signals_total": np.uint32,
    "source": np.int32,
    "true_signals": np.float32,
    "false_signals": np.float32,
    "depth": np.int32,
    "part": np.uint16,
    "request_digest": np.int64,
    "marks": np.uint16,
}


class _HostNumbers(dict[str, int]):
    """Asks for each host's number once."""

    def __init__(self, host_number: Callable[[str], int]) -> None:
        self._ask = host_number

    def __missing__(self, name: str) -> int:
        number = self[name] = self._ask(name)
        return number


def page_blocks(
    database: Database,
    key: tuple[int, int],
    block: int,
    *,
    host_number: Callable[[str], int] | None = None,
    grid: str = "",
    n_rates: int = 0,
    fingerprinter: str | None = None,
    pages: Sequence[int] | np.ndarray | None = None,
) -> Iterator[dict[str, np.ndarray]]:
    """Give the pages of a collection in blocks, as `Store.load` does; what cannot be read is left out."""
    statement = _select(database, key, grid, n_rates, fingerprinter, pages)
    names = [column.name for column in statement.selected_columns]
    numbers = None if host_number is None else _HostNumbers(host_number)
    with _cursor(database, statement) as cursor:
        while parts := list(_parts(cursor, block, lambda columns: _arrays(columns, numbers, n_rates), names)):
            yield {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _parts(cursor: Any, block: int, arrays: Callable[[dict[str, Any]], Arrays], names: list[str]) -> Iterator[Arrays]:
    """Fetch a block in parts of a few thousand rows, which stay in the processor's cache while they become arrays."""
    for start in range(0, block, _FETCH):
        # Rows are many tuples at once and no cycles: the garbage collector would go through all of them for nothing.
        collecting = gc.isenabled()
        gc.disable()
        try:
            rows = cursor.fetchmany(min(_FETCH, block - start))
            if not rows:
                return
            try:
                part = arrays(dict(zip(names, zip(*rows, strict=True), strict=True)))
            except (TypeError, ValueError, OverflowError, AttributeError):
                part = _row_by_row(rows, arrays, names)
            del rows
        finally:
            if collecting:
                gc.enable()
        yield part


def _row_by_row(rows: Sequence[Any], arrays: Callable[[dict[str, Any]], Arrays], names: list[str]) -> Arrays:
    """Make rows into arrays without the damaged ones, each of which costs a line in the log."""
    parts = [arrays(dict.fromkeys(names, ()))]
    for row in rows:
        values = dict(zip(names, row, strict=True))
        try:
            parts.append(arrays({name: (value,) for name, value in values.items()}))
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            logger.error(
                "The page number %.40r is left out: its row in the database is damaged (%s).", values["page"], error
            )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _select(
    database: Database,
    key: tuple[int, int],
    grid: str,
    n_rates: int,
    fingerprinter: str | None,
    pages: Sequence[int] | np.ndarray | None,
) -> Select[Any]:
    table = models.pages
    usable = and_(table.c.grid == grid, func.length(table.c.log_likelihood) == 2 * n_rates)
    statement = (
        select(
            table.c.page,
            *[table.c[name] for name in models.LOADED_COLUMNS],
            table.c.depth,
            table.c.host,
            table.c.part,
            table.c.request_fingerprint,
            case((usable, table.c.log_likelihood)).label("log_likelihood")
            if n_rates
            else null().label("log_likelihood"),
            case((table.c.request_fingerprinter == fingerprinter, 0), else_=1).label("other_fingerprinter")
            if fingerprinter is not None
            else literal(0).label("other_fingerprinter"),
        )
        .where(table.c.shard == key[0], table.c.collection == key[1])
        .order_by(table.c.page)
    )
    return statement if pages is None else statement.where(among(table.c.page, pages, database.engine.dialect.name))


def _compiled(database: Database, statement: Select[Any]) -> tuple[str, list[Any]]:
    """Return a statement and its parameters as the driver takes them."""
    compiled = statement.compile(dialect=database.engine.dialect, compile_kwargs={"render_postcompile": True})
    return str(compiled), [compiled.params[name] for name in compiled.positiontup or ()]


@contextmanager
def _cursor(database: Database, statement: Select[Any]) -> Iterator[Any]:
    """Open the driver's cursor on a statement; on PostgreSQL the server keeps the rows until they are asked for."""
    raw = database.engine.raw_connection()
    try:
        driver: Any = raw.driver_connection
        # Binary: numbers and bytes come without being written out as text and parsed again.
        cursor = driver.cursor() if database.is_sqlite else driver.cursor("crawlsched_load", binary=True)
        try:
            cursor.execute(*_compiled(database, statement))
            yield cursor
        finally:
            cursor.close()
    finally:
        raw.close()


def _arrays(columns: dict[str, Any], hosts: _HostNumbers | None, n_rates: int) -> dict[str, np.ndarray]:
    n = len(columns["page"])
    if not all(isinstance(host, str) for host in columns["host"]):
        raise TypeError("the name of a host is none")
    arrays = {
        name: np.array(columns[name], dtype=_TYPES.get(name, np.float64))
        for name in ("page", *models.LOADED_COLUMNS, "depth", "part")
    }
    never = np.isnan(arrays["crawled_at"])
    arrays["crawled_at"][never] = -np.inf
    arrays["host"] = _host_column(columns["host"], hosts)
    fingerprints = np.frombuffer(b"".join(columns["request_fingerprint"]), dtype=np.uint8)
    arrays["request_fingerprint"] = fingerprints.reshape(n, models.FINGERPRINT_SIZE)
    rows = columns["log_likelihood"]
    arrays["has_log_likelihood"] = np.array([row is not None for row in rows], dtype=bool)
    missing = bytes(2 * n_rates)
    likelihoods = np.frombuffer(b"".join([row or missing for row in rows]), dtype="<u2").astype(np.uint16, copy=False)
    arrays["log_likelihood"] = likelihoods.reshape(n, n_rates)
    arrays["other_fingerprinter"] = np.array(columns["other_fingerprinter"], dtype=bool)
    return arrays


def _host_column(names: Sequence[str], numbers: _HostNumbers | None) -> np.ndarray:
    """Return the numbers of hosts, or, where nobody gives numbers, their names."""
    if numbers is None:
        return np.array(names, dtype=object)
    return np.fromiter(map(numbers.__getitem__, names), dtype=np.int32, count=len(names))
