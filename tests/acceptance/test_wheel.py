"""The wheel: built from the checkout, installed somewhere else, it works from there, on every Python that is here."""

import json
import os
import re
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests import children
from tests.crawling import Project
from tests.site import Site
from tests.versions.pairs import QUICK, environment, release, run_core_set

ROOT = Path(__file__).parents[2]
PARTS = ("crawlsched", "migrations", "pyproject.toml", "README.md", "LICENSE", "CHANGES.md", "Makefile")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UV = Path(sys.executable).with_name("uv")
EXTRAS = sorted(PROJECT["optional-dependencies"].keys() - {"test"})


def pythons() -> dict[str, Path]:
    """Every Python from 3.11 on that PATH leads to, by its version; of one version the first."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    # What stands in pyenv's folder stands for all versions that pyenv has.
    shims = [folder for folder in folders if folder.name == "shims"]
    folders += [path for folder in shims for path in sorted(folder.parent.glob("versions/*/bin"))]
    found: dict[str, Path] = {}
    for path in (path for folder in folders if folder not in shims for path in sorted(folder.glob("python3.*"))):
        version = re.fullmatch(r"python(3\.(\d+))", path.name)
        if version is not None and int(version[2]) >= 11:
            found.setdefault(version[1], path)
    return found


PYTHONS = pythons()


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    # Without this tree in the path: what works has to be in the wheel.
    return children.output_of(*command, cwd=cwd, environment={"PYTHONPATH": None, **environment})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built without a download from a copy of what goes into it."""
    source = tmp_path_factory.mktemp("source")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, source)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", source / "dist", cwd=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


def test_the_wheel_holds_the_package_its_types_and_its_migrations(wheel):
    """Migrations, py.typed and the licence travel; tests and examples do not."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "crawlsched/py.typed" in names
    assert "crawlsched/migrations/env.py" in names
    versions = {path.name for path in (ROOT / "migrations" / "versions").glob("*.py")}
    assert versions
    assert versions == {Path(name).name for name in names if name.startswith("crawlsched/migrations/versions/")}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"crawlsched"}


def installed(folder: Path, python: Path, *wanted: str | Path) -> Path:
    """Make an environment with packages from the registry, and return its Python."""
    run(UV, "venv", "--quiet", "--python", python, folder / "venv", cwd=folder)
    command = [UV, "pip", "install", "--quiet", "--python", folder / "venv" / "bin" / "python", *wanted]
    answer = children.run(*command, cwd=folder, timeout=600.0)
    if "Failed to fetch" in answer.stderr and "CI" not in os.environ:
        pytest.skip("no package registry is in reach")
    assert answer.returncode == 0, answer.stderr
    return folder / "venv" / "bin" / "python"


IMPORTS = """
import importlib, pkgutil, sys, crawlsched
names = [module.name for module in pkgutil.walk_packages(crawlsched.__path__, "crawlsched.")]
for name in names:
    if ".migrations" not in name and not name.endswith("__main__"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name not in sys.argv[1:]:
                raise
assert len(names) > 100 and "site-packages" in crawlsched.__file__
print(sys.version.split()[0])
"""


def imports_and_crawls(folder: Path, python: Path, *missing: str) -> str:
    """Import all modules but those that need what is missing, and let a spider crawl; return the version of Python."""
    version = run(python, "-W", "error", "-c", IMPORTS, *missing, cwd=folder).strip()
    with Site() as site:
        urls = [site.page(f"/{number}", f"<p>page {number}</p>") for number in range(3)]
        crawl = Project(folder, urls, python=python, visits=9).run()
    assert crawl.returncode == 0, crawl.log
    assert "Traceback" not in crawl.log
    assert crawl.stats["crawlsched/resolved"] >= 9
    command = folder / "venv" / "bin" / "crawlsched"
    assert run(command, "--version", cwd=folder).startswith("crawlsched ")
    told = json.loads(run(command, "status", "--json", "--database", crawl.database_url, cwd=folder))
    assert told["pages"]["states"]["live"] == 3
    return version


@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_imports_and_crawls_on_every_python_found(wheel, tmp_path, version):
    """With what it needs and no extra, as `pip install crawlsched` gives it today."""
    python = installed(tmp_path, PYTHONS[version], wheel)
    ran = imports_and_crawls(tmp_path, python, "numba")
    print(f"The wheel was run by Python {ran}, {PYTHONS[version]}.")
    assert ran.startswith(f"{version}.")


def test_no_python_is_claimed_that_was_not_run():
    """The classifiers name versions that the test above runs where the project's CI is, from the oldest allowed on."""
    claimed = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    if missing := [version for version in claimed if version not in PYTHONS]:
        assert "CI" not in os.environ, f"not found on PATH: Python {', '.join(missing)}"
        pytest.skip(f"not found on PATH: Python {', '.join(missing)}")


@pytest.mark.skipif("3.11" not in PYTHONS, reason="needs the oldest Python allowed")
def test_the_oldest_versions_allowed_are_enough(wheel, tmp_path):
    """On the oldest Python, with the oldest of all that is needed and of all extras."""
    oldest = ["--resolution", "lowest-direct", "-r", str(ROOT / "pyproject.toml")]
    python = installed(tmp_path, PYTHONS["3.11"], *oldest, *(part for name in EXTRAS for part in ("--extra", name)))
    run(UV, "pip", "install", "--quiet", "--no-deps", "--python", python, wheel, cwd=tmp_path)
    extras = [PROJECT["optional-dependencies"][name] for name in EXTRAS]
    bounds = dict(
        re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line).groups()  # type: ignore[union-attr]
        for line in [*PROJECT["dependencies"], *(line for lines in extras for line in lines)]
    )
    program = f"from importlib.metadata import version; print(*map(version, {list(bounds)}))"
    versions = run(python, "-c", program, cwd=tmp_path).split()
    for (name, bound), version in zip(bounds.items(), versions, strict=True):
        assert f"{version}.0.0".startswith(f"{bound}."), f"{name} {version} is not the oldest, {bound}"
    imports_and_crawls(tmp_path, python)


def test_the_oldest_pair_crawls_restarts_and_reads_robots_txt(tmp_path):
    """Scrapy 2.13 and SQLAlchemy 2.0.0: kill -9, credentials, 304 and sitemaps of robots.txt as with the newest."""
    try:
        python = environment(tmp_path, "oldest")
    except AssertionError as error:
        if "Failed to fetch" in str(error) and "CI" not in os.environ:
            pytest.skip("no package registry is in reach")
        raise
    ran, failures = run_core_set(python, tmp_path, QUICK)
    assert not failures, f"{ran}\n{failures}"
    assert release(python, "scrapy").startswith("2.13.")
