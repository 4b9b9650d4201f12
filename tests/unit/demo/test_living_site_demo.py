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


@pytest.fixture
def shared(tmp_path):
    """Two shards, a host each; three processes, 10 requests a second together, one killed at 20 s, one stopped at 30 s.

    The first asks host 11 until it is killed; the third takes it 7 s later. The second asks host 12, stops from 30 s to
    40 s, and the third takes that one after 6.5 s.
    """
    from demonstration.sharing import Shared
    from living_site.measuring import Truth

    said = [("crawl-1", "127.0.0.11", 0.0, 20.0), ("crawl-3", "127.0.0.11", 27.0, 60.0)]
    said += [("crawl-2", "127.0.0.12", 0.0, 30.0), ("crawl-3", "127.0.0.12", 36.5, 60.0)]
    lines = [{"kind": "page", "page": 1, "host": "127.0.0.11", "url": "http://127.0.0.11/", "alive": True}]
    for agent, host, since, until in said:
        times = [since + n / 5 for n in range(int((until - since) * 5))]
        what = {"kind": "request", "path": "/", "status": 404, "agent": agent, "host": host}
        lines += [{**what, "arrived": time, "time": time + 0.05} for time in times]
    first, *requests = lines
    first_visit = {"page": 1, "version": 0, "before": None, "held": 0, "status": 200}
    requests.sort(key=lambda line: line["time"])
    log = tmp_path / "site.truth.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in (first, requests[0] | first_visit, *requests[1:])))
    members = ("crawl-1", "crawl-2", "crawl-3")
    return Shared(Truth(log).read(), members, 8, 10.0, "crawl-1", "crawl-2", 0.0, 20.0, 30.0, 40.0, 60.0)


def test_the_log_of_the_site_says_how_long_the_shards_of_a_silent_process_waited(shared):
    """From the signal to the first request of another: 7 s, and 6.5 s."""
    assert shared.waits("crawl-1", 20.0) == [pytest.approx(7.0)]
    assert shared.waits("crawl-2", 30.0) == [pytest.approx(6.5)]
    assert shared.waits("crawl-3", 30.0) == []


def test_the_most_requests_in_ten_seconds_count_all_processes(shared):
    """Ten a second are a hundred, and one at either end; three processes may send 105."""
    assert shared.most in (100, 101, 102)
    assert shared.allowed == pytest.approx(105.0)
    assert shared.rate("crawl-1", 0.0, 10.0) == pytest.approx(5.0)


def test_a_host_that_two_processes_ask_at_once_is_counted(shared):
    """Its second request arrives while the first process's is still being answered; after that it does not count."""
    assert (shared.n_together, shared.n_moves) == (0, 2)
    at = shared.truth.asked[0][0]
    shared.truth.asked.append((at + 0.01, at + 0.02, "127.0.0.11", "crawl-3"))
    assert (shared.n_together, shared.n_moves) == (1, 4)
