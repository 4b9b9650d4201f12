"""Import: lines a minute, by the clock and by CPU, of URLs, importance and visits, and how fast they go out again."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

N_VISITS = 20


def urls(n: int) -> Iterator[str]:
    """Give a line for each page."""
    return (f"https://host{page % 1000}.example/section/{page % 37}/article-{page}.html" for page in range(n))


def lines_of(kind: str, n: int) -> Iterator[str]:
    """Give the lines of a file."""
    if kind == "urls":
        yield from urls(n)
    elif kind == "importance":
        yield "url,importance"
        yield from (f"{url},{1 + page % 7}" for page, url in enumerate(urls(n)))
    else:
        yield "url,time,changed"
        for visit in range(N_VISITS):
            for page, url in enumerate(urls(n // N_VISITS)):
                yield f"{url},{1_790_000_000 + 86_400 * visit + page % 999},{(page + visit) % 3 == 0:d}"


def run(folder: Path, *arguments: str) -> tuple[float, float]:
    """Run a command; return its seconds by the clock and of CPU."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "crawlsched", *arguments, "--database", "sqlite:///bench.db"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a row for each kind of file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    n = parser.parse_args().lines
    for kind in ("urls", "importance", "visits"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "lines.csv").write_text("".join(f"{line}\n" for line in lines_of(kind, n)))
            for what in ("import", "import again"):
                took, cpu = run(folder, "import", "lines.csv", "--collection", "bench")
                said = f"{60 * n / took:12,.0f} lines a minute by the clock, {60 * n / cpu:12,.0f} by CPU"
                print(f"{kind:<11} {what:<13} {took:7.1f} s {said}", flush=True)
            took, cpu = run(folder, "export", "out")
            print(f"{kind:<11} export        {took:7.1f} s {cpu:7.1f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
