"""The ratios that benchmarks measured last, in a file that the repository keeps: what falls is not left unnoticed."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["FILE", "keep"]

FILE = Path(__file__).with_name("ratios.json")
#: A ratio that is smaller than the last one by more than this share of it has fallen.
NOISE = 0.05


def keep(name: str, ratio: float, file: Path = FILE) -> None:
    """Keep a ratio (an alternative's cost to ours, the larger the better), and say so if it fell since the last time.

    Parameters
    ----------
    name : str
        What was measured; the benchmark's name comes first.
    ratio : float
        How many times as good as the alternative of the same run.
    file : pathlib.Path
        Where ratios are kept, with date, commit and machine.
    """
    kept = json.loads(file.read_text()) if file.exists() else {}
    last = kept.get(name)
    if last is not None and ratio < (1 - NOISE) * last["ratio"]:
        print(f"    FELL: {name}: {last['ratio']:.2f} on {last['date']} at {last['commit']}, {ratio:.2f} now")
    kept[name] = {"ratio": round(ratio, 3), "date": datetime.now(UTC).date().isoformat(), **_here()}
    file.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def _here() -> dict[str, str]:
    # The file itself changes with each ratio that is noted.
    commit, changed = _git("describe", "--always"), _git("status", "--porcelain", "-uno", "--", ":/", f":!{FILE.name}")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return {"commit": (commit or "no checkout") + ("-dirty" if changed else ""), "machine": machine}


def _git(*arguments: str) -> str:
    found = subprocess.run(["git", *arguments], cwd=FILE.parent, capture_output=True, text=True, check=False)
    return found.stdout.strip()
