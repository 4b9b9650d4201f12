"""What was compiled is kept on disk, and compiled anew when anything that went into it has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")
ROOT = Path(__file__).parents[2]
CALLED = "def twice(x):\n    return {factor} * x\n"
CALLING = "from constants import STEP\n\n\ndef stepped(x):\n    return twice(x) + STEP\n"
RUN = """
import called, calling
from crawlsched.crawl_value.compiled import compiled_functions
twins = compiled_functions(calling, compiled_functions(called))
print(twins["stepped"](10.0), sum(twins["stepped"].stats.cache_hits.values()))
"""


@pytest.mark.parametrize("changed", ["nothing", "a constant of another module", "a function of another module"])
def test_compiled_code_is_taken_from_the_disk_only_while_all_that_went_into_it_is_as_it_was(
    tmp_path: Path, changed: str
) -> None:
    """Numba itself only looks at the file of the function, and would go on with the old constant."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
    }

    def run(factor: float, step: float) -> str:
        (tmp_path / "constants.py").write_text(f"STEP = {step}\n")
        (tmp_path / "called.py").write_text(CALLED.format(factor=factor))
        done = subprocess.run(
            [sys.executable, "-B", "-c", RUN], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    (tmp_path / "calling.py").write_text(CALLING)
    assert run(2.0, 1.0) == "21.0 0"
    if changed == "nothing":
        assert run(2.0, 1.0) == "21.0 1"
    elif changed == "a constant of another module":
        assert run(2.0, 5.0) == "25.0 0"
    else:
        assert run(3.0, 1.0) == "31.0 0"
