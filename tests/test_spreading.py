"""How tests are spread over processes: crawls beside what computes, which gives way to them."""

import sys
from pathlib import Path

import pytest

from tests import children
from tests.spreading import kind_of, takes_crawls

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "--import-mode=importlib")
TESTS = """
import os, time
import pytest

@pytest.mark.parametrize("number", range(4))
def test_one(number):
    time.sleep(0.2)
    with open({told!r}, "a") as file:
        print({file!r}, os.environ["PYTEST_XDIST_WORKER"], os.nice(0), file=file)
"""
MARKS = "[pytest]\nmarkers =\n    crawls: start crawls\n    statistics: measure\n    programs: start demos\n"
FILES = (
    "tests/acceptance/test_a.py",
    "tests/integration/addon/test_b.py",
    "tests/unit/test_c.py",
    "tests/unit/test_d.py",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two files of crawls, and two that compute; each of their tests tells where it ran."""
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(TESTS.format(file=file, told=str(tmp_path / "told")))
    (tmp_path / "pytest.ini").write_text(MARKS)
    return tmp_path


def test_some_take_crawls_and_the_others_give_way(tree: Path) -> None:
    """A file stays whole; crawls go one after another in one process, beside what computes in the other."""
    children.output_of(*PYTEST, "-n2", cwd=tree)
    told = [line.split() for line in (tree / "told").read_text().splitlines()]
    assert len(told) == 16
    workers = {file: {worker for name, worker, _ in told if name == file} for file in FILES}
    assert [workers[file] for file in FILES] == [{"gw0"}, {"gw0"}, {"gw1"}, {"gw1"}]
    niceness = {worker: int(nice) for _, worker, nice in told}
    assert niceness["gw1"] == min(niceness["gw0"] + 5, 19)


def test_without_crawls_a_file_of_each_kind_counts_by_its_folder() -> None:
    """Whoever adds a test to a folder need not say more."""
    assert kind_of("tests/integration/store/test_x.py") == "databases"
    assert kind_of("tests/integration/of_tomorrow/test_x.py") == kind_of("tests/acceptance/test_x.py") == "crawls"
    assert kind_of("tests/fuzz/test_x.py") == "statistics"
    assert kind_of("tests/unit/planner/test_x.py") == kind_of("README.md") == ""
    assert [takes_crawls(f"gw{number}") for number in range(6)] == [True, False, True, True, False, True]


def test_marks_come_from_folders(tree: Path) -> None:
    """`make test-quick` leaves out what starts crawls, wherever it is new."""
    options = ("-n0", "--collect-only", "-m", "quick or not (crawls or statistics)")
    said = children.output_of(*PYTEST, *options, cwd=tree)
    assert "8/16 tests collected" in said
