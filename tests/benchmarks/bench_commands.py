"""Commands: CPU that short ones take, beside a Python that loads numpy and SQLAlchemy and does nothing with them.

Over a small collection with a plan, and visits of which a third came after an announcement.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from crawlsched.jobs.crawl_jobs import plan_store
from crawlsched.settings import Settings
from crawlsched.store import Store
from tests.benchmarks.bench_crawl import fill
from tests.benchmarks.bench_web import add_history
from tests.benchmarks.ratios import keep

_RUNS = 9
_PORT = 8000  # in the URLs of pages; nothing is asked there


def cpu(*arguments: str) -> float:
    """Return the seconds of CPU of a Python with these arguments, user and system: the least of some runs."""
    taken, environment = [], {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # as the command sets it for itself
    for _ in range(_RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def main() -> None:
    """Print a row for each command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--visits", type=int, default=13_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder, arguments.pages, _PORT)
        add_history(folder / "bench.db", arguments.pages, arguments.visits)
        url = f"sqlite:///{folder / 'bench.db'}"
        store = Store.open(url, "bench")
        plan_store(store, Settings(), time.time())
        store.close()
        loading = cpu("-c", "import numpy, sqlalchemy")
        print(f"loading numpy and SQLAlchemy {loading:.2f} s of CPU, alone; {arguments.pages:,} pages")
        for command in ("--version", "status", "sources", "next", f"why http://127.0.0.1:{_PORT}/0"):
            of_database = [] if command == "--version" else ["--database", url]
            taken = cpu("-m", "crawlsched", *command.split(), *of_database)
            print(f"crawlsched {command:40} {taken:.2f} s", flush=True)
            keep(
                f"commands: CPU of loading numpy and SQLAlchemy, of that of crawlsched {command.split()[0]}",
                loading / taken,
            )


if __name__ == "__main__":
    main()
