"""The layers: import-linter checks them in `make test`; here is shown that the contracts would notice."""

import re
import shutil
import sys
from pathlib import Path

import grimp

from tests import children

ROOT = Path(__file__).parents[1]
LINTER = Path(sys.executable).with_name("lint-imports")


def test_what_breaks_the_layers_is_noticed(tmp_path: Path) -> None:
    """Scrapy below the planner, an import that only an annotation needs, a module that stands in no layer."""
    package = tmp_path / "crawlsched"
    shutil.copytree(ROOT / "crawlsched", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (package / "anything.py").write_text('"""Nothing."""\n')
    for name, broken in (
        ("freshness", "import scrapy"),
        (
            "slot_clock",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from crawlsched.planner import Planner",
        ),
    ):
        with (package / f"{name}.py").open("a") as module:
            module.write(f"\n{broken}\n")
    answer = children.run(LINTER, "--no-cache", cwd=tmp_path, environment={"PYTHONPATH": None})
    said = re.sub(r"\s+", " ", answer.stdout)
    assert answer.returncode == 1
    for broken in ("crawlsched.freshness -> scrapy", "crawlsched.slot_clock -> crawlsched.planner", "anything"):
        assert broken in said


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Not even for annotations; but for `crawlsched.Addon`, which is found when somebody asks for it."""
    graph = grimp.build_graph("crawlsched", exclude_type_checking_imports=False)
    graph.remove_import(importer="crawlsched", imported="crawlsched.addon")
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    while leaves := [name for name, others in imports.items() if not others & imports.keys()]:
        for name in leaves:
            del imports[name]
    in_circles = {name for name in imports if any(name in imports.get(other, ()) for other in imports)}
    assert not in_circles
