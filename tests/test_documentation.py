"""The documents say what the code does: the tables of the reference are generated or compared, links lead somewhere."""

import argparse
import ast
import re
import sys
from itertools import chain
from pathlib import Path

import pytest

from crawlsched.cli import add_commands
from crawlsched.cli.parsing import CommandParser
from crawlsched.settings import SETTINGS
from crawlsched.settings.settings import GONE
from tests import children

ROOT = Path(__file__).parents[1]
SETTINGS_PAGE = (ROOT / "docs/reference/settings.md").read_text()
STATS_PAGE = (ROOT / "docs/reference/stats.md").read_text()
SOURCES = sorted((ROOT / "crawlsched").rglob("*.py"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGES.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_setting_is_in_the_reference_with_its_default() -> None:
    """Once each, with a meaning that ends as a sentence; the ten that people set come first."""
    rows = re.findall(r"^\| `(CRAWLSCHED_\w+)` \| `(.*?)` \| .*\. \|$", SETTINGS_PAGE, re.MULTILINE)
    assert sorted(rows) == sorted((row.name, repr(row.default)) for row in SETTINGS)
    first = SETTINGS_PAGE.split("\n## ")[1]
    assert first.startswith("The ten that people set\n")
    assert first.count("| `CRAWLSCHED_") == 10


def test_every_setting_that_is_named_anywhere_exists() -> None:
    """No document, message or comment speaks of a setting that there is not."""
    known = {row.name for row in SETTINGS}
    named = {
        (path.relative_to(ROOT), name)
        for path in [*DOCUMENTS, *SOURCES]
        for name in re.findall(r"\bCRAWLSCHED_[A-Z][A-Z_]*[A-Z]\b", path.read_text())
    }
    # One misspelling is on purpose: the example of a mistake in the docstring of Settings. Code may name what is gone.
    named = {(path, name) for path, name in named if name not in known and name != "CRAWLSCHED_BANDWITH"}
    gone = {f"CRAWLSCHED_{name}" for name in GONE}
    unknown = {(path, name) for path, name in named if path.suffix == ".md" or name not in gone}
    assert unknown == set()


def documented_stats() -> list[str]:
    _, _, rest = STATS_PAGE.partition("<!-- stats -->")
    written, _, _ = rest.partition("<!-- end of stats -->")
    return re.findall(r"^\| `(crawlsched/[^`]*)`", written, re.MULTILINE)


def stats_in_code() -> set[str]:
    """Every stat that the code counts; what is filled in when it runs stands as a star."""
    names = (re.findall(r'["\'](crawlsched/[^"\'\s]*)["\']', path.read_text()) for path in SOURCES)
    return {re.sub(r"\{[^}]*\}", "*", name) for name in chain.from_iterable(names)}


def test_every_stat_is_in_the_reference() -> None:
    """What the code counts stands in the reference's table, and what stands there is counted."""
    documented = documented_stats()
    patterns = {name: re.escape(name).replace(r"\*", "[^/]+") for name in stats_in_code()}
    missing = {name for name, pattern in patterns.items() if not any(re.fullmatch(pattern, d) for d in documented)}
    invented = {d for d in documented if not any(re.fullmatch(pattern, d) for pattern in patterns.values())}
    assert (missing, invented) == (set(), set())


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    """A link to another file is to a file that exists."""
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_command_is_in_the_reference() -> None:
    """The table of commands names each, and no other."""
    parser = CommandParser(prog="crawlsched")
    add_commands(parser)
    (commands,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    text = (ROOT / "docs/reference/commands.md").read_text()
    rows = "\n".join(re.findall(r"^\|.*$", text, re.MULTILINE))
    assert set(re.findall(r"`crawlsched ([a-z]+)", rows)) == set(commands._name_parser_map)


# Written for strangers; what explains and what was measured is for those who stay.
FOR_STRANGERS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    *sorted((ROOT / "docs/tutorial").glob("*.md")),
    *sorted((ROOT / "docs/reference").glob("*.md")),
    *(
        ROOT / "docs/explanation" / f"{name}.md"
        for name in ("how_it_decides", "change_detection", "whatif", "reliability", "papers")
    ),
]


@pytest.mark.parametrize("path", FOR_STRANGERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_for_strangers_are_short(path: Path) -> None:
    """No sentence has more than 30 words."""
    text = re.sub(r"^```.*?^```|^<!--.*?-->|^(?: {4}|\t).*?$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", text))
    text = re.sub(r"^(\* |#+ |\d\. |- )", "\n", text, flags=re.MULTILINE)
    sentences = re.split(r"(?<=[.!?:;])[\s*_]+|\n\s*\n|\|", text)
    long = [sentence for sentence in sentences if len(re.findall(r"\w[\w'’-]*", sentence)) > 30]
    assert long == []


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Every page is in the table of contents, and every link within the site leads somewhere (`make docs`)."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = children.run(*command, cwd=ROOT, environment={"NO_MKDOCS_2_WARNING": "1"})
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    assert (tmp_path / "site/tutorial/first_crawl.html").exists()


def test_the_change_log_has_a_heading_for_this_version() -> None:
    """The version of the package, or what is not released yet, has its place in the change log."""
    import crawlsched

    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGES.md").read_text(), re.MULTILINE)
    assert headings
    assert headings[0] in ("Unreleased", crawlsched.__version__)


def test_each_method_of_the_frontier_says_what_it_costs() -> None:
    """Those of `Pages` too: a docstring with O(...), as docs/explanation/frontier.md has it for those of a crawl."""
    silent = []
    for path in [*sorted((ROOT / "crawlsched/frontier").rglob("*.py")), ROOT / "crawlsched/pages/pages.py"]:
        for name in ast.parse(path.read_text()).body:
            if isinstance(name, ast.ClassDef) and not name.name.startswith("_"):
                methods = [method for method in name.body if isinstance(method, ast.FunctionDef)]
                silent += [
                    f"{path.name}: {name.name}.{method.name}"
                    for method in methods
                    if not method.name.startswith("_") and "O(" not in (ast.get_docstring(method) or "")
                ]
    assert not silent
