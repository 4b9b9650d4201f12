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
    host_limits : ndarray, shape (n,)
        Crawls per second that the host of each lets itself be asked for at most; inf: as many as anybody likes.
    sources, signalled_hosts, n_signals_total, signalled_for : ndarray, shape (s,)
        Of pages that a source covers, all or an even sample: the source, the page's host, the announcements that the
        source made, and in how many seconds.
    """

    rates: FloatArray  # the grid of change rates; shape (K,)
    time: float  # POSIX seconds
    n_pages: int  # how many pages have been visited
    pages: IndexArray  # visited pages, all or an even sample, ascending; shape (n,)
    log_likelihood: npt.NDArray[np.uint8]  # their compact rows; shape (n, K)
    hosts: npt.NDArray[np.int32]  # their hosts; shape (n,)
    importance: FloatArray  # their weights; shape (n,)
    host_limits: FloatArray
    sources: npt.NDArray[np.int32]
    signalled_hosts: npt.NDArray[np.int32]
    n_signals_total: FloatArray
    signalled_for: FloatArray
    n_held: int = 0  # how many have not, of hosts that let themselves be asked only so often
