"""What announcements of pages are worth, page by page, as numba compiles it.

`crawlsched.planner.evidence.announcements` has the same for numpy, which needs a hundred calls for what stands here in
one loop.
"""

from __future__ import annotations

from math import expm1, inf, log
from typing import Any

import numpy as np

from crawlsched.estimators.page_precision import expected_evidence
from crawlsched.planner.evidence.page_precision import EXTREME, OF_THE_SOURCE, STEPS
from crawlsched.planner.parameters.signal_groups import PARTS

__all__ = ["EXAMPLES", "LEAST_WEIGHT", "SIGNALS_OF_A_RATE", "signals_known"]

#: A page's signal rate is its own count of signals with so many added at the rate of its source.
SIGNALS_OF_A_RATE = 2.0
#: With less than this a signal tells nothing, and its page is treated as one without signals.
LEAST_WEIGHT = 1e-4


def _row_of_group(keys: Any, n_hosts: int, source: Any, host: Any, part: Any) -> int:
    """Return the row of a page's finest group, -1 if it has none, as `SignalGroups.rows`."""
    if host < n_hosts:
        for which in (np.int64(part), np.int64(-1)):
            key = (np.int64(source) * n_hosts + host) * PARTS + which + 1
            low, high = 0, len(keys)
            while low < high:
                middle = (low + high) >> 1
                if keys[middle] < key:
                    low = middle + 1
                else:
                    high = middle
            if low < len(keys) and keys[low] == key:
                return low
    return -1


def _number(low: Any, high: Any, page: Any) -> int:
    """Return how far a number of a `NumberColumn` is above the least."""
    number = np.int64(low[page])
    if len(high):
        number += np.int64(high[page]) << 16
    return number  # type: ignore[return-value]


def signals_known(
    pages: Any,
    chosen: Any,
    sources: Any,
    sources_high: Any,
    hosts: Any,
    hosts_high: Any,
    totals: Any,
    totals_high: Any,
    rare: Any,
    rare_high: Any,
    parts: Any,
    n_signals: Any,
    crawled_at: Any,
    since: Any,
    own_roots: Any,
    weights: Any,
    rates: Any,
    keys: Any,
    n_hosts: int,
    group_weights: Any,
    group_rates: Any,
    found: Any,
) -> None:
    """Set signal rate, signal weight and evidence, shape (3, n), of the chosen pages that have one source at most.

    As `Announcements.known`; all columns are by page but `chosen`, which has rows of `pages`, and `since`,
    which is by rare fact; four in two halves, as `NumberColumn` says. What is not chosen, or has no source, stays as it
    is.
    """
    for at in range(len(chosen)):
        n = chosen[at]
        page = pages[n]
        source = _number(sources, sources_high, page) - 1
        if source < 0:
            continue
        kind = min(source, len(weights) - 1)
        weight, rate = weights[kind], rates[kind]
        if len(keys):
            row = _row_of_group(keys, n_hosts, source, _number(hosts, hosts_high, page), parts[page])
            if row >= 0:
                weight, rate = group_weights[row], group_rates[row]
        mean = min(max(-expm1(-weight), EXTREME), 1.0 - EXTREME)
        true, false = OF_THE_SOURCE * mean, OF_THE_SOURCE * (1.0 - mean)
        if page < len(own_roots):
            root, other = own_roots[page, 0] / STEPS, own_roots[page, 1] / STEPS
            true, false = true + root * root, false + other * other
        weight = -log(false / (true + false))
        if weight < LEAST_WEIGHT:
            found[0, n] = found[1, n] = found[2, n] = 0.0
            continue
        heard, total = float(n_signals[page]), float(_number(totals, totals_high, page))
        if total == 0.0 or rate <= 0.0:
            rate = 0.0
        else:
            time = crawled_at[page] - since[_number(rare, rare_high, page)]
            if not (time > 0.0 and time < inf):
                time = 0.0
            counted = max(total - heard, 0.0)
            rate = (counted + SIGNALS_OF_A_RATE) / (time + SIGNALS_OF_A_RATE / rate)
        found[0, n], found[1, n] = rate, weight
        found[2, n] = expected_evidence(true, false, heard) if heard > 1.0 else weight * heard


_ROW, _THREE, _INT = np.full(2, 0.5), np.full((3, 2), 0.5), np.arange(2)
_UINT16 = _INT.astype(np.uint16)
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "signals_known": (
        *(_INT, _INT, *[_UINT16] * 10, _ROW, _ROW),
        *(_UINT16.reshape(1, 2), _ROW, _ROW, _INT, 1, _ROW, _ROW, _THREE.copy()),
    ),
}
