"""Packed reading: SQLite makes thousands of pages into a few strings, which numpy reads as arrays.

A row fetched by the driver is a tuple of some twenty Python objects, and the interpreter is held for each. Here one
statement gives a whole block: numbers as hexadecimal digits, blobs and texts one behind the other. SQLite does that
without the interpreter, so a thread of its own reads the next block while the one before is put to use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.store import models
from crawlsched.store.database import Database

__all__ = ["PackedReader"]

Arrays = dict[str, npt.NDArray[Any]]

# Numbers are written in words of 64 bits. Times to 2^-22 s, to which floating point holds any from 2004 on;
# importances to 2^-42 and counts of announcements to 2^-54, to which it holds what lies in their bounds below.
_TIME, _IMPORTANCE, _COUNT = 2.0**22, 2.0**42, 2.0**54
_WORDS = (
    # To SQLite shifts bind no closer than |.
    "page | (state << 32) | (n_errors << 40) | (({other}) << 48) | (({usable}) << 49) | ((marks & 4095) << 50)",
    "n_crawls | (n_changes << 32)",
    "n_signals_total | ((source + 1) << 32)",
    "n_signals | (part << 16) | (depth << 32)",
    f"ifnull(CAST(crawled_at * {_TIME} AS INTEGER), -1)",
    f"ifnull(CAST(changed_at * {_TIME} AS INTEGER), -1)",
    f"ifnull(CAST(signalled_since * {_TIME} AS INTEGER), -1)",
    f"CAST(first_seen * {_TIME} AS INTEGER)",
    f"CAST(not_before * {_TIME} AS INTEGER)",
    f"CAST(importance * {_IMPORTANCE} AS INTEGER)",
    f"CAST(true_signals * {_COUNT} AS INTEGER)",
    f"CAST(false_signals * {_COUNT} AS INTEGER)",
    "request_digest",
)
# A text is above any number and so out of bounds, too.
_BOUNDS = (
    *("page BETWEEN 0 AND 4294967295", "state BETWEEN 0 AND 255", "n_errors BETWEEN 0 AND 255"),
    *("n_crawls BETWEEN 0 AND 4294967295", "n_changes BETWEEN 0 AND 4294967295"),
    *("n_signals_total BETWEEN 0 AND 4294967295", "source BETWEEN -1 AND 2147483646"),
    *("n_signals BETWEEN 0 AND 65535", "part BETWEEN 0 AND 65535", "depth BETWEEN 0 AND 2147483647"),
    *("ifnull(crawled_at, 0) BETWEEN 0 AND 1e11", "ifnull(changed_at, 0) BETWEEN 0 AND 1e11"),
    *("ifnull(signalled_since, 0) BETWEEN 0 AND 1e11", "first_seen BETWEEN 0 AND 1e11"),
    *("not_before BETWEEN 0 AND 1e11", "(importance = 0 OR importance BETWEEN 4e-6 AND 1e6)"),
    *("true_signals BETWEEN 0 AND 256", "false_signals BETWEEN 0 AND 256"),
    *("marks BETWEEN 0 AND 65535", "request_digest BETWEEN 0 AND 9223372036854775807"),
)
_WHERE = "FROM pages WHERE shard = :shard AND collection = :collection AND page >= :start"
# `group_concat` passes over NULL, and gives blobs as they are where texts are UTF-8.
_BLOCK = """SELECT count(*), min({bounds}), group_concat(printf('{format}', {words}), ''),
    CAST(group_concat(request_fingerprint, '') AS BLOB), CAST(group_concat({likelihood}, '') AS BLOB),
    CAST(group_concat(host, char(0)) AS BLOB)
    {where} AND page < :stop"""
_NEXT = f"SELECT min(page) {_WHERE}"


class PackedReader:
    """Read the pages of an SQLite database in blocks, each while the one before is put to use.

    Parameters
    ----------
    database : Database
        An SQLite one.
    key : tuple of int
        Shard and collection.
    block : int
        Numbers of pages that a block spans.
    grid, n_rates, fingerprinter
        As for `Store.load`.
    """

    def __init__(
        self, database: Database, key: tuple[int, int], block: int, grid: str, n_rates: int, fingerprinter: str | None
    ) -> None:
        self._database = database
        self._block = block
        self._n_rates = n_rates
        other = "0" if fingerprinter is None else "request_fingerprinter IS NOT :fingerprinter"
        usable = "grid IS :grid AND length(log_likelihood) IS :width" if n_rates else "0"
        self._statement = _BLOCK.format(
            bounds=" AND ".join(_BOUNDS),
            format="%016x" * len(_WORDS),
            words=", ".join(_WORDS).format(other=other, usable=usable),
            likelihood=f"CASE WHEN {usable} THEN log_likelihood ELSE zeroblob(:width) END",
            where=_WHERE,
        )
        self._parameters = {
            **{"shard": key[0], "collection": key[1], "fingerprinter": fingerprinter},
            **{"grid": grid, "width": 2 * n_rates},
        }

    def blocks(self, by_row: Callable[[Any, int, int], Arrays]) -> Iterator[tuple[Arrays, list[str]]]:
        """Give the columns of each block, as `Store.load` does, but for ``host``, and the names of the hosts.

        Parameters
        ----------
        by_row : callable
            ``by_row(connection, start, stop)`` reads the pages of a block row by row, names of hosts in ``host``: for
            blocks with numbers that the words have no room for, or whose rows are damaged.
        """
        with self._connection() as connection, ThreadPoolExecutor(1, "crawlsched-load") as thread:

            def read(start: int) -> tuple[Arrays, list[str], int] | None:
                found = self._found(connection, start)
                if found is None:
                    return None
                start, row = found
                stop = start + self._block
                columns = self._unpacked(row)
                if columns is None:
                    columns = by_row(connection, start, stop)
                    return columns, columns.pop("host").tolist(), stop
                return columns, row[-1].decode().split("\0"), stop

            coming = thread.submit(read, 0)
            while (found := coming.result()) is not None:
                columns, hosts, stop = found
                coming = thread.submit(read, stop)
                yield columns, hosts

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """Open a connection of the driver's on which all blocks are read as the pages are now."""
        raw = self._database.engine.raw_connection()
        try:
            connection: Any = raw.driver_connection
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()
        finally:
            raw.close()

    def _found(self, connection: Any, start: int) -> tuple[int, tuple[Any, ...]] | None:
        """Read the block that begins there, or, where there is no page in it, with the next page; None: no more."""
        while True:
            row = connection.execute(
                self._statement, self._parameters | {"start": start, "stop": start + self._block}
            ).fetchone()
            if row[0]:
                return start, row
            (following,) = connection.execute(_NEXT, self._parameters | {"start": start}).fetchone()
            if not isinstance(following, int):  # none, or a damaged number, which SQLite puts behind all others
                return None
            start = int(following)

    def _unpacked(self, row: tuple[Any, ...]) -> Arrays | None:
        """Make what a statement has found into arrays; None if it does not fit."""
        n, fits, digits, fingerprints, likelihoods, hosts = row
        likelihoods = likelihoods or b""  # of no rates at all
        sizes = models.FINGERPRINT_SIZE * n, 2 * self._n_rates * n, n - 1
        if not fits or (len(fingerprints), len(likelihoods), hosts.count(b"\0")) != sizes:
            return None
        try:
            hosts.decode()
        except UnicodeDecodeError:
            return None
        words = np.frombuffer(bytes.fromhex(digits), ">u8").reshape(n, len(_WORDS)).T.astype(np.uint64)
        columns = {name: _field(words[word], *where) for name, (word, *where) in _FIELDS.items()}
        columns["source"] -= 1
        columns |= {
            "crawled_at": _times(words[4], -np.inf),
            "changed_at": _times(words[5], np.nan),
            "signalled_since": _times(words[6], np.nan),
            "first_seen": _times(words[7], np.nan),
            "not_before": _times(words[8], np.nan),
            "importance": (words[9] / _IMPORTANCE).astype(np.float32),
            "true_signals": (words[10] / _COUNT).astype(np.float32),
            "false_signals": (words[11] / _COUNT).astype(np.float32),
            "request_digest": words[12].astype(np.int64),
            "request_fingerprint": np.frombuffer(fingerprints, np.uint8).reshape(n, models.FINGERPRINT_SIZE),
            "log_likelihood": np.frombuffer(likelihoods, "<u2").astype(np.uint16, copy=False).reshape(n, self._n_rates),
        }
        return columns


