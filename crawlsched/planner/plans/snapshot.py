"""A snapshot: the sample of pages that a plan is made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["Snapshot"]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Copies of what a plan needs, taken by the crawling thread.

    Attributes
    ----------
    rates : ndarray, shape (K,)
        The grid of change rates.
    time : float
        POSIX seconds.
    n_pages : int
        How many pages have been visited.
    n_held : int
        How many have not, of hosts that let themselves be asked only so often.
    pages : ndarray of int, shape (n,)
        Visited pages, all or an even sample, ascending.
    log_likelihood : ndarray of uint8, shape (n, K)
        Their compact rows.
    hosts : ndarray of int, shape (n,)
        Their hosts.
    importance : ndarray, shape (n,)
        Their weights.
    host_limits : ndarray, shape (n,)
        Crawls per second that the host of each lets itself be asked for at most; inf: as many as anybody likes.
    sources, signalled_hosts, n_signals_total, signalled_for : ndarray, shape (s,)
        Of pages that a source covers, all or an even sample: the source, the page's host, the announcements that the
        source made, and in how many seconds.
    """

    rates: FloatArray
    time: float
    n_pages: int
    pages: IndexArray
    log_likelihood: npt.NDArray[np.uint8]
    hosts: npt.NDArray[np.int32]
    importance: FloatArray
    host_limits: FloatArray
    sources: npt.NDArray[np.int32]
    signalled_hosts: npt.NDArray[np.int32]
    n_signals_total: FloatArray
    signalled_for: FloatArray
    n_held: int = 0
