"""Options: what a planner may be told, checked."""

from __future__ import annotations

import numpy as np

from crawlsched.planner.values.planned_values import POLICIES
from crawlsched.planner.values.rules import RULES, rule_named

__all__ = ["MAX_CRAWL_ROUNDS", "check_intervals", "check_policy", "positive"]

#: A page of any importance waits for hardly more rounds than these, even if it is not worth a crawl.
MAX_CRAWL_ROUNDS = 4.0


def check_policy(crawl_value: str) -> None:
    """Raise `ValueError` if there is no such crawl value."""
    if crawl_value not in ("posterior", *POLICIES) and rule_named(crawl_value) is None:
        names = ", ".join(("posterior", *RULES, "greedy_ncis_approx_j", *POLICIES))
        raise ValueError(f"crawl_value must be one of {names}, got {crawl_value!r}.")


def check_intervals(
    min_crawl_interval: float, max_crawl_interval: float | None, max_crawl_rounds: float | None, signal_delay: float
) -> None:
    """Raise `ValueError` if one of these is out of its range, or the longest is shorter than the shortest."""
    for name, seconds in (("min_crawl_interval", min_crawl_interval), ("signal_delay", signal_delay)):
        if not 0 <= seconds < np.inf:
            raise ValueError(f"{name} must be seconds, 0 or more and finite, got {seconds!r}.")
    if max_crawl_interval is not None and not max(min_crawl_interval, 1e-9) <= max_crawl_interval < np.inf:
        raise ValueError(
            f"max_crawl_interval must be None or finite seconds, above 0 and at least min_crawl_interval "
            f"({min_crawl_interval!r}), got {max_crawl_interval!r}."
        )
    if max_crawl_rounds is not None and not 1 <= max_crawl_rounds < np.inf:
        raise ValueError(f"max_crawl_rounds must be None or finite, 1 or more rounds, got {max_crawl_rounds!r}.")


def positive(name: str, value: float, unit: str) -> float:
    """Return a number above 0 and finite, or raise `ValueError`."""
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be {unit} above 0 and finite, got {value!r}.")
    return float(value)