# Word, first bit, bits and type of what is a part of a word.
_FIELDS: dict[str, tuple[Any, ...]] = {
    "page": (0, 0, 32, np.int64),
    "state": (0, 32, 8, np.uint8),
    "n_errors": (0, 40, 8, np.uint8),
    "other_fingerprinter": (0, 48, 1, np.bool_),
    "has_log_likelihood": (0, 49, 1, np.bool_),
    "marks": (0, 50, 12, np.uint16),
    "n_crawls": (1, 0, 32, np.uint32),
    "n_changes": (1, 32, 32, np.uint32),
    "n_signals_total": (2, 0, 32, np.uint32),
    "source": (2, 32, 32, np.int32),
    "n_signals": (3, 0, 16, np.uint16),
    "part": (3, 16, 16, np.uint16),
    "depth": (3, 32, 32, np.int32),
}


def _field(word: npt.NDArray[np.uint64], first: int, bits: int, dtype: type) -> npt.NDArray[Any]:
    return (word >> np.uint64(first) & np.uint64((1 << bits) - 1)).astype(dtype)


def _times(word: npt.NDArray[np.uint64], missing: float) -> npt.NDArray[np.float64]:
    times: npt.NDArray[np.float64] = word.view(np.int64) / _TIME
    times[times < 0] = missing
    return times
