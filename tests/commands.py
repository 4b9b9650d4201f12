"""Commands of `crawlsched`, run in the process of the tests: as from outside, but for a second less each."""

import json
import subprocess
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

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


def said(*arguments: str, folder: Path | None = None) -> str:
    """Run a command that has to succeed, and return what it printed."""
    answer = run_here(folder or Path.cwd(), *arguments)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def report(*arguments: str, folder: Path | None = None) -> Any:
    """Run a command that has to succeed, and return its JSON."""
    return json.loads(said(*arguments, "--json", folder=folder))


def failed(answer: subprocess.CompletedProcess[str]) -> str:
    """Return the one sentence with which a command failed."""
    assert answer.returncode == 1, answer
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1
    assert "Traceback" not in answer.stderr
    return answer.stderr.strip()
