"""Loading: read the whole collection as arrays, block by block, without an object for each page."""

import logging
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from sqlalchemy import Connection, CursorResult, LargeBinary, Select, and_, case, cast, func, literal, select

from crawlsched.pages import FREE, STATE_NAMES, Pages
from crawlsched.store import models
from crawlsched.store.rows import END_OF_SOURCES, own

__all__ = ["page_blocks", "sound_pages", "wanted_pages"]

logger = logging.getLogger("crawlsched.store")

Arrays = dict[str, np.ndarray]

#: The driver fetches this number of rows together. They are freed before the garbage collector searches them.
_FETCH = 500
_NUMBERS = (*models.LOADED_COLUMNS, "depth", "part")

# The types of columns that are not floats.
_TYPES: dict[str, str] = {**Pages.types, "page": "i8", "depth": "i4"}
_LARGEST_TIME = 1e12
_STATE = "estimator_state"


def page_blocks(
    connection: Connection, wanted: Select[Any], block: int, host_number: Callable[[str], int] | None, n_rates: int
) -> Iterator[Arrays]:
    """Yield the pages that are `wanted` in blocks, as `Store.load` does; unreadable pages are left out."""

    @cache
    def number(host: str | bytes) -> Any:
        name = host if isinstance(host, str) else host.decode()
        if not name.isprintable():
            raise ValueError(f"its host is {name!r}")
        return name if host_number is None else host_number(name)

    with connection.execution_options(stream_results=True).execute(wanted) as result:
        names, size = list(result.keys()), min(block, _FETCH)
        # A few hundred rows at a time become arrays, since they fit into the processor's cache.
        parts = (_part(rows, names, lambda columns: _arrays(columns, number, n_rates)) for rows in _rows(result, size))
        while some := list(islice(parts, block // size)):
            yield _joined(some)


def _rows(result: CursorResult[Any], size: int) -> Iterator[Sequence[Any]]:
    """Yield the driver's own rows, since making SQLAlchemy's rows would take a fifth of the loading time."""
    rows, cursor = result.fetchmany(1), result.cursor  # SQLAlchemy has fetched the first row already
    while rows and cursor is not None:
        yield rows
        rows = cursor.fetchmany(size)


def _part(rows: Sequence[Any], names: list[str], arrays: Callable[[dict[str, Any]], Arrays]) -> Arrays:
    """Make rows into arrays; each damaged row is left out and logged."""
    try:
        return arrays(dict(zip(names, zip(*rows, strict=True), strict=True)))
    except (TypeError, ValueError, OverflowError, AttributeError, struct.error) as error:
        if len(rows) > 1:
            half = len(rows) // 2
            return _joined([_part(rows[:half], names, arrays), _part(rows[half:], names, arrays)])
        page = dict(zip(names, rows[0], strict=True))["page"]
        logger.error("The page number %.40r is left out: its row in the database is damaged (%s).", page, error)
        return arrays(dict.fromkeys(names, ()))


def _joined(parts: Sequence[Arrays]) -> Arrays:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def wanted_pages(
    key: tuple[int, int], grid: str, n_rates: int, fingerprinter: str | None, estimator: str, is_sqlite: bool
) -> Select[Any]:
    """Return a query for all pages by number, with likelihoods only of this grid, and states only of this estimator."""
    table = models.pages
    # Hosts are read as bytes, so that each distinct host is decoded only once.
    host = cast(table.c.host, LargeBinary).label("host") if is_sqlite else table.c.host
    is_usable = and_(table.c.grid == grid, func.length(table.c.log_likelihood) == 2 * n_rates)
    is_other = literal(False) if fingerprinter is None else table.c.request_fingerprinter != fingerprinter
    return (
        select(
            *[table.c[name] for name in ("page", *_NUMBERS, "request_fingerprint")],
            host,
            case((is_usable, table.c.log_likelihood)).label("log_likelihood"),
            is_other.label("other_fingerprinter"),
            *([case((table.c.estimator == estimator, table.c.estimator_state)).label(_STATE)] if estimator else ()),
        )
        .where(*own(table, key))
        .order_by(table.c.page)
    )


def _arrays(columns: dict[str, Any], host_number: Callable[[str], Any], n_rates: int) -> Arrays:
    n = len(columns["page"])
    arrays = {name: _column(columns[name], np.dtype(_TYPES.get(name, "f8"))) for name in ("page", *_NUMBERS)}
    crawled_at = arrays["crawled_at"]
    arrays["crawled_at"] = np.where(np.isnan(crawled_at), -np.inf, crawled_at)  # -inf: never crawled
    hosts = list(map(host_number, columns["host"]))
    arrays["host"] = np.array(hosts, object if hosts and isinstance(hosts[0], str) else np.int32)
    fingerprints = np.frombuffer(b"".join(columns["request_fingerprint"]), dtype=np.uint8)
    arrays["request_fingerprint"] = fingerprints.reshape(n, models.FINGERPRINT_SIZE)
    rows = columns["log_likelihood"]
    arrays["has_log_likelihood"] = np.array([row is not None for row in rows], dtype=bool)
    missing = bytes(2 * n_rates)
    likelihoods = np.frombuffer(b"".join([row or missing for row in rows]), dtype="<u2").astype(np.uint16, copy=False)
    arrays["log_likelihood"] = likelihoods.reshape(n, n_rates)
    arrays["other_fingerprinter"] = np.array(columns["other_fingerprinter"], dtype=bool)
    if _STATE in columns:
        arrays[_STATE] = np.array(columns[_STATE], dtype=object)
        arrays[f"has_{_STATE}"] = np.array([row is not None for row in columns[_STATE]], dtype=bool)
    return arrays


def _column(values: Sequence[Any], of: np.dtype[Any]) -> np.ndarray:
    """Make an array of numbers, in a third of the time that numpy alone takes; None becomes nan."""
    if of.kind == "f" and None in values:
        values = [math.nan if value is None else value for value in values]
    return np.frombuffer(struct.pack(f"{len(values)}{of.char}", *values), of)


def sound_pages(block: Arrays) -> Arrays:
    """Return a block of pages without the damaged pages, which are logged."""
    page, importance = block["page"], block["importance"]
    sound = (page >= 0) & (block["state"] > FREE) & (block["state"] < len(STATE_NAMES))
    sound &= np.isfinite(importance) & (importance >= 0.0)
    for name in ("true_signals", "false_signals"):
        sound &= np.isfinite(block[name]) & (block[name] >= 0.0)
    for name in ("crawled_at", "not_before", "signalled_since", "first_seen", "changed_at"):
        # The value for "never" is minus infinity for the last crawl, and nan for all other times.
        sound &= ~(block[name] > _LARGEST_TIME) & ~((block[name] < -_LARGEST_TIME) & (block[name] != -np.inf))
    block["source"] = np.where(block["source"] < END_OF_SOURCES, block["source"], -1)
    if sound.all():
        return block
    for number in page[~sound].tolist():
        logger.error("The page number %d is left out: its row in the database is damaged.", number)
    return {name: column[sound] for name, column in block.items()}
