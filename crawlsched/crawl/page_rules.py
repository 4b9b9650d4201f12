"""The rules of CRAWLSCHED_PAGES: which of them holds for a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.recipe_choice import matcher
from crawlsched.pages.intervals import Limits
from crawlsched.settings import Settings
from crawlsched.settings.page_rules import PageRule

__all__ = ["PageRules", "limits"]


class PageRules:
    """Find the rule of a page: the first that fits its URL.

    Parameters
    ----------
    rules : sequence of PageRule

    Examples
    --------
    >>> rules = PageRules([PageRule("*/news/*", importance=3.0), PageRule("a.example", max_interval=60.0)])
    >>> [rules.number(url) for url in ("http://a.example/news/1", "http://a.example/", "http://b.example/")]
    [1, 2, 0]
    """

    def __init__(self, rules: Sequence[PageRule]) -> None:
        self._rules = tuple(rules)
        self._matchers: list[Callable[[str], object]] = [matcher(rule.where) for rule in rules]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def number(self, url: str) -> int:
        """Return the number of a page's rule, from 1; 0: there is none."""
        return next((number for number, fits in enumerate(self._matchers, 1) if fits(url)), 0)

    def numbers(self, urls: Sequence[str]) -> NDArray[np.uint8] | None:
        """Return the number of each page's rule; None if there are no rules."""
        return np.array([self.number(url) for url in urls], np.uint8) if self._rules else None

    def of(self, url: str) -> PageRule | None:
        """Return the rule of a page."""
        number = self.number(url) if self._rules else 0
        return self._rules[number - 1] if number else None


def limits(settings: Settings) -> list[Limits]:
    """Return the crawl intervals that each rule gives."""
    return [
        Limits(rule.min_interval or 0.0, np.inf if rule.max_interval is None else rule.max_interval)
        for rule in settings.pages
    ]
