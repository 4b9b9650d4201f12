"""``crawlsched simulate``: reproduce a figure of one of the papers."""

import argparse
import os
from io import BytesIO, StringIO
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import MOST_SHOWN, option, shown_progress
from crawlsched.cli.table_files import new_file
from crawlsched.exceptions import CrawlschedError
from crawlsched.wording import say_duration, say_table

if TYPE_CHECKING:
    from crawlsched.simulation.figures import Figure, FigureSettings, Table

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]

# The settings that make a simulation smaller than in the paper.
_SIZES = ("repetitions", "pages", "horizon")
_SETTINGS = (*_SIZES, "seed", "history")


HELP = "reproduce a figure of one of the papers: numbers and a picture"
ABOUT = "Options that are not given are as printed in the paper, which can take hours."
EXAMPLES = ("crawlsched simulate noisy-signals-4 --repetitions 2 --out figures",)
OPTIONS = (
    option("FIGURE", "such as noisy-signals-4; `list` names them all"),
    option("--repetitions N", "independent simulations", int),
    option("--pages M", "numbers of pages", int, nargs="+"),
    option("--horizon T", "simulated time, in the paper's unit", float),
    option("--seed S", "the same seed gives the same numbers", int, default=0),
    option("--history FILE", "changes to take instead of generated ones: page,time", Path),
    option("--out DIR", "where FIGURE.csv and FIGURE.png go (default: here)", default="."),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Simulate, and write the files; or list the figures."""
    from crawlsched.simulation.figures import FIGURES

    if arguments.figure == "list":
        return {"figures": {name: figure.title for name, figure in FIGURES.items()}}
    if arguments.figure not in FIGURES:
        raise CrawlschedError(f"FIGURE must be a name that `crawlsched simulate list` shows, got {arguments.figure!r}.")
    figure = FIGURES[arguments.figure]
    settings = figure.with_settings(
        arguments.repetitions, arguments.pages, arguments.horizon, arguments.seed, arguments.history
    )
    out = _folder(arguments.out)
    began = perf_counter()
    table = figure.run(settings, shown_progress(figure.name))
    files, note = _write(figure, table, out)
    return {**_summary(figure, settings, table), "files": files, "note": note, "seconds": perf_counter() - began}


def _folder(path: str) -> Path:
    """Make the folder for the files, and check before the simulation that it is writable."""
    out = Path(path)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CrawlschedError(f"--out must be a folder that can be written to: {path}: {error.strerror}.") from None
    if not os.access(out, os.W_OK):
        raise CrawlschedError(f"--out must be a folder that can be written to, got {path!r}.")
    return out


def _write(figure: "Figure", table: "Table", out: Path) -> tuple[list[str], str]:
    """Write numbers and picture; return the files, and a sentence that says why there is no picture."""
    numbers, picture = out / f"{figure.name}.csv", out / f"{figure.name}.png"
    text = StringIO(newline="")
    table.write(text)
    with new_file(numbers) as unfinished:
        unfinished.write_bytes(text.getvalue().encode())
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        return [str(numbers)], "No picture: that needs matplotlib; install crawlsched[plot]."
    canvas = Canvas(layout="constrained")
    FigureCanvasAgg(canvas)
    figure.draw(table, canvas)
    canvas.suptitle(f"{figure.paper}: {figure.title}", fontsize=10, wrap=True)
    image = BytesIO()
    canvas.savefig(image, format="png", dpi=150)
    with new_file(picture) as unfinished:
        unfinished.write_bytes(image.getvalue())
    return [str(numbers), str(picture)], ""


def _summary(figure: "Figure", settings: "FigureSettings", table: "Table") -> dict[str, Any]:
    used, own = ({name: getattr(of, name) for name in _SETTINGS} for of in (settings, figure.settings))
    given = {name: str(value) if isinstance(value, Path) else value for name, value in used.items()}
    return {
        "figure": figure.name,
        "title": figure.title,
        "paper": figure.paper,
        "settings": {**{name: value for name, value in given.items() if value not in (None, ())}, **figure.fixed},
        "own_settings": {name: own[name] for name in _SIZES if own[name] != used[name]},
        "labels": list(table.labels),
        "rows": [row._asdict() for row in table.rows],
    }


def say(report: dict[str, Any]) -> str:
    if "figures" in report:
        return "\n".join(say_table([[name, title] for name, title in report["figures"].items()], indent=""))
    lines = [f"{report['figure']}: {report['title']} ({report['paper']})", f"settings: {_said(report['settings'])}"]
    if report["own_settings"]:
        lines.append(f"its own settings: {_said(report['own_settings'])}")
    lines.append("")
    rows, labels = report["rows"], report["labels"]
    if len(rows) <= MOST_SHOWN:
        heading = ["quantity", *labels, "mean", "standard error"]
        cells = [[row["quantity"], *map(_short, row["labels"]), *_numbers(row)] for row in rows]
        lines += [*say_table([heading, *cells], "l" + "l" * len(labels) + "rr", indent=""), ""]
    if report["note"]:
        lines.append(report["note"])
    lines.append(f"Written: {', '.join(report['files'])} ({say_duration(report['seconds'])}).")
    return "\n".join(lines)


def _said(settings: dict[str, Any]) -> str:
    values = {name: value if isinstance(value, list | tuple) else [value] for name, value in settings.items()}
    return "; ".join(f"{name} {' '.join(map(_short, value))}" for name, value in values.items())


def _numbers(row: dict[str, Any]) -> list[str]:
    error = row["standard_error"]
    return [f"{row['mean']:.5g}", "" if error != error else f"{error:.2g}"]


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
