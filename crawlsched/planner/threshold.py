"""The threshold: at which crawl value pages that have a copy are picked."""

from __future__ import annotations

__all__ = ["Threshold"]

# The threshold follows the values picked: down with the first of these weights for the newest, up with the second, so
# that it stays where pages go that have waited for it. Announced ones jump over it.
_STEP_DOWN, _STEP_UP = 0.04, 0.004
# In ratios, of which none larger counts, as values spread over orders of magnitude.
_LARGEST_RATIO = 4.0


class Threshold:
    """Follows the values of picks.

    Attributes
    ----------
    value : float
        A running mean of the crawl values picked, of pages that have a copy.
    """

    def __init__(self) -> None:
        self.value, self._n = 0.0, 0

    def follow(self, crawl_value: float) -> None:
        """Let the threshold follow a value that was picked: the one at which pages that have a copy go."""
        self._n += 1
        if self.value <= 0.0:
            self.value = crawl_value
        else:
            # A page that is sure to have changed can be worth thousands of times what others are: one is no trend.
            ratio = min(max(crawl_value / self.value, 1 / _LARGEST_RATIO), _LARGEST_RATIO)
            # The first values are those of a young collection: it is their mean until there are enough.
            self.value *= ratio ** max(_STEP_UP if ratio > 1.0 else _STEP_DOWN, 1.0 / self._n)
