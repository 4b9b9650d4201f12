"""The threshold: at which crawl value pages that have a copy are picked."""

from __future__ import annotations

__all__ = ["Threshold"]

# The threshold follows the values picked: down with the first of these weights for the newest, up with the second, so
# that it stays where pages go that have waited for it. Announced ones jump over it.
_STEP_DOWN, _STEP_UP = 0.04, 0.004
# In ratios, of which none larger counts, as values spread over orders of magnitude.
_LARGEST_RATIO = 4.0
# First crawls are worth many times what any other is. They count only where so many came in a row, and nothing else.
_FIRST_CRAWLS_IN_A_ROW = 100


class Threshold:
    """Follows the values of picks.

    Attributes
    ----------
    value : float
        A running mean of the crawl values picked, of pages that have a copy; of first crawls while nothing else goes.
    is_of_first_crawls : bool
        Whether it was made of the values of first crawls.
    first_crawls : int
        How many of these went in a row.
    """

    def __init__(self) -> None:
        self.value, self.is_of_first_crawls, self.first_crawls = 0.0, True, 0

    def follow(self, crawl_value: float, *, is_first: bool) -> None:
        """Let the threshold follow a value that was picked: the one at which pages that have a copy go."""
        self.first_crawls = self.first_crawls + 1 if is_first else 0
        if is_first and not self.is_of_first_crawls and self.first_crawls < _FIRST_CRAWLS_IN_A_ROW:
            return
        if is_first != self.is_of_first_crawls or self.value <= 0.0:
            self.is_of_first_crawls, self.value = is_first, crawl_value
        else:
            # A page that is sure to have changed can be worth thousands of times what others are: one is no trend.
            ratio = min(max(crawl_value / self.value, 1 / _LARGEST_RATIO), _LARGEST_RATIO)
            self.value *= ratio ** (_STEP_UP if ratio > 1.0 else _STEP_DOWN)
