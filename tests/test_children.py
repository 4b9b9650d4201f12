"""Processes that tests start feel Ctrl-C wherever the tests run, and none outlives the test that started it."""

import sys
from pathlib import Path

from tests import children

# As shells and some runners start what runs behind: Ctrl-C is ignored, and so it is by all that this starts.
IGNORING = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
PYTEST = (sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider")


def test_tests_of_ctrl_c_pass_where_it_is_ignored() -> None:
    """As in `nohup make test &`: a command is ended by SIGINT all the same."""
    test = "tests/acceptance/test_cli.py::test_ctrl_c_is_quiet_wherever_it_comes"
    said = children.output_of(sys.executable, "-c", IGNORING, *PYTEST[1:], test, cwd=children.ROOT)
    assert "1 passed" in said


FAILING = """
import pytest
from tests import children
from tests.prepared import Prepared

@pytest.fixture(scope="module")
def of_the_module():
    return children.start("sleep", "60")

def test_one(of_the_module):
    children.GRACE = 0.5
    children.start("sh", "-c", "trap '' TERM; echo; sleep 60", stdout=-1).stdout.readline()
    other = children.start("sleep", "60")
    print("started", of_the_module.pid, *(process.pid for process in children.running()))
    raise AssertionError

def test_two(of_the_module):
    assert children.running() == [of_the_module]
"""


def test_what_a_failing_test_started_ends_with_it(tmp_path: Path) -> None:
    """Also what does not end when it is asked to; what fixtures of the module started goes on until its end."""
    (tmp_path / "test_failing.py").write_text(FAILING)
    answer = children.run(*PYTEST, "-p", "tests.conftest", "test_failing.py", cwd=tmp_path)
    assert "1 failed, 1 passed" in answer.stdout, answer.stdout + answer.stderr
    [started] = [line for line in answer.stdout.splitlines() if line.startswith("started ")]
    pids = {int(word) for word in started.split()[1:]}
    assert len(pids) == 3
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
