"""The value of one page where it is found as those of many are."""

from __future__ import annotations

import numpy as np

from crawlsched.frontier import PageValue, PageValues

__all__ = ["ValueAlone"]

# Values are right to 1e-13 or so; bounds stay clear of that.
_SLACK = 1.0 + 1e-10


class ValueAlone(PageValue):
    """The only one of some page values; see `crawlsched.frontier.PageValue`.

    Parameters
    ----------
    values : PageValues
        Of one page.
    """

    __slots__ = ("_values", "steady")

    def __init__(self, values: PageValues) -> None:
        self._values = values
        self.steady = values.steady.item(0)

    def at(self, now: float) -> float:
        """Return the crawl value at a time."""
        return self._values.at(now).item(0)

    def bound(self, until: float, rough: bool = False) -> float:
        """Return what the crawl value does not exceed until a time."""
        return self.at(until) * (1.0 if self.steady else _SLACK)

    def parabola(self, after: float, until: float) -> tuple[float, float, float]:
        """Return value, slope and half curvature of a parabola that the crawl value does not exceed until a time."""
        value, slope, curvature = self._values.parabolas(after, until)[:, 0].tolist()
        return value, slope, curvature

    def crossing(self, value: float, after: float) -> float:
        """Return a time before which the crawl value is below `value`, at least `after`; inf if it is for ever."""
        return self._values.crossings(np.array([value]), after, np.ones(1, bool)).item(0)
