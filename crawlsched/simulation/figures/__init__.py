"""Figures: the papers' figures and tables, simulated anew.

A figure is a `Figure`: its settings as printed, how it is simulated, what the paper claims of it, how it is drawn.
Each module holds figures of one arrangement in a tuple ``FIGURES``; `FIGURES` here has them all by name.
"""

from crawlsched.simulation.figures import accuracy
from crawlsched.simulation.figures.figure import Claim, Figure, FigureError, Progress, Settings
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Row, Table

__all__ = ["FIGURES", "Claim", "Figure", "FigureError", "Progress", "Row", "Settings", "Table", "repeat"]

#: All figures by name, in the order of the papers.
FIGURES: dict[str, Figure] = {figure.name: figure for module in (accuracy,) for figure in module.FIGURES}
