"""``crawlsched simulate``: reproduce a figure of one of the papers."""

import argparse
import os
import tempfile
from io import BytesIO, StringIO
from pathlib import Path
from textwrap import fill
from time import perf_counter
from typing import TYPE_CHECKING, Any

from crawlsched.cli.progress import shown_progress
from crawlsched.cli.wording import say_duration, say_table
from crawlsched.exceptions import CrawlschedError

if TYPE_CHECKING:
    from crawlsched.simulation.figures import Figure, Settings, Table
from crawlsched.cli.parsing import add_json_option, examples

__all__ = ["add_parser", "report", "say"]

# Longer tables are for the file.
_MOST_ROWS = 40
# Of a picture's heading.
_LETTERS_PER_INCH = 13
# Settings that make less of a figure than the paper has.
_SIZES = ("repetitions", "pages", "horizon")


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "simulate",
        help="reproduce a figure of one of the papers: numbers and a picture",
        description="Reproduce a figure or a table of one of the papers, with the policies that `replay` has, on a "
        "simulated clock. What is not set is as printed in the paper, which can take hours.",
        add_help=False,
        epilog=examples("crawlsched simulate noisy-signals-4 --repetitions 2 --out figures"),
    )
    parser.add_argument("-h", "--help", action=_Help, nargs=0, help="show this, with all figures, and exit")
    parser.add_argument("figure", metavar="FIGURE", help="such as noisy-signals-4; `list` names them all")
    parser.add_argument("--repetitions", metavar="N", type=int, help="independent simulations")
    parser.add_argument("--pages", metavar="M", type=int, nargs="+", help="numbers of pages")
    parser.add_argument("--horizon", metavar="T", type=float, help="simulated time, in the paper's unit")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="the same seed gives the same numbers")
    parser.add_argument("--history", metavar="FILE", help="changes to take instead of generated ones: page,time")
    parser.add_argument("--out", metavar="DIR", default=".", help="where FIGURE.csv and FIGURE.png go (default: here)")
    add_json_option(parser)
    parser.set_defaults(report=report, say=say, is_long=True)


class _Help(argparse.Action):
    """Show the help with a list of all figures, which take longer to load than most commands take to run."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.epilog = f"{parser.epilog}\n\nfigures:\n{_say_figures(_figures(), '  ')}"
        parser.print_help()
        parser.exit()


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Simulate, and write the files; or list the figures."""
    from crawlsched.simulation.figures import FIGURES

    if arguments.figure == "list":
        return {"figures": _figures()}
    if arguments.figure not in FIGURES:
        raise CrawlschedError(f"FIGURE must be a name that `crawlsched simulate list` shows, got {arguments.figure!r}.")
    figure = FIGURES[arguments.figure]
    settings = figure.with_settings(
        arguments.repetitions,
        arguments.pages,
        arguments.horizon,
        arguments.seed,
        None if arguments.history is None else Path(arguments.history),
    )
    out = _folder(arguments.out)
    began = perf_counter()
    with shown_progress(figure.name) as progress:
        table = figure.run(settings, progress)
    files, note = _write(figure, table, out)
    return {**_summary(figure, settings, table), "files": files, "note": note, "seconds": perf_counter() - began}


def _figures() -> dict[str, str]:
    from crawlsched.simulation.figures import FIGURES

    return {name: f"{figure.title} ({figure.paper})" for name, figure in FIGURES.items()}


def _say_figures(figures: dict[str, str], indent: str) -> str:
    return "\n".join(say_table([[name, title] for name, title in figures.items()], indent=indent))


def _folder(path: str) -> Path:
    """Return the folder for the files, made and found writable before hours are spent."""
    out = Path(path)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CrawlschedError(f"--out must be a folder that can be written to: {path}: {error.strerror}.") from None
    if not os.access(out, os.W_OK):
        raise CrawlschedError(f"--out must be a folder that can be written to, got {path!r}.")
    return out


def _write(figure: "Figure", table: "Table", out: Path) -> tuple[list[str], str]:
    """Write numbers and picture; return the files, and a sentence if there is no picture."""
    numbers, picture = out / f"{figure.name}.csv", out / f"{figure.name}.png"
    text = StringIO(newline="")
    table.write(text)
    _write_whole(numbers, text.getvalue().encode())
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        return [str(numbers)], "No picture: that needs matplotlib; install crawlsched[plot]."
    canvas = Canvas(layout="constrained")
    FigureCanvasAgg(canvas)
    figure.draw(table, canvas)
    width = int(_LETTERS_PER_INCH * canvas.get_figwidth())
    canvas.suptitle(fill(f"{figure.paper}: {figure.title}", width, break_on_hyphens=False), fontsize=10)
    image = BytesIO()
    canvas.savefig(image, format="png", dpi=150)
    _write_whole(picture, image.getvalue())
    return [str(numbers), str(picture)], ""


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that gets its name only when it is complete."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            # A temporary file is for its owner only; what was asked for is as any other new file.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CrawlschedError(f"{path} cannot be written: {error.strerror}.") from None


def _summary(figure: "Figure", settings: "Settings", table: "Table") -> dict[str, Any]:
    used, own = _used(settings), _used(figure.settings)
    return {
        "figure": figure.name,
        "title": figure.title,
        "paper": figure.paper,
        "settings": {**{name: value for name, value in used.items() if value is not None}, **figure.fixed},
        "own_settings": {name: own[name] for name in _SIZES if own[name] != used[name]},
        "labels": list(table.labels),
        "rows": [row._asdict() for row in table.rows],
    }


def _used(settings: "Settings") -> dict[str, Any]:
    return {
        "repetitions": settings.repetitions,
        "pages": list(settings.pages) or None,
        "horizon": settings.horizon,
        "seed": settings.seed,
        "history": None if settings.history is None else str(settings.history),
    }


def say(report: dict[str, Any]) -> str:
    """Say what came out."""
    if "figures" in report:
        return _say_figures(report["figures"], "")
    lines = [f"{report['figure']}: {report['title']} ({report['paper']})", f"settings: {_said(report['settings'])}"]
    if report["own_settings"]:
        lines.append(f"its own settings: {_said(report['own_settings'])}")
    lines.append("")
    rows = report["rows"]
    if len(rows) <= _MOST_ROWS:
        heading = ["quantity", *report["labels"], "mean", "standard error"]
        cells = [[row["quantity"], *map(_short, row["labels"]), *_numbers(row)] for row in rows]
        lines += [*say_table([heading, *cells], "l" + "l" * len(report["labels"]) + "rr", indent=""), ""]
    if report["note"]:
        lines.append(report["note"])
    lines.append(f"Written: {', '.join(report['files'])} ({say_duration(report['seconds'])}).")
    return "\n".join(lines)


def _said(settings: dict[str, Any]) -> str:
    said = []
    for name, value in settings.items():
        said.append(f"{name} {' '.join(map(str, value)) if isinstance(value, list) else _short(value)}")
    return "; ".join(said)


def _numbers(row: dict[str, Any]) -> list[str]:
    error = row["standard_error"]
    return [f"{row['mean']:.5g}", "" if error != error else f"{error:.2g}"]


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
