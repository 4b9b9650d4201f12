"""Sampling: copies of an even sample of pages, from which a plan is made."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.blocks import blocks
from crawlsched.columns.growing import NumberColumn
from crawlsched.columns.numerics import GOLDEN
from crawlsched.pages import FREE
from crawlsched.planner.knowledge import Knowledge
from crawlsched.planner.plans.plan import Snapshot

__all__ = ["snapshot_in_parts"]

# A snapshot has the likelihoods of at most this number of pages.
_SAMPLE = 100_000


def snapshot_in_parts(
    known: Knowledge, host_limits: Callable[[], FloatArray] | None = None
) -> Generator[None, None, Snapshot]:
    """Copy what `plan` needs, in parts of a few milliseconds; pages may be picked and crawled between two parts.

    At most 100,000 pages, evenly chosen, are copied: that takes 30 ms for 10,000,000 pages. `host_limits` returns the
    crawls per second that each host allows; without it no host has a limit.
    """
    columns, n = known.pages, known.pages.n
    n_visited, sample = yield from _evenly(columns.n_crawls, n, lambda n_crawls: n_crawls != 0, _SAMPLE)
    n_new, new = yield from _evenly(columns.n_crawls, n, lambda n_crawls: n_crawls == 0, _SAMPLE)
    _, sources = yield from _evenly(columns.source, n, lambda source: source >= 0, _SAMPLE)
    likelihood = yield from _copied(known.posterior.codes(n), sample)
    hosts = yield from _copied(columns.host, sample)
    importance = yield from _copied(columns.importance, sample)
    table, (others, others_of) = known.further.table, known.further.everything()
    covered = np.concatenate([sources, others_of])
    signals = []
    for name in ("source", "signalled_since", "n_signals_total"):
        of_first = yield from _copied(getattr(columns, name), sources)
        signals.append(np.concatenate([of_first, table[name][others]]))
    source, since, n_total = signals
    signalled_hosts = yield from _copied(columns.host, covered)
    limits = None if host_limits is None else host_limits()
    held = np.zeros(1, np.bool_)
    if limits is not None and new.size:
        held = np.isfinite(limits[columns.host[new]]) & (columns.state[new] != FREE)
    return Snapshot(
        rates=known.posterior.rates,
        time=max(known.now, 0.0),
        n_pages=n_visited,
        pages=sample,
        log_likelihood=likelihood,
        hosts=hosts,
        importance=importance.astype(np.float64),
        host_limits=np.full(hosts.size, np.inf) if limits is None else limits[hosts],
        sources=source,
        signalled_hosts=signalled_hosts,
        n_signals_total=n_total.astype(np.float64),
        signalled_for=np.maximum(known.now - since, 0.0),
        n_held=round(n_new * float(np.mean(held))),
    )


def _copied(column: NumberColumn | npt.NDArray[Any], rows: IndexArray) -> Generator[None, None, npt.NDArray[Any]]:
    """Copy some rows of a column, in parts of about a millisecond."""
    found = []
    for part in blocks(max(rows.size, 1), width=16):  # the rows lie far apart in memory
        found.append(column[rows[part]])
        yield
    return np.concatenate(found)


def _evenly(
    column: NumberColumn | npt.NDArray[Any],
    n: int,
    is_one: Callable[[npt.NDArray[Any]], npt.NDArray[np.bool_]],
    most: int,
) -> Generator[None, None, tuple[int, IndexArray]]:
    """Count the rows of a column that `is_one` accepts; choose at most `most` of them evenly, in ascending order."""
    count, parts = 0, list(blocks(n, width=1))
    for part in parts:
        count += int(np.count_nonzero(is_one(column[part])))
        yield
    # One row is chosen in each of many stretches of equal length. The places within the stretches are irregular, since
    # a host may have every tenth row, for example.
    length, passed, found = max(count / most, 1.0), 0, [np.empty(0, np.intp)]
    stretch = np.arange(int(count / length))
    ranks = ((stretch + stretch * GOLDEN % 1) * length).astype(np.intp)
    for part in parts:
        rows = np.flatnonzero(is_one(column[part]))
        found.append(part.start + rows[ranks[slice(*ranks.searchsorted([passed, passed + rows.size]))] - passed])
        passed += rows.size
        yield
    return count, np.concatenate(found)
