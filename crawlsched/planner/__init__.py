"""The planner: what is known of all pages, what each is worth, and which goes next."""

from crawlsched.frontier import Pick
from crawlsched.planner.planner import DEFAULT_GRID, Planner
from crawlsched.planner.plans.plan import Plan, Snapshot, plan
from crawlsched.planner.reports.explanation import Explanation, Observation
from crawlsched.planner.reports.prospects import prospects
from crawlsched.planner.state import plan_in_force, planner_arrays, planner_facts, plans_in_turn, restore_planner

__all__ = [
    "DEFAULT_GRID",
    "Explanation",
    "Observation",
    "Pick",
    "Plan",
    "Planner",
    "Snapshot",
    "plan",
    "plan_in_force",
    "planner_arrays",
    "planner_facts",
    "plans_in_turn",
    "prospects",
    "restore_planner",
]
