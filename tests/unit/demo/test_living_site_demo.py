"""The demo's picture and its care of processes."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

EXAMPLE_PROJECT = Path(__file__).parents[3] / "example_project"


@pytest.fixture
def picture():
    from demonstration.picture import Picture

    ours = [(t / 2, min(0.8, t / 50)) for t in range(1, 121)]
    in_turn = [(t / 2, min(0.6, t / 60)) for t in range(1, 121)]
    return Picture(ours, in_turn, (0.8, 0.7), (0.6, 0.5), 30.0, 60.0, "530 living pages & 25 requests a second")


def test_without_matplotlib_the_picture_is_an_svg(picture, tmp_path, monkeypatch):
    """It is well-formed, has a line for either crawl, and says who they are and how fresh."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # what an import of a missing package meets
    path = picture.write(tmp_path)
    assert path.name == "freshness.svg"
    svg = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    lines = svg.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points").split()) for line in lines] == [120, 120]
    words = "".join(svg.itertext())
    for part in (
        "530 living pages & 25",
        "crawlsched: 80% of the living pages fresh from 30 s on, 70% over all",
        "in turn: 60%",
    ):
        assert part in words


@pytest.mark.parametrize(("rate", "is_void"), [(25.0, False), (23.5, False), (22.0, True)])
def test_a_machine_that_starves_a_side_makes_the_comparison_void(tmp_path: Path, rate: float, is_void: bool) -> None:
    """Below 23 of 25 requests a second on either side the numbers say nothing, and the report says so."""
    from demonstration.report import Report, Side
    from living_site.measuring import Truth

    sides = []
    for name, of_side in (("ours", 25.0), ("in turn", rate)):
        what = {"kind": "request", "host": "127.0.0.11", "path": "/", "status": 200, "agent": name}
        requests = ({**what, "arrived": n / of_side, "time": n / of_side} for n in range(2000))
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in requests))
        sides.append(Side(Truth(tmp_path / name).read(), {}))
    report = Report(*sides, 25.0, 0.0, 30.0, 60.0, {}, "freshness.svg")
    assert report.void is is_void
