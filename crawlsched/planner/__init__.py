"""The planner: what is known of all pages, what each page is worth, and which page is crawled next.

It never reads a clock: `now` is an argument. Begin reading with `planner`.
"""

from crawlsched.frontier import Pick
from crawlsched.planner.planner import DEFAULT_GRID, Observation, Planner
from crawlsched.planner.plans.plan import Plan, Snapshot, plan
from crawlsched.planner.reports.explaining import explain, readable
from crawlsched.planner.reports.forecast import forecast

__all__ = [
    "DEFAULT_GRID",
    "Observation",
    "Pick",
    "Plan",
    "Planner",
    "Snapshot",
    "explain",
    "forecast",
    "plan",
    "readable",
]
