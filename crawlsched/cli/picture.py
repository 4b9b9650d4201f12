"""Pictures: drawn with matplotlib, which may be missing, and saved to a file."""

from pathlib import Path
from typing import Any

from crawlsched.exceptions import CrawlschedError

__all__ = ["need_matplotlib", "new_picture", "save_picture"]


def need_matplotlib() -> None:
    """Say so if pictures cannot be drawn, before anything else is done."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise CrawlschedError("--plot needs matplotlib; install crawlsched[plot].") from None


def new_picture() -> tuple[Any, Any]:
    """Return a canvas, and axes for freshness against bandwidth."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.add_subplot()
    axes.set_xscale("log")
    axes.set_xlabel("bandwidth, crawls per second")
    axes.set_ylabel("freshness")
    axes.grid(visible=True, alpha=0.3)
    return canvas, axes


def save_picture(canvas: Any, path: str) -> None:
    """Save a picture as what its name ends in, or as PNG."""
    if not Path(path).suffix:
        path = f"{path}.png"
    try:
        canvas.savefig(path)
    except (OSError, ValueError) as error:
        raise CrawlschedError(f"{path} cannot be drawn: {error}.".replace("..", ".")) from None
