"""Collections of pages in about a steady state, as the benchmarks need them, up to ten million pages."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.pages import LIVE
from crawlsched.planner import Planner

__all__ = ["START", "Collection", "collection", "pages_in_blocks"]

START = 1_000_000_000.0
BLOCK = 16_384
# Announcements: so many of the changes, and false ones beside them.
RECALL, FALSE_RATE = 0.6, 0.2

FloatArray = npt.NDArray[np.float64]


class Collection(NamedTuple):
    """Pages, and the truth about them.

    Attributes
    ----------
    planner : Planner
    change_rate, signal_rate : ndarray, shape (n,)
        True rates, per second.
    """

    planner: Planner
    change_rate: FloatArray
    signal_rate: FloatArray


def pages_in_blocks(n: int) -> list[npt.NDArray[np.intp]]:
    """Return the numbers of `n` pages, block by block."""
    return [np.arange(begin, min(begin + BLOCK, n)) for begin in range(0, n, BLOCK)]


def collection(n: int, bandwidth: float, announced: float = 0.0, now: float = START) -> Collection:
    """Return `n` pages that were crawled within the last two rounds, and of which a few visits have taught something.

    `announced` is the share of pages whose changes are announced.
    """
    rng, one_round = np.random.default_rng(0), n / bandwidth
    change_rate = np.exp(rng.normal(np.log(0.7 / one_round), 1.2, n))
    signal_rate = np.where(rng.random(n) < announced, RECALL * change_rate + FALSE_RATE / one_round, 0.0)
    planner = Planner(bandwidth)
    planner.reserve(n)
    for pages in pages_in_blocks(n):
        crawled_at = now - rng.uniform(0.0, 2.0 * one_round, pages.size)
        likelihood = learned_rows(planner.posterior.rates, change_rate[pages])
        heard = signal_rate[pages] > 0
        columns: dict[str, npt.NDArray[np.generic]] = {
            "page": pages,
            "state": np.full(pages.size, LIVE, np.uint8),
            "importance": rng.pareto(1.5, pages.size) + 0.1,
            "crawled_at": crawled_at,
            "host": np.zeros(pages.size, int),
            "n_crawls": np.full(pages.size, 20),
            "source": np.where(heard, 0, -1),
            "signalled_since": np.where(heard, crawled_at - 20 * one_round, np.nan),
            "n_signals_total": rng.poisson(20 * one_round * signal_rate[pages]),
        }
        planner.load(columns, likelihood, now)
    return Collection(planner, change_rate, signal_rate)


def learned_rows(rates: FloatArray, true: FloatArray) -> npt.NDArray[np.uint16]:
    """Return what a few visits have taught: compact log-likelihoods around the true rates."""
    distance = np.abs(np.log(rates)[np.newaxis] - np.log(true)[:, np.newaxis])
    distance -= distance.min(axis=1, keepdims=True)
    return np.minimum(distance * 3000, 65535).astype(np.uint16)
