"""Mutations: small faults put into the modules that decide, one at a time, to see which of them no test notices.

``python -m tests.tools.mutations judge --seed 1 --number 20`` draws twenty for the judge. Each stands in a copy of this
tree, where the tests that concern the module are run until one fails. What lives is printed with what was changed.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[2]
#: Of each part that decides: its modules, and what is run for it, the quickest first.
PARTS = {
    "judge": (
        ["change_detection/detector.py", "change_detection/trace.py", "change_detection/template_noise.py",
         "change_detection/shared_texts.py", "content/verdict.py"],
        ["tests/unit/change_detection/test_detector.py tests/unit/change_detection/test_evidence.py "
         "tests/unit/content crawlsched/change_detection/detector.py crawlsched/change_detection/trace.py",
         "tests/unit/change_detection crawlsched/change_detection crawlsched/content", "tests/integration/content"],
    ),
    "posterior": (
        ["estimators/posterior.py"],
        ["tests/unit/estimators/test_estimators_posterior.py tests/unit/estimators/test_estimators_soft_visits.py "
         "tests/unit/test_wrong_arguments.py crawlsched/estimators/posterior.py",
         "tests/unit/estimators crawlsched/estimators tests/papers", "tests/unit/planner tests/unit/crawl_value"],
    ),
    "frontier": (
        ["frontier/*.py"],
        ["tests/unit/frontier tests/unit/planner/test_discovery.py crawlsched/frontier",
         "tests/unit/planner tests/unit/simulation"],
    ),
    "sharing": (
        ["sharing.py"],
        ["tests/unit/sharing crawlsched/sharing.py",
         "tests/integration/store/test_members.py tests/integration/refresh"],
    ),
    "writer": (
        ["store/saving.py"],
        ["tests/integration/store/test_store.py -k sqlite", "tests/integration/store", "tests/integration/collection"],
    ),
}  # fmt: skip
COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.Pow: ast.Mult,
}  # fmt: skip


class Mutation(NamedTuple):
    """One fault: the module, the line, what stood there, and the source with it."""

    module: Path
    line: int
    change: str
    source: str


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in a node's place."""
    other = copy.deepcopy(node)
    match other:
        case ast.Compare():
            other.ops[0] = COMPARISONS[type(other.ops[0])]()
        case ast.BoolOp():
            other.op = ast.And() if isinstance(other.op, ast.Or) else ast.Or()
        case ast.BinOp() if type(other.op) in OPERATORS:
            other.op = OPERATORS[type(other.op)]()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            other = other.operand
        case ast.Constant(value=bool(value)):
            other.value = not value
        case ast.Constant(value=int(value) | float(value)):
            other.value = value + 1
            yield ast.Constant(value - 1)
        case ast.Return(value=ast.expr()):
            other.value = ast.Constant(None)
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            other = ast.Pass()
        case _:
            return
    yield other


def mutations_of(module: Path) -> Iterator[Mutation]:
    """Yield every mutation of a module but for annotations and constants: another bound or size is another choice."""
    tree = ast.parse(module.read_text())
    left_alone: set[ast.AST] = set()
    for node in ast.walk(tree):
        said = [getattr(node, name, None) for name in ("annotation", "returns")]
        left_alone.update(*(ast.walk(one) for one in (*said, *getattr(node, "decorator_list", ())) if one is not None))
    for one in tree.body:
        if isinstance(one, ast.Assign) and not any(isinstance(node, ast.Lambda) for node in ast.walk(one)):
            left_alone.update(ast.walk(one))
    for parent in ast.walk(tree):
        if parent in left_alone:
            continue
        for name, value in ast.iter_fields(parent):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            children = value if isinstance(value, list) else [value]
            for number, child in enumerate(children):
                if not isinstance(child, ast.AST):
                    continue
                for variant in variants(child):
                    change = f"{ast.unparse(child)}  ->  {ast.unparse(variant)}"
                    if ast.unparse(child) == ast.unparse(variant):
                        continue
                    put: Callable[[ast.AST], None] = (
                        (lambda one, at=number, among=children: among.__setitem__(at, one))
                        if isinstance(value, list)
                        else (lambda one, of=parent, field=name: setattr(of, field, one))
                    )
                    put(variant)
                    yield Mutation(module, child.lineno, change, ast.unparse(ast.fix_missing_locations(tree)))
                    put(child)


def is_caught(tree: Path, mutation: Mutation, tests: list[str]) -> bool:
    """Run the tests in a copy of the tree that has a mutation, until one fails."""
    changed = tree / mutation.module.relative_to(HERE)
    changed.write_text(mutation.source)
    options = ["-q", "-x", "-n0", "-p", "no:cacheprovider", "-m", "not (statistics or programs)"]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        for places in tests:
            command = [sys.executable, "-m", "pytest", *options, *places.split()]
            ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=300, check=False)
            if ran.returncode:
                return True
        return False
    except subprocess.TimeoutExpired:  # it goes on for ever
        return True
    finally:
        shutil.copy(mutation.module, changed)


def main() -> None:
    """Draw mutations of a part, run its tests with each, and say which live."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("part", choices=PARTS)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--number", type=int, default=20)
    arguments.add_argument("--only", type=int, nargs="+", help="only these of the drawn ones, by their numbers")
    arguments.add_argument("--stages", type=int, help="run only so many of the lists of tests, the quickest")
    given = arguments.parse_args()
    modules, tests = PARTS[given.part]
    files = [file for pattern in modules for file in sorted((HERE / "crawlsched").glob(pattern))]
    drawn = random.Random(given.seed).sample([one for file in files for one in mutations_of(file)], given.number)
    caught = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        shutil.copytree(HERE, tree, ignore=shutil.ignore_patterns(".*", "build", "__pycache__"))
        for number, mutation in enumerate(drawn):
            if given.only is not None and number not in given.only:
                continue
            found = is_caught(tree, mutation, tests[: given.stages])
            caught += found
            place = f"{mutation.module.relative_to(HERE)}:{mutation.line}"
            print(f"{number:3}", "caught" if found else "LIVES ", place, mutation.change.replace("\n", " "), flush=True)
    print(f"{given.part}: {caught} of {len(given.only or drawn)} mutations were caught (seed {given.seed}).")


if __name__ == "__main__":
    main()
