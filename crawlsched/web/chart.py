"""Charts as SVG: lines over time, or over another quantity."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from crawlsched.web.html import Html, tag

__all__ = ["Line", "chart"]

#: A line: its name, the class for its colour, and a value for each place (None: no value).
Line = tuple[str, str, Sequence[float | None]]


def chart(
    places: Sequence[float],
    lines: Sequence[Line],
    *,
    say_place: Callable[[float], str],
    say_value: Callable[[float], str],
    low: float,
    high: float | None,
    marks: Sequence[tuple[float, str]] = (),
    is_log: bool = False,
    has_area: bool = False,
    label: str,
) -> Html:
    """Return a chart. Colours and sizes are in the stylesheet.

    The scale goes from `low` to `high` (None: to the largest value). `marks` are places that get a vertical line and a
    word. With `is_log`, the places are on a logarithmic scale. `has_area` fills the area below the first line. `label`
    is the name of the chart for screen readers.
    """
    known = [value for _, _, values in lines for value in values if value is not None and math.isfinite(value)]
    if len(places) < 2 or not known:
        return tag("p", "There is not enough to draw yet; a crawl takes a sample each minute.", class_="empty")
    top = max(known) if high is None else high
    top = top if top > low else low + 1.0
    across = (lambda x: math.log(x)) if is_log else (lambda x: x)
    first, last = across(places[0]), across(places[-1])

    def x(place: float) -> float:
        return (across(place) - first) / ((last - first) or 1.0)

    def y(value: float) -> float:
        return 1.0 - (value - low) / (top - low)

    levels = [(f"{100 * at:g}%", say_value(top - at * (top - low))) for at in (0.0, 0.5, 1.0)]
    grid = [tag("line", x1="0", x2="100%", y1=level, y2=level, class_="grid") for level, _ in levels]
    words = [tag("text", word, x="2", y=level, dy="-4", class_="axis") for level, word in levels]
    drawn = [_path(line, places, x, y, is_area=has_area and line is lines[0]) for line in lines]
    marked = [
        (
            tag("line", x1=f"{100 * x(at):.2f}%", x2=f"{100 * x(at):.2f}%", y1="0", y2="100%", class_="mark"),
            tag("text", word, x=f"{100 * x(at):.2f}%", y="12", dx="6", class_="axis"),
        )
        for at, word in marks
        if first <= across(at) <= last
    ]
    points = [
        [round(x(place), 5), say_place(place), *["–" if value is None else say_value(value) for value in values]]
        for place, *values in zip(places, *(values for _, _, values in lines), strict=True)
    ]
    plot = tag("svg", drawn, viewBox="0 0 1 1", preserveAspectRatio="none", width="100%", height="100%")
    picture = tag(
        "svg",
        grid,
        plot,
        words,
        marked,
        tag("line", class_="cursor", y1="0", y2="100%"),
        class_="chart",
        role="img",
        aria_label=label,
        data_points=json.dumps(points),
        data_names=json.dumps([name for name, _, _ in lines]),
    )
    middle = places[len(places) // 2] if not is_log else math.exp((first + last) / 2)
    below = tag("div", *[tag("span", say_place(place)) for place in (places[0], middle, places[-1])], class_="places")
    legend = tag("div", *[tag("span", tag("i", class_=style), name) for name, style, _ in lines], class_="legend")
    return tag("figure", legend, tag("div", picture, tag("output", hidden=True), class_="frame"), below, class_="plot")


def _path(
    line: Line, places: Sequence[float], x: Callable[[float], float], y: Callable[[float], float], *, is_area: bool
) -> list[Html]:
    """Return the path of a line, or of the area below the line. A missing value makes a gap."""
    _, style, values = line
    steps, points, pen = [], [], "M"
    for place, value in zip(places, values, strict=True):
        if value is None or not math.isfinite(value):
            pen = "M"
            continue
        points.append(f"{x(place):.4f} {min(max(y(value), 0.0), 1.0):.4f}")
        steps.append(pen + points[-1])
        pen = "L"
    drawn = [tag("path", d="".join(steps), class_=f"line {style}")]
    if is_area and len(points) > 1:
        left, right = points[0].split()[0], points[-1].split()[0]
        below = f"M{left} 1L{'L'.join(points)}L{right} 1Z"
        drawn.insert(0, tag("path", d=below, class_=f"area {style}"))
    return drawn
