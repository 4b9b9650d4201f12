"""Candidates: the pages of one queue whose time has come, and the level of crawl value at which it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.frontier.value_lines import CrawlValues, ValueLines
from crawlsched.pages import Pages

__all__ = ["ENOUGH", "Candidates"]

#: A candidate is worth this share of the level or more, as due times are no better than that.
ENOUGH = 0.95


class Candidates:
    """The candidates of one queue, those of resting hosts set aside, and the level that they have to reach.

    A host with more due pages than it can be asked for has a higher level of its own.
    """

    def __init__(self, pages: Pages, values: CrawlValues) -> None:
        self._columns, self._values = pages, values
        self.level = 0.0  # pages are due when their crawl value reaches it
        self.host_levels: dict[int, float] = {}
        # The candidates whose hosts do not rest, and those of each resting host.
        self.going = ValueLines(pages, values)
        self.aside: dict[int, ValueLines] = {}
        # No other page may go before the first time; all pages are not searched again for one before the second.
        self.idle_until = self.searched_until = -np.inf
        # After a level came down due times are reckoned anew: of `to_sweep` rows from `swept` on, and of `of_hosts`.
        self.swept = self.to_sweep = 0
        self.of_hosts: IndexArray = np.zeros(0, np.intp)

    def levels(self, hosts: npt.NDArray[Any]) -> float | FloatArray:
        """Return the level of each host, or one for all. O(n)."""
        if not self.host_levels:
            return self.level
        own = np.array([self.host_levels.get(host, 0.0) for host in hosts.tolist()])
        higher: FloatArray = np.maximum(own, self.level)
        return higher

    def add(self, pages: IndexArray, now: float, until: float, host: int | None = None) -> IndexArray:
        """Take in pages worth enough by `until`, of a host that rests if one is given; return the others; O(n)."""
        lines, hosts = self.going.of(pages, now), self._columns.host[pages]
        enough = lines[0] + lines[1] * (until - now) >= ENOUGH * self.levels(hosts)
        into = self.going
        if host is not None and enough.any():
            into = self.aside.setdefault(host, ValueLines(self._columns, self._values))
        into.append(pages[enough], hosts[enough], lines[:, enough])
        others: IndexArray = pages[~enough]
        return others

    def highest(self, now: float) -> float:
        """Return what the best candidate is worth, whether its host is free or not; -inf: none. O(candidates)."""
        return float(self.going.values_at(now).max(initial=-np.inf))

    def best(self, now: float, is_free: Callable[[int], bool]) -> tuple[int, float] | None:
        """Return row and value of the best candidate, the lowest page among equals; O(candidates).

        ``is_free(host)`` says whether a host may be asked; if not, it lets the host rest.
        """
        while len(self.going):
            values = self.going.values_at(now)
            row = int(values.argmax())
            value = values.item(row)
            equal = np.flatnonzero(values == value)
            if equal.size > 1:
                row = int(equal[self.going.pages[equal].argmin()])
            if is_free(self.going.hosts.item(row)):
                return row, value
        return None

    def raise_level(self, now: float) -> IndexArray:
        """Raise the level to the median of the candidates; take those below out, and return them. O(candidates)."""
        values = self.going.values_at(now)
        self.level = max(self.level, float(np.median(values)))
        return self.going.take(values < self.level)[0]

    def rest(self, host: int) -> IndexArray:
        """Set a host's candidates aside, and return them. O(candidates)."""
        chosen = self.going.hosts == host
        if not chosen.any():
            return np.zeros(0, np.intp)
        taken = self.going.take(chosen)
        self.aside.setdefault(host, ValueLines(self._columns, self._values)).append(*taken)
        return taken[0]

    def returns(self, host: int) -> IndexArray:
        """Let a host's candidates take part again, and return them. O(those of the host)."""
        waiting = self.aside.pop(host, None)
        if waiting is None:
            return np.zeros(0, np.intp)
        taken = waiting.take(np.ones(len(waiting), bool))
        self.going.append(*taken)
        return taken[0]

    def raise_host_level(self, host: int, now: float) -> IndexArray:
        """Raise the level of a resting host to the median of its candidates, return those below; O(its candidates)."""
        aside = self.aside[host]
        values = aside.values_at(now)
        level = self.host_levels[host] = max(self.host_levels.get(host, self.level), float(np.median(values)))
        return aside.take(values < level)[0]

    def discard(self, page: int) -> None:
        """Take out a page that is a candidate. O(candidates)."""
        aside = self.aside.get(self._columns.host.item(page))
        for lines in (self.going, aside) if aside is not None else (self.going,):
            rows = np.flatnonzero(lines.pages == page)
            if rows.size:
                lines.take_row(int(rows[0]))
                return
