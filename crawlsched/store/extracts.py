"""Extracts: what the shards of a collection have learned, a row of each for the others."""

from __future__ import annotations

import logging
from io import BytesIO

import numpy as np
from sqlalchemy import Connection, LargeBinary, delete, func, insert, select

from crawlsched.sharing import MOST_ROWS, Extract
from crawlsched.store import models
from crawlsched.store.lease import shards_of

__all__ = ["of_others", "put"]

logger = logging.getLogger(__name__)

Key = tuple[int, int]

# So many rows of all other shards together are read for a plan at most: 1 MB.
_MOST_READ = 32_768
_ROW_TYPE = np.dtype(np.uint8)


def put(connection: Connection, key: Key, grid: str, extract: Extract, now: float) -> None:
    """Write down what a shard has learned, in the place of what it knew before."""
    table, losses = models.extracts, extract.neighbour_losses
    connection.execute(delete(table).where(table.c.shard == key[0], table.c.collection == key[1]))
    values = {
        "shard": key[0],
        "collection": key[1],
        "made_at": now,
        "grid": grid,
        "n_pages": extract.n_pages,
        "log_likelihood": np.ascontiguousarray(extract.log_likelihood, _ROW_TYPE).tobytes(),
        "n_true": extract.announcements[0],
        "n_judged": extract.announcements[1],
        "neighbour_losses": None if losses is None else _written(losses),
    }
    connection.execute(insert(table).values(**values))


def of_others(connection: Connection, key: Key, grid: str, n_rates: int) -> list[Extract] | None:
    """Give what the other shards know; None: the collection has no shards. What is damaged is left out, and said."""
    n_shards = shards_of(connection, key[1])
    if n_shards is None:
        return None
    table, width = models.extracts, n_rates * _ROW_TYPE.itemsize
    n_rows = min(MOST_ROWS, max(_MOST_READ // n_shards, 1))
    part = func.substr(table.c.log_likelihood, 1, n_rows * width, type_=LargeBinary)
    columns = (
        table.c.shard,
        table.c.n_pages,
        part.label("rows"),
        table.c.n_true,
        table.c.n_judged,
        table.c.neighbour_losses,
    )
    wanted = select(*columns).where(table.c.collection == key[1], table.c.shard != key[0], table.c.grid == grid)
    found = []
    for row in connection.execute(wanted.order_by(table.c.shard)):
        try:
            rows = np.frombuffer(row.rows, _ROW_TYPE).reshape(-1, n_rates)
            losses = None if row.neighbour_losses is None else np.load(BytesIO(row.neighbour_losses))
        except (ValueError, EOFError, OSError) as error:
            logger.error(
                "What shard %d has learned is left out: its row in the database is damaged (%s).", row.shard, error
            )
            continue
        found.append(Extract(row.n_pages, rows, (row.n_true, row.n_judged), losses))
    return found


def _written(array: np.ndarray) -> bytes:
    written = BytesIO()
    np.save(written, array.astype(np.float32))
    return written.getvalue()
