"""Which version this is, and the command without an installed script."""

import sys

import pytest

import crawlsched
from crawlsched.cli import main
from tests import children


def test_the_command_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    """`crawlsched --version` prints it, and ends well."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr() == (f"crawlsched {crawlsched.__version__}\n", "")


def test_the_package_is_the_command() -> None:
    """`python -m crawlsched` does what `crawlsched` does, under its name."""
    assert (
        children.output_of(sys.executable, "-m", "crawlsched", "--version") == f"crawlsched {crawlsched.__version__}\n"
    )
    command = (sys.executable, "-m", "crawlsched")
    assert children.output_of(*command, "--version") == f"crawlsched {crawlsched.__version__}\n"
    assert children.output_of(*command, "--help").startswith("usage: crawlsched ")
