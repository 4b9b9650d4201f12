"""The default policy beside crawling in turn and the never-starving plan, on histories of real changes.

    HISTORIES=DIR make bench BENCHMARKS=histories
    python -m tests.benchmarks.bench_histories [--directory DIR] [--names terms site] [--samples 1 2 3]
        [--bandwidths 0.3 1 3] [--importance unit pareto] [--policies posterior ...] [--pages 150] [--announced]

The directory (beside the repository by default) has NAME.pages.csv.gz and NAME.changes.csv.gz, and with --announced
NAME.signals.csv.gz, as `crawlsched replay` reads them. Of each history samples of pages are drawn, over its last two
years or all of it where it is shorter; bandwidths are in crawls per change. Everything is learned from the start on.

Each cell that has been replayed stands in bench-output/histories.jsonl, by the version of the code that replayed it:
the table can be made in parts, and a run that was interrupted goes on. Single cells are noise of 0.005 to 0.02. What is
printed are means of paired differences with their standard errors, over cells, by halves, and by history.
"""

import argparse
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import crawlsched
from crawlsched.simulation import History, read_history, replay
from tests.benchmarks.bench_learning import summed_up

ROOT = Path(__file__).parents[2]
NAMES = ("releases", "proposals", "manuals", "terms", "encyclopedia", "handbook", "site", "clockwork")
# Whatever is chosen by some histories is judged by the others.
HALVES = {name: f"half {1 + place // 4}" for place, name in enumerate(NAMES)}
POLICIES = ("round_robin", "harmonic", "posterior")
DAY = 86_400.0
LONGEST = 730 * DAY
# Where pages change every few hours, less time tells as much: what a sample takes stays below a minute.
MOST_CHANGES = 4_000

Cell = tuple[str, str, int, float, str, int, bool]  # policy, history, sample, bandwidth, importance, pages, announced


