"""Figures: the papers' figures and tables, simulated anew.

A `Figure` has its settings as printed, its simulation and its drawing. The tests in tests/papers check the papers'
claims about the figures. Each module has a tuple ``FIGURES`` with the figures of one kind. `FIGURES` here has all
figures by name.
"""

from crawlsched.simulation.figures import (
    accuracy,
    crawl_rates,
    frequency_of_change,
    online_estimators,
    optimal_crawl_rates,
    signal_estimates,
)
from crawlsched.simulation.figures.figure import Figure, FigureSettings, Progress, Row, Table, repeated
from crawlsched.simulation.history import SimulationError

__all__ = ["FIGURES", "Figure", "FigureSettings", "Progress", "Row", "SimulationError", "Table", "repeated"]

_MODULES = (
    accuracy,
    crawl_rates,
    signal_estimates,
    online_estimators,
    optimal_crawl_rates,
    frequency_of_change,
)


def _place(figure: Figure) -> tuple[str, int]:
    paper, _, number = figure.name.rpartition("-")
    return paper, int(number)


#: All figures by name, paper by paper and by number.
FIGURES: dict[str, Figure] = {
    figure.name: figure for figure in sorted((f for module in _MODULES for f in module.FIGURES), key=_place)
}
