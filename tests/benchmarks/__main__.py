"""Run all benchmarks, one after the other, each in a process of its own: ``python -m tests.benchmarks [NAME ...]``.

Each ``bench_*.py`` beside this file prints a table of what it measured against an alternative in the same run.
"""

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Run the benchmarks named on the command line, or all; return how many failed."""
    wanted = sys.argv[1:]
    known = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    if unknown := sorted(set(wanted).difference(known)):
        print(f"No benchmark is called {unknown[0]!r}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    failed = []
    for name in wanted or known:
        print(f"\n== {name} ".ljust(100, "="), flush=True)
        start = time.perf_counter()
        # A process of its own: what one benchmark leaves in memory must not slow down the next.
        command = [sys.executable, "-m", f"tests.benchmarks.bench_{name}"]
        if subprocess.run(command, cwd=HERE.parents[1], check=False).returncode:
            failed.append(name)
        print(f"({time.perf_counter() - start:.0f} s)", flush=True)
    if failed:
        print(f"\nFailed: {', '.join(failed)}.", file=sys.stderr)
    return min(len(failed), 1)


if __name__ == "__main__":
    sys.exit(main())
