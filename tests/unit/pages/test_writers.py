"""Who may write a column of `Pages` is said in one place, and nobody else does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import crawlsched
from crawlsched.pages.pages import Pages
from crawlsched.pages.rare_facts import Facts

# Who writes each column, as the beginning of a module's name; ``*`` stands for all that are not named. Whoever makes a
# simulation or a report may write those of a planner of its own.
WRITERS: dict[str, tuple[str, ...]] = {
    "*": ("crawlsched.planner", "crawlsched.jobs.refit", "crawlsched.simulation.planner_arm"),
    "request_digest": ("crawlsched.crawl.collection",),
    "marks": ("crawlsched.crawl.shard_pages", "crawlsched.crawl.collection", "crawlsched.crawl.run"),
}
ROOT = Path(crawlsched.__file__).parent
COLUMNS = {*Pages.names, *Facts._fields, "rare"}
# Names by which the columns of pages go.
OF_PAGES = {"pages", "_pages", "columns"}
# Methods that write columns: those of one column, and those of all of them.
OF_A_COLUMN, OF_ALL = {"count_one", "set_one"}, {"set_rare", "set_rows", "reached"}


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _column(node: ast.expr) -> str | None:
    """Return the column that an expression such as ``planner.pages.marks`` names."""
    is_one = isinstance(node, ast.Attribute) and node.attr in COLUMNS and _last(node.value) in OF_PAGES
    return node.attr if is_one and isinstance(node, ast.Attribute) else None


def _written(tree: ast.AST) -> Iterator[str]:
    """Give the columns that a module writes; ``*`` for all of them."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in OF_A_COLUMN and (column := _column(node.func.value)):
                yield column
            elif node.func.attr in OF_ALL and _last(node.func.value) in OF_PAGES:
                yield "*"
        for target in targets:
            column = _column(target.value if isinstance(target, ast.Subscript) else target)
            if column is not None:
                yield column


def test_a_column_is_written_by_those_who_may() -> None:
    """Each module under `crawlsched` is looked at, and each entry of the list is needed."""
    found: dict[str, set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(["crawlsched", *path.relative_to(ROOT).with_suffix("").parts])
        for column in _written(ast.parse(path.read_text())):
            found.setdefault(module, set()).add(column)
    found.pop("crawlsched.pages.pages", None)
    wrong = []
    needed: set[tuple[str, str]] = set()
    for module, columns in found.items():
        for column in columns:
            may = [name for name in WRITERS.get(column, WRITERS["*"]) if f"{module}.".startswith(f"{name}.")]
            wrong += [] if may else [f"{module} writes {column}"]
            needed.update((column if column in WRITERS else "*", name) for name in may)
    assert wrong == []
    assert needed == {(column, name) for column, names in WRITERS.items() for name in names}
