"""Progress of long runs: lines on standard error, and nothing for what is soon done."""

import pytest

from crawlsched.cli import parsing
from crawlsched.cli.parsing import shown_progress


def test_a_run_that_is_soon_done_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there is a line every ten seconds."""
    move = shown_progress("figure")
    for done in range(5):
        move(done, 4)
    assert capsys.readouterr() == ("", "")


def test_lines_say_how_far_a_run_has_come(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """How much is done, and about how long the rest takes; neither at the start nor at the end."""
    monkeypatch.setattr(parsing, "_FIRST", 0.0)
    move = shown_progress("figure")
    for done in range(3):
        move(done, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("figure: 50% done, about ")
    assert err.endswith(" s left\n")
    assert err.count("\n") == 1
