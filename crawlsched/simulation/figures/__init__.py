"""Figures: the papers' figures and tables, simulated anew.

A figure is a `Figure`: its settings as printed, how it is simulated, how it is drawn. The papers' claims about them are
tested (tests/papers). Each module holds figures of one arrangement in a tuple ``FIGURES``; `FIGURES` here has them all
by name.
"""

from crawlsched.simulation.figures import (
    accuracy,
    crawl_rates,
    frequency_of_change,
    online_estimators,
    optimal_crawl_rates,
    signal_estimates,
)
from crawlsched.simulation.figures.figure import Figure, Progress, Row, Settings, Table, repeated
from crawlsched.simulation.history import SimulationError

__all__ = ["FIGURES", "Figure", "Progress", "Row", "Settings", "SimulationError", "Table", "repeated"]

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
