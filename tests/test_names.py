"""Names: the words of the glossary are those of the code, and classes are named by what they are."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "crawlsched"
# Of a running crawl.
PACKAGES = ("addon", "content", "crawl")
# Nouns all the same.
NOUNS = {"Finding", "Holding"}


def _classes(folder: Path) -> dict[str, list[str]]:
    """Return where the classes of a folder are defined, by name."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    return found


def _words() -> list[tuple[str, str]]:
    rows = (ROOT / "docs" / "reference" / "glossary.md").read_text().splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row.startswith("| ")]
    return [(word, name.strip("`")) for word, _, name in cells[2:]]


@pytest.mark.parametrize(("word", "name"), _words())
def test_each_word_of_the_glossary_names_something_in_the_code(word: str, name: str) -> None:
    """A class, a module or a package, by one name."""
    modules = {path.stem for path in PACKAGE.rglob("*.py")} | {path.name for path in PACKAGE.iterdir()}
    assert name in modules or name in _classes(PACKAGE), f"{word!r} is {name!r} in the glossary, which is nowhere."


def test_the_classes_of_a_running_crawl_are_nouns_and_no_two_classes_have_one_name() -> None:
    """Who reads a name knows which class it is, and that it is a thing."""
    everywhere = _classes(PACKAGE)
    own = {name for package in PACKAGES if (PACKAGE / package).exists() for name in _classes(PACKAGE / package)}
    verbs = {name for name in own - NOUNS if re.search(r"ing$|^(Told|Heard|Asked|Owed|Lessons|Mishaps)$", name)}
    assert not verbs
    twice = {name: places for name, places in everywhere.items() if len(places) > 1}
    assert not twice
