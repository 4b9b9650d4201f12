"""Another process that holds the lock of an SQLite file."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests import children

_LOCKS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(f"PRAGMA journal_mode={sys.argv[2]}")
connection.execute(f"BEGIN {sys.argv[3]}")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(url: str, journal: str = "WAL", how: str = "IMMEDIATE") -> Iterator[None]:
    """Let it hold the lock."""
    command = (sys.executable, "-c", _LOCKS, url.removeprefix("sqlite:///"), journal, how)
    with children.start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "locked\n"
        yield
        process.communicate(timeout=30)
