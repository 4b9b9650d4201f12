"""Progress of long runs: a bar on a terminal, lines anywhere else, and nothing for what is soon done."""

import fcntl
import os
import pty
import select
import struct
import sys
import termios

import pytest

from crawlsched.cli import progress
from crawlsched.cli.progress import shown_progress
from tests import children


def test_a_run_that_is_soon_done_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there is a line every ten seconds."""
    with shown_progress("figure") as move:
        for done in range(5):
            move(done, 4)
    assert capsys.readouterr() == ("", "")


def test_lines_say_how_far_a_run_has_come(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """How much is done, and about how long the rest takes; neither at the start nor at the end."""
    monkeypatch.setattr(progress, "_FIRST", 0.0)
    with shown_progress("figure") as move:
        for done in range(3):
            move(done, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("figure: 50% done, about ")
    assert err.endswith(" s left\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("tqdm_is_there", [True, False])
def test_a_terminal_gets_a_bar_where_tqdm_is_installed(tqdm_is_there: bool) -> None:
    """And lines where it is not."""
    reader, writer = pty.openpty()
    # 24 lines of 80 columns: a bar shows nothing on a terminal without any.
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    arguments = [sys.executable, "-c", ON_A_TERMINAL, *([] if tqdm_is_there else ["without"])]
    children.output_of(*arguments, stderr=writer)
    # What a terminal was sent stays readable for as long as it is open.
    shown = os.read(reader, 10_000).decode() if select.select([reader], [], [], 1.0)[0] else ""
    os.close(writer)
    os.close(reader)
    assert ("figure: 50% done" in shown) is not tqdm_is_there
    assert ("figure:   0%" in shown) is tqdm_is_there


def test_without_a_total_the_time_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes from a pipe has no known end."""
    monkeypatch.setattr(progress, "_FIRST", 0.0)
    with shown_progress("Reading standard input") as move:
        move(5, None)
    assert capsys.readouterr().err.startswith("Reading standard input: going on for ")


ON_A_TERMINAL = """
import sys, time
if sys.argv[1:]:
    sys.modules["tqdm"] = None
from crawlsched.cli import progress
progress._FIRST = 0.0
with progress.shown_progress("figure") as move:
    for done in range(3):
        time.sleep(0.2)
        move(done, 2)
"""
