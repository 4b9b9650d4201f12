"""The rules of CRAWLSCHED_PAGES: which rule applies to a page, and how many pages each rule lets in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.recipe_choice import matcher
from crawlsched.settings.page_rules import PageRule
from crawlsched.store import Store
from crawlsched.store.rows import ROWS_AT_ONCE

__all__ = ["PageRules"]


class PageRules:
    """Finds the rule of a page (the first that fits its URL), and limits the number of pages of each rule.

    >>> rules = PageRules([PageRule("*/news/*", max_pages=1.0), PageRule("a.example", max_interval=60.0)], most=3)
    >>> [rules.number(url) for url in ("http://a.example/news/1", "http://a.example/", "http://b.example/")]
    [1, 2, 0]
    >>> [rules.takes(rule) for rule in (1, 1, 2, 0, 0)]
    [True, False, True, True, False]
    """

    def __init__(self, rules: Sequence[PageRule], most: float = inf) -> None:
        self._rules = tuple(rules)
        self._matchers: list[Callable[[str], object]] = [matcher(rule.where) for rule in rules]
        self._most = most
        self._of_rules = [inf, *(inf if rule.max_pages is None else rule.max_pages for rule in rules)]
        self.n_elsewhere = 0  # pages of other processes that share the collection
        self.n, self._n_of_rules = 0, np.zeros(len(self._of_rules), np.int64)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def number(self, url: str) -> int:
        """Return the number of a page's rule, from 1; 0 if no rule applies."""
        return next((number for number, fits in enumerate(self._matchers, 1) if fits(url)), 0)

    def numbers(self, urls: Sequence[str]) -> NDArray[np.uint8] | None:
        """Return the number of each page's rule; None if there are no rules."""
        return np.array([self.number(url) for url in urls], np.uint8) if self._rules else None

    def of(self, url: str) -> PageRule | None:
        """Return the rule of a page."""
        number = self.number(url)
        return self._rules[number - 1] if number else None

    def takes(self, rule: int) -> bool:
        """Count one more page under a rule (0: no rule) if there is room; return whether there was."""
        has_room = self.n + self.n_elsewhere < self._most and self._n_of_rules.item(rule) < self._of_rules[rule]
        if has_room:
            self.count(rule)
        return has_room

    def count(self, rule: int) -> None:
        """Count one more page, whether there is room or not."""
        self.n += 1
        self._n_of_rules[rule] += 1

    def gave_up(self, rules: NDArray[np.uint8]) -> None:
        """Subtract deleted pages, which had these rules."""
        self.n -= rules.size
        self._n_of_rules -= np.bincount(rules, minlength=len(self._of_rules))

    def count_known(self, store: Store) -> Iterator[None]:
        """Count the stored pages of each rule, if any rule has a limit; `n` counts them already."""
        after = -1
        while min(self._of_rules) < inf and (rows := store.reader.pages_to_weigh(after, ROWS_AT_ONCE, stated=True)):
            numbers = self.numbers([url for _, url, _, _ in rows])
            self._n_of_rules += np.bincount(numbers, minlength=len(self._of_rules))  # type: ignore[arg-type]
            after = rows[-1][0]
            yield
