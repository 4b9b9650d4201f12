"""Simulation: histories of changes, and policies that crawl them on a simulated clock."""

from crawlsched.simulation.history import History, SimulationError, Window, open_text, read_history, slot_times
from crawlsched.simulation.measuring import freshness
from crawlsched.simulation.policies import ESTIMATOR_NAMES, POLICIES, default_estimator
from crawlsched.simulation.replaying import Replayed, replay

__all__ = [
    "ESTIMATOR_NAMES",
    "POLICIES",
    "History",
    "Replayed",
    "SimulationError",
    "Window",
    "default_estimator",
    "freshness",
    "open_text",
    "read_history",
    "replay",
    "slot_times",
]
