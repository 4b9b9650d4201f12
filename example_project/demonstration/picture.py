"""The picture: freshness over time on both sites. matplotlib draws it; without matplotlib it is a plain SVG."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

OURS, IN_TURN, QUIET = "#1b6ca8", "#c8553d", "#666666"
Series = list[tuple[float, float]]


@dataclass(frozen=True)
class Picture:
    """The content of the picture: two series of (seconds, freshness), their means, and a title.

    The means are pairs: over the measured part, and over the whole run.
    """

    ours: Series
    in_turn: Series
    mean_ours: tuple[float, float]
    mean_in_turn: tuple[float, float]
    measured_from: float
    seconds: float
    title: str

    def write(self, folder: Path) -> Path:
        """Write the picture into the folder and return its path."""
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            return self.write_svg(folder / "freshness.svg")
        return self.write_png(folder / "freshness.png")

    @property
    def lines(self) -> list[tuple[Series, tuple[float, float], str, str]]:
        """Return (series, means, name, colour), the better one first."""
        ours = (self.ours, self.mean_ours, "crawlsched", OURS)
        in_turn = (self.in_turn, self.mean_in_turn, "in turn", IN_TURN)
        return [ours, in_turn] if self.mean_ours >= self.mean_in_turn else [in_turn, ours]

    def write_png(self, path: Path) -> Path:
        """Draw with matplotlib."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 5), dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.axvspan(0, self.measured_from, color="#f1f1f1", zorder=0)
        axes.text(self.measured_from / 2, 0.985, "getting to know the site", ha="center", va="top", color=QUIET)
        middle = (self.measured_from + self.seconds) / 2
        axes.text(middle, 0.985, "measured", ha="center", va="top", color=QUIET)
        for (series, (mean, of_all), name, colour), above in zip(self.lines, (True, False), strict=True):
            axes.plot([t for t, _ in series], [share for _, share in series], color=colour, linewidth=2)
            axes.hlines(mean, self.measured_from, self.seconds, color=colour, linewidth=1, linestyle=(0, (4, 3)))
            place = max(share for t, share in series if t >= self.measured_from) if above else None
            place = place if place is not None else min(share for t, share in series if t >= self.measured_from)
            axes.annotate(
                f"{name}: {mean:.0%} fresh ({of_all:.0%} over all {self.seconds:.0f} s)",
                (middle, place),
                xytext=(0, 8 if above else -8),
                textcoords="offset points",
                ha="center",
                va="bottom" if above else "top",
                color=colour,
                fontsize=13,
                fontweight="bold",
            )
        axes.set(xlim=(0, self.seconds), ylim=(0, 1), xlabel="seconds since both crawls began")
        axes.set_ylabel("share of the site's living pages\nof which the crawler's copy is up to date")
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_title(self.title, loc="left", fontsize=12)
        figure.savefig(path)
        return path

    def write_svg(self, path: Path) -> Path:
        """Draw by hand: the same picture in a few lines of SVG."""
        left, top, width, height = 70.0, 50.0, 760.0, 360.0

        def x(t: float) -> float:
            return left + width * t / self.seconds

        def y(share: float) -> float:
            return top + height * (1.0 - share)

        def text(x: float, y: float, colour: str, anchor: str, size: int, words: str) -> str:
            place = f'x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}"'
            return f"<text {place}>{escape(words)}</text>"

        parts = [
            '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="480" font-family="sans-serif">',
            '<rect width="900" height="480" fill="white"/>',
            f'<rect x="{left}" y="{top}" width="{x(self.measured_from) - left:.1f}" height="{height}" fill="#f1f1f1"/>',
            text(left, 28, "black", "start", 15, self.title),
            text(left + width / 2, 460, "black", "middle", 13, "seconds since both crawls began"),
            text(x(self.measured_from / 2), top + 16, QUIET, "middle", 12, "getting to know the site"),
        ]
        for i in range(6):
            share, second = i / 5, self.seconds * i / 5
            parts.append(f'<path d="M{left} {y(share):.1f}H{left + width}" stroke="#dddddd"/>')
            parts.append(text(left - 8, y(share) + 4, "black", "end", 12, f"{share:.0%}"))
            parts.append(text(x(second), top + height + 20, "black", "middle", 12, f"{second:g}"))
        for i, (series, (mean, of_all), name, colour) in enumerate(self.lines):
            points = " ".join(f"{x(t):.1f},{y(share):.1f}" for t, share in series)
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
            label = (
                f"{name}: {mean:.0%} of the living pages fresh from {self.measured_from:g} s on, {of_all:.0%} over all"
            )
            parts.append(text(left + width - 10, top + height - 40 + 22 * i, colour, "end", 14, label))
        path.write_text("\n".join([*parts, "</svg>\n"]), encoding="utf-8")
        return path
