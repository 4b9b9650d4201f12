"""How many pages there are, by state and by source, and on how many hosts; counted from the columns in memory."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from crawlsched.pages.pages import FREE, STATE_NAMES, Pages

__all__ = ["PageCounts", "counted", "counted_in_parts"]

# Rows that are counted in a step: a millisecond or so.
_AT_ONCE = 2**16


class PageCounts(NamedTuple):
    """What a collection holds."""

    states: dict[str, int]  # pages by the name of their state
    sources: dict[int, int]  # pages by the number of the first source that covers them; -1: none does
    hosts: int  # how many hosts have a page


def counted_in_parts(pages: Pages) -> Generator[None, None, PageCounts]:
    """Return a generator that yields between parts of a millisecond, and returns the counts; O(n)."""
    n = pages.n
    states, sources, has_pages = np.zeros(len(STATE_NAMES), int), np.zeros(1, int), np.zeros(1, bool)
    for start in range(0, n, _AT_ONCE):
        rows = slice(start, min(start + _AT_ONCE, n))
        state = pages.state[rows]
        known = state != FREE
        states += np.bincount(state, minlength=states.size)
        found = np.bincount(pages.source[rows][known] + 1, minlength=sources.size)
        found[: sources.size] += sources
        sources, hosts = found, pages.host[rows][known]
        if hosts.size and (most := int(hosts.max())) >= has_pages.size:
            has_pages = np.append(has_pages, np.zeros(most + 1 - has_pages.size, bool))
        has_pages[hosts] = True
        yield
    return PageCounts(
        dict(zip(STATE_NAMES[1:], states[1:].tolist(), strict=True)),
        {source - 1: count for source, count in enumerate(sources.tolist()) if count},
        int(np.count_nonzero(has_pages)),
    )


def counted(pages: Pages) -> PageCounts:
    """Do what `counted_in_parts` does at once.

    >>> pages = Pages()
    >>> _ = pages.add(host=np.array([0, 0, 7]), now=100.0)
    >>> counts = counted(pages)
    >>> counts.states["new"], counts.sources, counts.hosts
    (3, {-1: 3}, 2)
    """
    parts = counted_in_parts(pages)
    while True:
        try:
            next(parts)
        except StopIteration as end:
            counts: PageCounts = end.value
            return counts
