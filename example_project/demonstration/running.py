"""The common parts of both demos: read options, clear the folder, start a site, run commands, and end."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from demonstration.processes import Child, Children, Failure

PROJECT = Path(__file__).resolve().parents[1]
START_TIMEOUT = 60.0


def run_demo(demo: Callable[[Children], dict[str, object]]) -> int:
    """Run a demo, print what it returns as the last line, and return the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM ends it as Ctrl-C does
    try:
        with Children() as children:
            print(json.dumps(demo(children)))
    except Failure as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; everything it started has ended.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output (`head`) has closed it. Python would raise again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def read_options(program: str, description: str, shortest: float, usual: float) -> argparse.Namespace:
    """Read the command line and DEMO_SECONDS."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--seconds", help=f"how long, at least {shortest:g} (default: DEMO_SECONDS, or {usual:g})")
    parser.add_argument("--seed", type=int, default=1, help="which site (default: 1)")
    parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), help="folder for all files (default: %(default)s)"
    )
    options = parser.parse_args()
    written = options.seconds or os.environ.get("DEMO_SECONDS") or f"{usual:g}"
    try:
        options.seconds = float(written)
    except ValueError:
        options.seconds = 0.0
    if not shortest <= options.seconds <= 3000.0:
        raise Failure(f"DEMO_SECONDS must be a number of seconds from {shortest:g} to 3000, got {written!r}.")
    options.output = options.output.resolve()
    return options


def clear(folder: Path) -> None:
    """Make the output folder, or remove from it what an earlier demo wrote."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in ("*.jsonl", "*.log", "*.json", "crawlsched.db*", "freshness.*", "many.png"):
            for path in folder.glob(pattern):
                path.unlink()
    except OSError as error:
        raise Failure(f"the output folder {folder} cannot be used: {error}") from error


def start_site(children: Children, name: str, seed: int, epoch: float, truth: Path, log: Path) -> Child:
    """Start a living site, which logs its truth; its first line is the URL of its front page."""
    command = [sys.executable, "-m", "living_site", "--seed", str(seed), "--epoch", repr(epoch)]
    command += ["--truth", str(truth), "--while-stdin-is-open"]
    return children.start(name, command, PROJECT, log, read_stdout=True)


def crawlsched(database: str, *arguments: str) -> str:
    """Run the command ``crawlsched`` on a demo's database and return what it prints."""
    command = [sys.executable, "-m", "crawlsched", *arguments, "--database", database]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"crawlsched {' '.join(arguments)} --database {database} failed: {done.stderr.strip()}")
    return done.stdout
