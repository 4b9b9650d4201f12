"""The wheel: built from the checkout, installed somewhere else, it works from there."""

import shutil
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests import children

ROOT = Path(__file__).parents[2]
PARTS = ("crawlsched", "migrations", "pyproject.toml", "README.md", "LICENSE", "CHANGES.md", "Makefile")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    # Without this tree in the path: what works has to be in the wheel.
    return children.output_of(*command, cwd=cwd, environment={"PYTHONPATH": None, **environment})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel; everything else comes from the environment that runs the tests."""
    home = tmp_path_factory.mktemp("elsewhere")
    # Not through with_pip: ensurepip would take longer than all the rest.
    venv.create(home / "venv", with_pip=False, symlinks=True)
    (packages,) = (home / "venv" / "lib").glob("python3*/site-packages")
    run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"),
        *("--prefix", home / "venv", "--no-warn-script-location", "--ignore-installed", wheel),
        cwd=home,
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )
    # Our own checkout is installed editable by a .pth file there, which a plain path in PYTHONPATH does not read.
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "of_the_tests.pth").write_text("\n".join(ours))
    return home


def python_of(home: Path) -> Path:
    return home / "venv" / "bin" / "python"


def test_the_wheel_holds_the_package_its_types_and_its_migrations(wheel: Path) -> None:
    """Migrations, py.typed and the licence travel; tests and examples do not."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "crawlsched/py.typed" in names
    assert "crawlsched/migrations/env.py" in names
    versions = {path.name for path in (ROOT / "migrations" / "versions").glob("*.py")}
    assert versions
    assert versions == {Path(name).name for name in names if name.startswith("crawlsched/migrations/versions/")}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"crawlsched"}


def test_the_installed_package_is_the_wheels(elsewhere: Path) -> None:
    """What is imported there is what was installed there, not this checkout."""
    program = "import crawlsched, crawlsched.settings; print(crawlsched.settings.__file__)"
    where = run(python_of(elsewhere), "-c", program, cwd=elsewhere)
    assert str(elsewhere) in where


def test_its_command_makes_and_checks_a_database(elsewhere: Path) -> None:
    """`crawlsched db upgrade` creates the tables of a new SQLite file from any directory; `db check` then agrees."""
    command = elsewhere / "venv" / "bin" / "crawlsched"
    assert "status" in run(command, "--help", cwd=elsewhere)
    database = f"sqlite:///{elsewhere}/new.db"
    run(command, "db", "upgrade", "--database", database, cwd=elsewhere)
    run(command, "db", "check", "--database", database, cwd=elsewhere)
    assert (elsewhere / "new.db").stat().st_size > 0


def test_scrapy_finds_the_command(elsewhere: Path) -> None:
    """`scrapy crawlsched` is there where the wheel is installed, also outside a project."""
    answer = run(python_of(elsewhere), "-m", "scrapy", "crawlsched", "--help", cwd=elsewhere)
    assert "status" in answer
