"""Loading: the whole collection as arrays, block by block, without an object per page."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, and_, case, func, literal, select

from crawlsched.store import models
from crawlsched.store.rows import own

__all__ = ["page_blocks", "wanted_pages"]

logger = logging.getLogger("crawlsched.store")

Arrays = dict[str, np.ndarray]

#: Rows per call of the driver: few enough that they are gone before the garbage collector looks for cycles in them.
_FETCH = 500
_NUMBERS = (*models.LOADED_COLUMNS, "depth", "part")

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


def page_blocks(
    connection: Connection, wanted: Select[Any], block: int, host_number: Callable[[str], int] | None, n_rates: int
) -> Iterator[Arrays]:
    """Give the pages that are `wanted` in blocks, as `Store.load` does; what cannot be read is left out."""
    names = [column.name for column in wanted.selected_columns]
    # As names, where nobody gives numbers.
    number = cache(host_number) if host_number is not None else str
    result = connection.execution_options(stream_results=True, max_row_buffer=_FETCH).execute(wanted)
    while parts := list(_parts(result, block, lambda columns: _arrays(columns, number, n_rates), names)):
        yield {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _parts(result: Any, block: int, arrays: Callable[[dict[str, Any]], Arrays], names: list[str]) -> Iterator[Arrays]:
    """Fetch a block in parts of some hundred rows, which stay in the processor's cache while they become arrays."""
    for start in range(0, block, _FETCH):
        rows = result.fetchmany(min(_FETCH, block - start))
        if not rows:
            return
        try:
            part = arrays(dict(zip(names, zip(*rows, strict=True), strict=True)))
        except (TypeError, ValueError, OverflowError, AttributeError):
            part = _row_by_row(rows, arrays, names)
        del rows
        yield part


def _row_by_row(rows: Sequence[Any], arrays: Callable[[dict[str, Any]], Arrays], names: list[str]) -> Arrays:
    """Make rows into arrays; damaged ones are left out, with a line in the log for each."""
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


def wanted_pages(key: tuple[int, int], grid: str, n_rates: int, fingerprinter: str | None) -> Select[Any]:
    """Ask for all pages, in their order; for log-likelihoods of one grid, and which fingerprints another one made."""
    table = models.pages
    is_usable = and_(table.c.grid == grid, func.length(table.c.log_likelihood) == 2 * n_rates)
    is_other = literal(False) if fingerprinter is None else table.c.request_fingerprinter != fingerprinter
    return (
        select(
            *[table.c[name] for name in ("page", *_NUMBERS, "host", "request_fingerprint")],
            case((is_usable, table.c.log_likelihood)).label("log_likelihood"),
            is_other.label("other_fingerprinter"),
        )
        .where(*own(table, key))
        .order_by(table.c.page)
    )


def _arrays(columns: dict[str, Any], host_number: Callable[[str], Any], n_rates: int) -> Arrays:
    n = len(columns["page"])
    if not all(isinstance(host, str) for host in columns["host"]):
        raise TypeError("the name of a host is none")
    arrays = {name: np.array(columns[name], dtype=_TYPES.get(name, np.float64)) for name in ("page", *_NUMBERS)}
    arrays["crawled_at"][np.isnan(arrays["crawled_at"])] = -np.inf  # never
    arrays["host"] = np.array(list(map(host_number, columns["host"])), object if host_number is str else np.int32)
    fingerprints = np.frombuffer(b"".join(columns["request_fingerprint"]), dtype=np.uint8)
    arrays["request_fingerprint"] = fingerprints.reshape(n, models.FINGERPRINT_SIZE)
    rows = columns["log_likelihood"]
    arrays["has_log_likelihood"] = np.array([row is not None for row in rows], dtype=bool)
    missing = bytes(2 * n_rates)
    likelihoods = np.frombuffer(b"".join([row or missing for row in rows]), dtype="<u2").astype(np.uint16, copy=False)
    arrays["log_likelihood"] = likelihoods.reshape(n, n_rates)
    arrays["other_fingerprinter"] = np.array(columns["other_fingerprinter"], dtype=bool)
    return arrays
