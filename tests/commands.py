"""Commands of `crawlsched`, run in the process of the tests: as from outside, but for a second less each."""

from __future__ import annotations

import subprocess
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from crawlsched.cli import main


def run_here(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, and return its exit code and what it printed.

    A command that reads a Scrapy project, asks questions or is interrupted needs a process (`children.run`).
    """
    stdout, stderr = StringIO(), StringIO()
    with chdir(folder), redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            code = main(arguments)
        except SystemExit as ended:  # so argparse says what it has not understood
            code = int(ended.code or 0)
    return subprocess.CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())
