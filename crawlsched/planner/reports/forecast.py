"""A forecast: which pages go next, if nothing comes in between."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.planner.planner import Planner

__all__ = ["forecast"]

# Of so many times as many pages, those that are likeliest to go now, the next ones are chosen.
_CANDIDATES = 8


def forecast(planner: Planner, now: float, n: int) -> IndexArray:
    """Return the pages that go next, in their order, if nothing is announced and no host is busy.

    Parameters
    ----------
    planner : Planner
    now : float
        POSIX seconds.
    n : int
        How many pages at most.

    Returns
    -------
    ndarray of int
        First those that go out of turn, then those that will be worth most when half of the others have gone.

    Examples
    --------
    >>> planner = Planner(bandwidth=1.0)
    >>> planner.add(host=0, now=0.0, importance=[1.0, 3.0, 2.0])
    array([0, 1, 2])
    >>> forecast(planner, 1.0, 2)
    array([1, 2])
    """
    now = planner.at(now)
    first = planner.frontier.out_of_turn(n)[:n]
    candidates = planner.peek(now, _CANDIDATES * n)
    candidates = candidates[~np.isin(candidates, first)]
    values = planner.frontier.values.many(candidates).at(now + 0.5 * n / planner.bandwidth)
    order = np.lexsort((candidates, -values))
    return np.array([*first, *candidates[order].tolist()][:n], np.intp)
