"""Every import of a third party is declared: in the core, or in the extra by which it is named."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    """Names of distributions, written in one way (PEP 503)."""
    found = (re.split(r"[\[<>=;~! ]", requirement)[0] for requirement in requirements)
    return {re.sub(r"[-_.]+", "-", name).lower() for name in found}


def imported() -> dict[str, set[str]]:
    """Modules of others by the top name, with the files that import them."""
    found: dict[str, set[str]] = {}
    for file in sorted([*(ROOT / "crawlsched").rglob("*.py"), *(ROOT / "migrations").rglob("*.py")]):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                modules = [node.module]
            for module in modules:
                top = module.partition(".")[0]
                if top not in sys.stdlib_module_names and top != "crawlsched":
                    found.setdefault(top, set()).add(str(file.relative_to(ROOT)))
    return found


def test_what_is_imported_is_declared() -> None:
    """Nothing is there only because something else happens to bring it."""
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    declared = names(PROJECT["dependencies"])
    declared |= names([line for name, lines in extras.items() if name != "test" for line in lines])
    distributions = packages_distributions()
    for module, files in imported().items():
        brought_by = names(distributions.get(module, [module]))
        assert brought_by & declared, f"{module} is imported by {sorted(files)} and declared nowhere"
