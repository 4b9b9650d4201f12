"""What the figures of the noisy-signals paper have in common: bandwidth, policies, and the optimum without signals."""

from __future__ import annotations

from dataclasses import replace

from crawlsched.bandwidth import refresh_rates
from crawlsched.columns.array_types import FloatArray
from crawlsched.freshness import expected_freshness
from crawlsched.simulation.figures.table import Row
from crawlsched.simulation.history import History
from crawlsched.simulation.replaying import Replayed, replay

__all__ = [
    "BANDWIDTH",
    "BASELINE",
    "HORIZON",
    "PAPER",
    "POLICIES",
    "REPETITIONS",
    "baseline",
    "crawl_by",
    "optimal_rates",
    "plus_minus",
]

PAPER = "Busa-Fekete et al. (2025)"
# Section 6.3; 100 repetitions are named at the head of section 6.
BANDWIDTH = 100.0
HORIZON = 1000.0
REPETITIONS = 100
#: The optimal continuous policy that hears of no announcements, problem (5).
BASELINE = "baseline"
#: Policies by their names in the paper, as `replay` knows them.
POLICIES = {
    "GREEDY": "greedy",
    "LDS": "lds",
    "GREEDY-CIS": "greedy_cis",
    "GREEDY-CIS+": "greedy_cis_plus",
    "GREEDY-NCIS": "greedy_ncis",
    "G-NCIS-APPROX-1": "greedy_ncis_approx_1",
    "G-NCIS-APPROX-2": "greedy_ncis_approx_2",
}
# Those that do not listen need not be told.
_DEAF = ("GREEDY", "LDS")


def crawl_by(
    policy: str, history: History, horizon: float, bandwidth: float = BANDWIDTH, signal_delay: float = 0.0
) -> Replayed:
    """Let a policy that knows all rates crawl a history from 0 to the horizon."""
    if policy in _DEAF:
        history = replace(history, signal_rows=None, signal_times=None)
    return replay(history, bandwidth, POLICIES[policy], "known", start=0.0, end=horizon, signal_delay=signal_delay)


def optimal_rates(history: History, bandwidth: float = BANDWIDTH) -> FloatArray:
    """Return the crawl rates of the optimal continuous policy that hears of no announcements."""
    assert history.change_rate is not None
    return refresh_rates(history.change_rate, history.importance, bandwidth).rates


def baseline(history: History, bandwidth: float = BANDWIDTH) -> float:
    """Return the accuracy of that policy, by the formula in section 6.2."""
    assert history.change_rate is not None
    return expected_freshness(optimal_rates(history, bandwidth), history.change_rate, history.importance)


def plus_minus(row: Row) -> str:
    """Say a mean with its standard error.

    Examples
    --------
    >>> plus_minus(Row("accuracy", (), 0.51234, 0.00123, 10)), plus_minus(Row("accuracy", (), 0.5, float("nan"), 1))
    ('0.5123 ± 0.0012', '0.5000')
    """
    return f"{row.mean:.4f}" if row.repetitions == 1 else f"{row.mean:.4f} ± {row.standard_error:.4f}"
