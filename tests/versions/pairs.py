"""Pairs of releases that crawlsched is run with, and what is run with each."""

import sys
import tomllib
from pathlib import Path

from tests import children

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
#: By name, what is installed beside the newest of everything else.
PAIRS: dict[str, list[str]] = _TABLE["pairs"]
#: What `make test` runs with the oldest pair, and what is run with each.
QUICK = [f"tests/{name}" for name in _TABLE["tests"]["quick"]]
CORE_SET = [*QUICK, *(f"tests/{name}" for name in _TABLE["tests"]["core"])]


def environment(folder: Path, name: str) -> Path:
    """Make a virtual environment with this checkout and the releases of a pair; return its Python."""
    interpreter = name.removeprefix("Python ") if name.startswith("Python ") else sys.executable
    python = folder / "venv" / "bin" / "python"
    children.output_of(
        UV, "venv", "--quiet", "--no-python-downloads", "--python", interpreter, folder / "venv", cwd=folder
    )
    install = (UV, "pip", "install", "--quiet", "--python", python)
    ran = children.run(
        *install, "--editable", f"{ROOT}[web]", *PAIRS[name], *_TABLE["tests"]["tools"], cwd=folder, timeout=600.0
    )
    assert ran.returncode == 0, ran.stderr
    return python


def release(python: Path, package: str) -> str:
    """Return the version of a package there."""
    program = f"from importlib.metadata import version; print(version({package!r}))"
    return children.output_of(python, "-c", program, cwd=ROOT).strip()


def run_core_set(python: Path, folder: Path, tests: list[str] = CORE_SET) -> tuple[str, str]:
    """Return pytest's last line, and what failed ("" if nothing did)."""
    ran = children.run(
        *(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses=2"),
        *("--basetemp", folder / "tests", *tests),
        cwd=ROOT,
        environment={"TEST_DEMO_SECONDS": "20"},
        timeout=900.0,
    )
    lines = ran.stdout.strip().splitlines() or [ran.stderr[-500:]]
    failures = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return lines[-1].partition(" in ")[0], "" if ran.returncode == 0 else "\n".join(failures or lines[-20:])
