"""The demo's living site crawled by each estimator and each policy: visits, changes found, freshness by its truth.

Each row is a real crawl of its own (`make demo` with DEMO_ESTIMATOR or DEMO_POLICY), beside the same crawl in turn of
the same site. Freshness is of the second half of the run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from crawlsched.estimators.learned_rates import POINT_ESTIMATORS

DEMO = Path(__file__).parents[2] / "example_project" / "demo.py"
VALUES = ("greedy", "greedy_ncis", "greedy_cis", "greedy_cis_plus", "greedy_ncis_approx_1", "greedy_ncis_approx_2")
POLICIES = ("lds", "poisson", "harmonic", "square_root", "proportional", "uniform", "round_robin")
# These two have a scale of their own, hours to months, and the site lives within seconds.
SCALED = {
    "frequency_classes": {"rates": [0.01, 0.05, 0.25]},
    "gamma_posterior": {"prior_time": 10.0},
}
ROWS = (
    {},
    *(
        {"DEMO_ESTIMATOR": json.dumps({"name": name, **SCALED[name]}) if name in SCALED else name}
        for name in POINT_ESTIMATORS
    ),
    *({"DEMO_POLICY": name} for name in (*VALUES, *POLICIES)),
)


def crawl(row: dict[str, str], seconds: float) -> dict[str, Any]:
    """Run the demo once; return its last line."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(DEMO), "--seconds", f"{seconds:g}", "--output", folder]
        environment = {**os.environ, **row}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=DEMO.parent)
    if ran.returncode:
        return {"failed": ran.stderr.strip().splitlines()[-1:]}
    return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--at-once", type=int, default=2, help="crawls that run at the same time (default: 2)")
    given = parser.parse_args()
    print(f"{'':40}{'visits':>8}{'changes found':>15}{'freshness':>11}{'in turn':>9}")
    with ThreadPoolExecutor(given.at_once) as pool:
        for row, found in zip(ROWS, pool.map(lambda row: crawl(row, given.seconds), ROWS), strict=True):
            name = " ".join(f"{key.removeprefix('DEMO_').lower()} {value}" for key, value in row.items()) or "default"
            if "failed" in found:
                print(f"{name:40}{found['failed']}")
                continue
            said = "  void: the machine was too slow" if found["void"] else ""
            print(
                f"{name:40}{found['crawls']:8d}{found['changes_found']:15d}{found['freshness']:11.3f}"
                f"{found['freshness_in_turn']:9.3f}{said}",
                flush=True,
            )


if __name__ == "__main__":
    main()