def version() -> str:
    """Return what tells one state of the code from another."""
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted(Path(crawlsched.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def sample(directory: Path, name: str, number: int, importance: str, n_pages: int, announced: bool) -> History:
    """Return some pages of a history, cut to the last part of it; times are as they were."""
    files = [directory / f"{name}.{kind}.csv.gz" for kind in ("pages", "changes", "signals")]
    whole = read_history(*files[: 3 if announced else 2])
    window = whole.window()
    end = float(min(window.end, whole.change_times.max()))
    start = max(window.start, end - LONGEST)
    living = np.flatnonzero((whole.end > start) & (whole.birth < end))
    rng = np.random.default_rng([number, NAMES.index(name) if name in NAMES else len(name)])
    rows = np.sort(rng.choice(living, min(n_pages, living.size), replace=False))
    new_row = np.full(whole.page.size, -1)
    new_row[rows] = np.arange(rows.size)
    weights = rng.pareto(1.5, rows.size) + 0.1 if importance == "pareto" else np.ones(rows.size)
    inside = (new_row[whole.change_rows] >= 0) & (whole.change_times > start)
    if (n_changes := int(inside.sum())) > MOST_CHANGES:
        start = float(np.sort(whole.change_times[inside])[n_changes - MOST_CHANGES])
    kept = inside & (whole.change_times > start)
    signals = {}
    if whole.signal_rows is not None and whole.signal_times is not None:
        heard = (new_row[whole.signal_rows] >= 0) & (whole.signal_times > start) & (whole.signal_times <= end)
        signals = {"signal_rows": new_row[whole.signal_rows[heard]], "signal_times": whole.signal_times[heard]}
    return History(
        page=np.arange(rows.size),
        birth=np.maximum(whole.birth[rows], start),
        end=np.minimum(whole.end[rows], end),
        importance=weights,
        change_rows=new_row[whole.change_rows[kept]],
        change_times=whole.change_times[kept],
        **signals,
    )


def crawl_cell(history: History, policy: str, bandwidth: float) -> dict[str, float]:
    """Replay one cell; return its freshness, and the mean and the 95 % quantile of delays, seconds."""
    window = history.window()
    crawls = bandwidth * float(history.hindsight_rates(window).sum())
    name, _, estimator = policy.partition(":")
    done = replay(history, crawls, name, estimator or None, start=window.start, end=window.end)
    return {"freshness": done.freshness, "age": done.timeliness["age"], "delay": done.timeliness["delay"]}


def replayed(path: Path, code: str) -> dict[Cell, dict[str, float]]:
    """Return the cells that this version of the code has replayed before."""
    known: dict[Cell, dict[str, float]] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            if row["code"] == code:
                policy, name, number, bandwidth, importance, n_pages, announced = row["cell"]
                known[policy, name, number, bandwidth, importance, n_pages, announced] = row["found"]
    return known


def say(known: dict[Cell, dict[str, float]], ours: str, others: Iterable[str]) -> None:
    """Print what a policy is ahead of others by: over all cells, by bandwidth, by importance, by history."""
    for other in others:
        groups: dict[str, list[float]] = defaultdict(list)
        for cell, found in known.items():
            beside = known.get((other, *cell[1:]))
            if cell[0] == ours and beside is not None:
                _, name, _, bandwidth, importance, *_ = cell
                for group in ("all", f"{bandwidth:g}x", importance, HALVES.get(name, "further histories"), name):
                    groups[group].append(found["freshness"] - beside["freshness"])
        print(f"\n{ours} less {other}".ljust(40) + f"{'freshness':>20}{'cells':>8}{'behind by > 0.005':>20}")
        for group, values in groups.items():
            behind = sum(value < -0.005 for value in values)
            print(f"{group:<40}{summed_up(values):>20}{len(values):>8}{behind:>20}")


def main() -> None:
    """Replay what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, default=os.environ.get("HISTORIES", ROOT.parent / "shared/traces"))
    parser.add_argument("--names", nargs="+", default=list(NAMES))
    parser.add_argument("--samples", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--bandwidths", type=float, nargs="+", default=[0.3, 1.0, 3.0], help="crawls per change")
    parser.add_argument("--importance", choices=("unit", "pareto"), nargs="+", default=["unit", "pareto"])
    parser.add_argument("--policies", metavar="NAME[:ESTIMATOR]", nargs="+", default=list(POLICIES))
    parser.add_argument("--pages", type=int, default=150)
    parser.add_argument("--announced", action="store_true", help="with the announcements that the histories have")
    options = parser.parse_args()
    directory = Path(options.directory)
    names = [name for name in options.names if not options.announced or (directory / f"{name}.signals.csv.gz").exists()]
    if missing := [name for name in names if not (directory / f"{name}.changes.csv.gz").exists()]:
        parser.error(f"{directory} has no {missing[0]}.changes.csv.gz; HISTORIES names the directory of histories.")
    results, code = ROOT / "bench-output" / "histories.jsonl", version()
    results.parent.mkdir(exist_ok=True)
    known = replayed(results, code)
    wanted: set[Cell] = set()
    with results.open("a") as file:
        for number in options.samples:
            for name in names:
                for importance in options.importance:
                    history = sample(directory, name, number, importance, options.pages, options.announced)
                    if not history.change_times.size:  # a few pages, of which none changed
                        continue
                    for bandwidth in options.bandwidths:
                        for policy in options.policies:
                            cell = policy, name, number, bandwidth, importance, options.pages, options.announced
                            wanted.add(cell)
                            if cell not in known:
                                known[cell] = crawl_cell(history, policy, bandwidth)
                                row = {"code": code, "cell": cell, "found": known[cell]}
                                file.write(json.dumps(row) + "\n")
                                file.flush()
    ours = options.policies[-1]
    say({cell: found for cell, found in known.items() if cell in wanted}, ours, options.policies[:-1])


if __name__ == "__main__":
    main()
