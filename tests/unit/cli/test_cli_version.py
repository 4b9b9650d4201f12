"""Which version this is, and the command without an installed script."""

import sys

import crawlsched
from tests import children


def test_the_package_is_the_command() -> None:
    """`python -m crawlsched` does what `crawlsched` does, under its name; `--version` prints the version."""
    command = (sys.executable, "-m", "crawlsched")
    assert children.output_of(*command, "--version") == f"crawlsched {crawlsched.__version__}\n"
    assert children.output_of(*command, "--help").startswith("usage: crawlsched ")
