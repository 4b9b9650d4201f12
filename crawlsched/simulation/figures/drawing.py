"""Drawing: panels of curves, all by the same code; matplotlib is an extra, and is not imported here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, isinf
from typing import Any

import numpy as np

from crawlsched.estimators.signal_fit import NORMAL_95
from crawlsched.simulation.figures.figure import Label, Row, Table

__all__ = ["Panel", "drawn"]


@dataclass(frozen=True)
class Panel:
    """Some quantities against a label; bars or bands are standard errors."""

    styles: Mapping[str, str]  # the quantities, and how each is drawn, as in ``axes.plot``
    x: str  # the label on the horizontal axis
    lines: tuple[str, ...] = ()  # labels; each value of a label has its own line
    each: str = ""  # a label; each of its values has its own panel
    where: Mapping[str, Label] = field(default_factory=dict)  # the values that other labels must have
    spread: str = ""  # a quantity of standard deviations: the band covers 95 % of a normal distribution
    # Results at these values of the horizontal axis are drawn as horizontal lines, and so are all results at infinity.
    levels: tuple[Label, ...] = ()
    level: float | None = None  # the height of a dotted horizontal line
    axes: Mapping[str, Any] = field(default_factory=dict)  # the arguments of ``axes.set``
    most_bars: int = 25  # with more points than this number, standard errors are a band around the curve

    def split(self, table: Table) -> list[Panel]:
        """Return a panel for each value of the label `each`; without this label, only this panel."""
        if not self.each:
            return [self]
        values = [
            value for value in table.values(self.each) if any(table.some(q, **{self.each: value}) for q in self.styles)
        ]
        titles = [f"m = {value}" if self.each == "pages" else f"{self.each} {value}" for value in values]
        return [
            replace(self, each="", where={**self.where, self.each: value}, axes={"title": title, **self.axes})
            for value, title in zip(values, titles, strict=True)
        ]

    def draw(self, table: Table, axes: Any) -> None:
        """Draw the panel."""
        if self.level is not None:
            axes.axhline(self.level, color="black", linestyle=":", linewidth=1)
        for quantity, style in self.styles.items():
            series: dict[str, list[Row]] = {}
            for row in table.some(quantity, **self.where):
                # Black marks are the same for all lines, so they are not labelled with a line.
                words = [] if style.startswith("k") else [str(table.label(row, name)) for name in self.lines]
                series.setdefault(", ".join(words if len(self.styles) == 1 else [quantity, *words]), []).append(row)
            for name, rows in series.items():
                self._draw_series(table, axes, rows, style, name)
        axes.set(**{"xlabel": self.x, "ylabel": next(iter(self.styles)), **self.axes})
        axes.grid(visible=True, alpha=0.3)

    def _draw_series(self, table: Table, axes: Any, rows: list[Row], style: str, name: str) -> None:
        points = []
        for row in rows:
            x = table.label(row, self.x)
            if x in self.levels:
                axes.axhline(row.mean, color=("red", "blue")[self.levels.index(x)], label=str(x))
            elif isinstance(x, float) and isinf(x):
                axes.axhline(row.mean, color="gray", linestyle=":", linewidth=1)
            else:
                points.append((x, row))
        if not points:
            return
        places, means = [x for x, _ in points], np.array([row.mean for _, row in points])
        errors = np.nan_to_num([row.standard_error for _, row in points])
        if self.spread:
            same = {label: table.label(rows[0], label) for label in self.lines}
            errors = NORMAL_95 * np.nan_to_num([row.mean for row in table.some(self.spread, **self.where, **same)])
        bars = errors if errors.any() and len(points) <= self.most_bars else None
        line = axes.errorbar(places, means, bars, fmt=style, capsize=3, markersize=4, label=name or None)[0]
        if errors.any() and bars is None:
            color = line.get_color()
            axes.fill_between(places, means - errors, means + errors, color=color, alpha=0.2, linewidth=0)


def drawn(*panels: Panel, columns: int = 3, width: float = 4.2, height: float = 3.6) -> Callable[[Table, Any], None]:
    """Return a function that draws panels from left to right in columns; a panel's width and height are in inches.

    If all panels have the same lines, they share a legend.
    """

    def draw(table: Table, canvas: Any) -> None:
        some = [one for panel in panels for one in panel.split(table)]
        across = min(columns, len(some))
        down = ceil(len(some) / across)
        canvas.set_size_inches(1 + width * across, 1 + height * down)
        grid = canvas.subplots(down, across, squeeze=False).ravel()
        for axes, panel in zip(grid, some, strict=False):
            panel.draw(table, axes)
        for axes in grid[len(some) :]:
            axes.set_axis_off()
        legends = [axes.get_legend_handles_labels() for axes in grid]
        if all(labels == legends[0][1] for _, labels in legends[: len(some)]):
            canvas.legend(*legends[0], loc="outside lower center", ncols=4, fontsize=8)
        else:
            for axes, (lines, labels) in zip(grid, legends, strict=True):
                if labels:
                    axes.legend(lines, labels, fontsize=8)

    return draw
