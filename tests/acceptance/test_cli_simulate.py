"""`crawlsched simulate` as a user runs it: a figure's numbers and its picture."""

import csv
import sys

import pytest

from tests import children
from tests.commands import run_here

SMALL = ("--pages", "20", "30", "--horizon", "3", "--repetitions", "2")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty folder."""
    monkeypatch.setenv("COLUMNS", "120")

    def run_command(*arguments):
        return run_here(tmp_path, "simulate", *arguments)

    return run_command


def test_a_figure_writes_its_numbers_and_its_picture(run, tmp_path):
    """Both files, the settings and a line for all of it; the folder is made."""
    answer = run("noisy-signals-2", *SMALL, "--out", "some/figures")
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    folder = tmp_path / "some" / "figures"
    assert sorted(path.name for path in folder.iterdir()) == ["noisy-signals-2.csv", "noisy-signals-2.png"]
    assert (folder / "noisy-signals-2.png").read_bytes().startswith(b"\x89PNG")
    with open(folder / "noisy-signals-2.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    accuracies = [row for row in rows if row["quantity"] == "accuracy"]
    assert [(row["pages"], row["policy"]) for row in accuracies] == [
        (pages, policy) for pages in ("20", "30") for policy in ("baseline", "GREEDY", "LDS")
    ]
    assert all(0 < float(row["mean"]) < 1 and float(row["standard_error"]) > 0 for row in accuracies)
    assert "settings: repetitions 2; pages 20 30; horizon 3; seed 0; bandwidth R 100;" in answer.stdout
    own = "its own settings: repetitions 100; pages 100 200 500 750 1000; horizon 1000"
    assert own in answer.stdout.splitlines()


def test_without_matplotlib_there_are_numbers_and_a_sentence(tmp_path):
    """The picture needs an extra; the rest does not."""
    command = [sys.executable, "-c", WITHOUT_MATPLOTLIB, "noisy-signals-2", *SMALL, "--out", tmp_path]
    said = children.output_of(*command)
    assert [path.name for path in tmp_path.iterdir()] == ["noisy-signals-2.csv"]
    assert "No picture: that needs matplotlib; install crawlsched[plot]." in said.splitlines()


WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
from crawlsched.cli import main
sys.exit(main(["simulate", *sys.argv[1:]]))
"""


def test_all_figures_are_listed(run):
    """By `list`, a line each, which fits a terminal of 100 columns."""
    listed = run("list").stdout
    assert "noisy-signals-4 " in listed
    assert max(map(len, listed.splitlines())) <= 100
