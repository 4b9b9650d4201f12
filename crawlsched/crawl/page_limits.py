"""How many URLs are taken as pages: of the whole collection, and of each rule of CRAWLSCHED_PAGES that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.page_rules import PageRules
from crawlsched.store import Store

__all__ = ["PageLimits"]

# URLs read together to count how many pages each rule has.
_COUNTED_AT_ONCE = 4_000


class PageLimits:
    """Count pages in while there is room for them.

    Parameters
    ----------
    most : float
        Of the whole collection.
    of_rules : iterable of float or None
        Of each rule, the first of which has the number 1; None: any.

    Examples
    --------
    >>> limits = PageLimits(3, [1, None])
    >>> [limits.takes(rule) for rule in (1, 1, 2, 0, 0)]
    [True, False, True, True, False]
    """

    def __init__(self, most: float, of_rules: Iterable[float | None]) -> None:
        self._most = most
        self._of_rules = [inf, *(inf if limit is None else limit for limit in of_rules)]
        self.n, self._n_of_rules = 0, np.zeros(len(self._of_rules), np.int64)

    def takes(self, rule: int) -> bool:
        """Whether there is room for one more page, of a rule (0: of none), which counts then."""
        has_room = self.n < self._most and self._n_of_rules.item(rule) < self._of_rules[rule]
        if has_room:
            self.count(rule)
        return has_room

    def count(self, rule: int) -> None:
        """One more is a page, whether there is room or not."""
        self.n += 1
        self._n_of_rules[rule] += 1

    def gave_up(self, rules: NDArray[np.uint8]) -> None:
        """Pages of these rules are no more."""
        self.n -= rules.size
        self._n_of_rules -= np.bincount(rules, minlength=len(self._of_rules))

    def count_known(self, store: Store, rules: PageRules) -> Iterator[None]:
        """Count the stored pages of each rule, some thousands at a time, if any rule allows only so many."""
        after = -1 if min(self._of_rules) < inf else store.reader.next_page()
        while rows := store.reader.pages_to_weigh(after, _COUNTED_AT_ONCE, stated=True):
            numbers = rules.numbers([url for _, url, _, _ in rows])
            assert numbers is not None
            self.load(numbers)
            after = rows[-1][0]
            yield

    def load(self, rules: NDArray[np.uint8]) -> None:
        """Pages of these rules are known from an earlier crawl, and counted in `n` already."""
        self._n_of_rules += np.bincount(rules, minlength=len(self._of_rules))
