"""The layers: import-linter checks them in `make test`; here is shown that the contracts would notice."""

import re
import shutil
import sys
from pathlib import Path

import grimp
import pytest

from tests import children

ROOT = Path(__file__).parents[1]
LINTER = Path(sys.executable).with_name("lint-imports")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the package and its contracts, to be broken."""
    shutil.copytree(ROOT / "crawlsched", tmp_path / "crawlsched", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(checkout: Path) -> tuple[int, str]:
    answer = children.run(LINTER, "--no-cache", cwd=checkout, environment={"PYTHONPATH": None})
    return answer.returncode, re.sub(r"\s+", " ", answer.stdout)


def test_mathematics_that_imports_the_outside_is_noticed(checkout: Path) -> None:
    """Scrapy or SQL below the planner breaks the contract, and the module is named."""
    with (checkout / "crawlsched" / "freshness.py").open("a") as module:
        module.write("\nimport scrapy\n")
    code, output = lint(checkout)
    assert code == 1
    assert "crawlsched.freshness -> scrapy" in output


def test_an_import_that_only_an_annotation_needs_is_one(checkout: Path) -> None:
    """Who names another module in an annotation depends on it: such circles were hidden once."""
    with (checkout / "crawlsched" / "slot_clock.py").open("a") as module:
        module.write(
            "\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from crawlsched.planner import Planner\n"
        )
    code, output = lint(checkout)
    assert code == 1
    assert "crawlsched.slot_clock -> crawlsched.planner" in output


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


def test_a_new_module_has_to_choose_its_layer(checkout: Path) -> None:
    """A module that stands in no layer breaks the contract."""
    (checkout / "crawlsched" / "anything.py").write_text('"""Nothing."""\n')
    code, output = lint(checkout)
    assert code == 1
    assert "anything" in output
