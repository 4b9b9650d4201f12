"""Run the tests of crawling of the installed Scrapy once without and once with the add-on, and say what differs.

They come from the sdist on the package index. What may differ, and why, stands in docs/notes/scrapy_tests.md; the exit
code is 1 if anything else does. Arguments are names of files of theirs: `make scrapy-tests FILES=test_feedexport.py`.
"""

import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_DOCUMENT = _ROOT / "docs" / "notes" / "scrapy_tests.md"
_FILES = (
    *("test_crawl.py", "test_engine*.py", "test_closespider.py", "test_request_attribute_binding.py"),
    *("test_request_left.py",),
    *("test_request_cb_kwargs.py", "test_spidermiddleware*.py", "test_spider*.py", "test_pipeline_*.py"),
    *("test_signals.py", "test_feedexport*.py", "test_contracts.py", "test_downloadermiddleware*.py"),
)


def main() -> int:
    """Fetch, run twice, compare."""
    folder = _ROOT / "build" / "scrapy-tests"
    suite = _fetched(folder)
    names = sys.argv[1:] or _FILES
    without = _outcomes(suite, names, folder / "without.xml", [])
    with_addon = _outcomes(suite, names, folder / "with.xml", ["-p", "tests.scrapy_suite.with_addon"])
    documented = set(re.findall(r"^\| `([^`]+)`", _DOCUMENT.read_text(), re.MULTILINE))
    differing = sorted(test for test, outcome in without.items() if with_addon.get(test, "missing") != outcome)
    print(
        f"{len(without)} tests, {sum(outcome == 'passed' for outcome in without.values())} passed without the add-on, "
    )
    print(f"{sum(outcome == 'passed' for outcome in with_addon.values())} with it; {len(differing)} differ:")
    unknown = [test for test in differing if test not in documented]
    for test in differing:
        note = "" if test in documented else "   NOT DOCUMENTED"
        print(f"  {test}: {without[test]} -> {with_addon.get(test, 'missing')}{note}")
    return 1 if unknown else 0


def _fetched(folder: Path) -> Path:
    """Return the folder of the sdist of the installed Scrapy, without its package: the installed one is tested."""
    release = f"scrapy-{version('scrapy')}"
    suite = folder / release
    if not suite.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--quiet"]
        options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", str(folder)]
        subprocess.run([*pip, "download", *options, release.replace("-", "==")], check=True)
        with tarfile.open(folder / f"{release}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        # Not in the way of the package that is installed.
        (suite / "scrapy").rename(suite / "scrapy-of-the-sdist")
        # Two packages are called `tests`; ours is needed for the plugin, and theirs by its own name.
        (suite / "tests" / "scrapy_suite").symlink_to(Path(__file__).parent)
    return suite


def _outcomes(suite: Path, names: Iterable[str], report: Path, more: list[str]) -> dict[str, str]:
    """Run the tests of some files; return the outcome of each by its name."""
    files = sorted({str(path.relative_to(suite)) for name in names for path in (suite / "tests").glob(name)})
    options = ["--reactor=asyncio", "-q", "-p", "no:cacheprovider", "--timeout=240", f"--junitxml={report}", "-n", "2"]
    subprocess.run([sys.executable, "-m", "pytest", *options, *more, *files], cwd=suite, check=False)
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        outcomes[f"{case.attrib['classname'].removeprefix('tests.')}.{case.attrib['name']}"] = outcome
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
