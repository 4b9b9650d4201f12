"""What one visit says of the pages next in number, page by page, as numba compiles it.

`crawlsched.planner.evidence.neighbours` has the same for numpy, all of them at once.
"""

from __future__ import annotations

from math import log1p
from typing import Any

import numpy as np

from crawlsched.pages import LIVE

__all__ = [
    "CHANGED",
    "EDGES",
    "EVIDENCE",
    "EXAMPLES",
    "HEIGHTS",
    "LEAST_STRENGTH",
    "MOST",
    "NEIGHBOURS",
    "STEPS_PER_NAT",
    "STRENGTH",
    "STRENGTHS",
    "UNCHANGED",
    "WORTH_FILING",
    "heard_of",
    "height",
    "is_quiet",
]

#: What has been heard of a page's neighbours, one byte each: visits that found a change and, after the first of these,
#: visits that found none; the strength of it; and the evidence that it is worth.
CHANGED, UNCHANGED, STRENGTH, EVIDENCE = range(4)
#: So many pages before it and after it are a page's neighbours.
NEIGHBOURS = 8
#: Heights: shares of neighbours found changed between these, one unchanged neighbour added for what was not visited.
EDGES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
HEIGHTS = len(EDGES) + 1
#: How a strength from 0 to 1, and evidence in nats, stand in eight bits.
STRENGTHS = 255.0
STEPS_PER_NAT = 64.0
#: The largest byte.
MOST = 255
#: A change that is less likely than this to be news of a page is none; and a page is filed again when its evidence
#: changes by so many steps.
LEAST_STRENGTH = 6
WORTH_FILING = 3


def height(n_changed: int, n_unchanged: int) -> int:
    """Return between which `EDGES` the share of neighbours that were found changed lies."""
    share, row = n_changed / (n_changed + n_unchanged + 1.0), 0
    while row < len(EDGES) and share > EDGES[row]:
        row += 1
    return row


def is_quiet(n_crawls: int, n_changes: int) -> bool:
    """Whether hardly any visit has found a page changed, which then seldom does what its neighbours do."""
    return 8 * n_changes + 3 < n_crawls


def heard_of(
    page: int,
    n_pages: int,
    before: float,
    now: float,
    changed: bool,
    surprise: float,
    worth: Any,
    state: Any,
    host: Any,
    host_high: Any,
    crawled_at: Any,
    n_crawls: Any,
    n_changes: Any,
    heard: Any,
    told: Any,
) -> int:
    """Let the neighbours of a page hear of a visit to it.

    Parameters
    ----------
    page, n_pages : int
    before, now : float
        The visit before and this one, POSIX seconds.
    changed : bool
    surprise : float
        Probability that the page had not changed by all that was known of it.
    worth : ndarray, shape (14,)
        Probability that a page has changed, too, at each height; then that of quiet pages.
    state, host, host_high, crawled_at, n_crawls, n_changes : ndarray, shape (n,)
        Columns of `Pages`; the host in two halves, as `NumberColumn` says, and of the counts the lower half.
    heard : ndarray of uint8, shape (n, 4)
        `Neighbours.heard`, brought up to date.
    told : ndarray of int, shape (16,)
        Gets the pages whose evidence has changed.

    Returns
    -------
    int
        How many these are.
    """
    count = 0
    for other in range(max(page - NEIGHBOURS, 0), min(page + NEIGHBOURS + 1, n_pages)):
        if other == page or state[other] != LIVE or host[other] != host[page] or not crawled_at[other] < now:
            continue
        if len(host_high) and host_high[other] != host_high[page]:
            continue
        if changed:
            # A change some time between the two visits came after the other page's crawl with this probability.
            share = (now - max(crawled_at[other], before)) / (now - before)
            found = int(surprise * share * STRENGTHS + 0.5)
            if found < LEAST_STRENGTH:
                continue
            heard[other, STRENGTH] = max(found, int(heard[other, STRENGTH]))
            heard[other, CHANGED] += 1
        elif heard[other, CHANGED] > 0:
            heard[other, UNCHANGED] += 1
        else:
            continue
        if heard[other, CHANGED] == MOST or heard[other, UNCHANGED] == MOST:
            # Older ones count ever less.
            heard[other, CHANGED] = (int(heard[other, CHANGED]) + 1) // 2
            heard[other, UNCHANGED] = int(heard[other, UNCHANGED]) // 2
        row = height(int(heard[other, CHANGED]), int(heard[other, UNCHANGED]))
        if is_quiet(int(n_crawls[other]), int(n_changes[other])):
            row += HEIGHTS
        steps = int(-log1p(-worth[row] * (int(heard[other, STRENGTH]) / STRENGTHS)) * STEPS_PER_NAT)
        if abs(steps - int(heard[other, EVIDENCE])) >= WORTH_FILING:
            heard[other, EVIDENCE] = steps
            told[count] = other
            count += 1
    return count


#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "heard_of": (
        *(0, 2, 0.0, 1.0, True, 0.5, np.zeros(2 * HEIGHTS), np.zeros(2, np.uint8), np.zeros(2, np.uint16)),
        *(
            np.zeros(0, np.uint16),
            np.zeros(2),
            np.zeros(2, np.uint16),
            np.zeros(2, np.uint16),
            np.zeros((2, 4), np.uint8),
            np.zeros(2 * NEIGHBOURS, np.int64),
        ),
    ),
}
