"""What commands share: the version, the progress of long runs, the URLs of a file."""

import sys

import pytest

import crawlsched
from crawlsched.cli.parsing import shown_progress
from crawlsched.jobs.importing import Requests
from tests import children


def test_the_package_is_the_command() -> None:
    """`python -m crawlsched` does what `crawlsched` does, under its name; `--version` prints the version."""
    command = (sys.executable, "-m", "crawlsched")
    assert children.output_of(*command, "--version") == f"crawlsched {crawlsched.__version__}\n"
    assert children.output_of(*command, "--help").startswith("usage: crawlsched ")


def test_a_run_that_is_soon_done_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there is a line every ten seconds."""
    move = shown_progress("figure")
    for done in range(5):
        move(done, 4)
    assert capsys.readouterr() == ("", "")


def test_lines_say_how_far_a_run_has_come(capsys: pytest.CaptureFixture[str]) -> None:
    """How much is done, and about how long the rest takes; neither at the start nor at the end."""
    move = shown_progress("figure", first=0.0)
    for done in range(3):
        move(done, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("figure: 50% done, about ")
    assert err.endswith(" s left\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("url", ["ftp://example.com/", "/p/3", "http://", "http:///p", "http://[::1/", "example.com"])
def test_what_is_no_url_is_said(url: str) -> None:
    """Another scheme, none, and no host are each refused, with the text that was given."""
    with pytest.raises(ValueError, match="URL"):
        Requests().page_of(url)
