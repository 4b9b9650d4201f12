"""What was compiled is kept on disk, and compiled anew when anything that went into it has changed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests import children

pytest.importorskip("numba")
CALLED = "def twice(x):\n    return {factor} * x\n"
CALLING = "from constants import STEP\n\n\ndef stepped(x):\n    return twice(x) + STEP\n"
RUN = """
import called, calling
from crawlsched.compiling.numba_functions import compiled_functions
twins = compiled_functions(calling, compiled_functions(called))
print(twins["stepped"](10.0), sum(twins["stepped"].stats.cache_hits.values()))
"""


@pytest.mark.parametrize("changed", ["nothing", "a constant of another module", "a function of another module"])
def test_compiled_code_is_taken_from_the_disk_only_while_all_that_went_into_it_is_as_it_was(
    tmp_path: Path, changed: str
) -> None:
    """Numba itself only looks at the file of the function, and would go on with the old constant."""
    environment = {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{children.ROOT}",
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
    }

    def run(factor: float, step: float) -> str:
        (tmp_path / "constants.py").write_text(f"STEP = {step}\n")
        (tmp_path / "called.py").write_text(CALLED.format(factor=factor))
        return children.output_of(sys.executable, "-B", "-c", RUN, environment=environment).strip()

    (tmp_path / "calling.py").write_text(CALLING)
    assert run(2.0, 1.0) == "21.0 0"
    if changed == "nothing":
        assert run(2.0, 1.0) == "21.0 1"
    elif changed == "a constant of another module":
        assert run(2.0, 5.0) == "25.0 0"
    else:
        assert run(3.0, 1.0) == "31.0 0"


def test_what_is_in_memory_of_the_compilers_file_is_given_back_once_compiled_code_is_loaded(tmp_path: Path) -> None:
    """It comes back where more is compiled, and what was compiled before goes on as it did."""
    if not Path("/proc/self/smaps").exists():
        pytest.skip("where this machine says what it has in memory of a file is not known")
    (tmp_path / "calling.py").write_text("def thrice(x):\n    return 3 * x\n")
    script = """
import calling
from crawlsched.compiling import numba_functions as compiled
twice = compiled.compile_function(lambda x: 2 * x)
sizes = [twice(4) and in_memory()]
compiled.let_go_of_compiler()
sizes.append(twice(5) and in_memory())
thrice = compiled.compiled_functions(calling)["thrice"]
print(twice(5), thrice(5), sizes[0] > 2**23, sizes[1] < sizes[0] / 4)
"""
    counted = """
def in_memory():
    size, is_wanted = 0, False
    for line in open("/proc/self/smaps"):
        head, *rest = line.split()
        if not head.endswith(":"):
            is_wanted = "libllvmlite" in line and "w" not in rest[0]
        elif head == "Rss:" and is_wanted:
            size += 1024 * int(rest[0])
    return size
"""
    environment = {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{children.ROOT}",
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
    }
    said = children.output_of(sys.executable, "-B", "-c", counted + script, environment=environment)
    assert said.strip() == "10 15 True True"
