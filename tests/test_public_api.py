"""What the package shows to the world: few names, each where it says, and nothing loaded that nobody asked for."""

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest

import crawlsched
from crawlsched.store import Store
from tests import children

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(crawlsched.__path__, "crawlsched.")
    if ".migrations" not in module.name and not module.name.endswith("__main__")
)
HEAVY = ("scrapy", "twisted", "sqlalchemy", "alembic", "apscheduler", "numpy")
OF_MARKUP = ("lxml", "parsel", "cssselect")
MATHEMATICS = ["crawl_value", "bandwidth", "freshness", "estimators", "frontier", "planner", "change_detection"]
MATHEMATICS += ["change_signals", "simulation"]


def loaded_by(statement: str) -> set[str]:
    """Return which packages and modules a fresh interpreter has loaded after the statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    return set(children.output_of(sys.executable, "-c", program).split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    """`import crawlsched` loads neither Scrapy nor SQL nor numpy."""
    assert loaded_by("import crawlsched").isdisjoint(HEAVY)


def test_the_mathematics_loads_neither_scrapy_nor_sql() -> None:
    """What decides can be used in a notebook without a crawler or a database."""
    names = ", ".join(f"crawlsched.{name}" for name in MATHEMATICS)
    assert loaded_by(f"import {names}").isdisjoint(set(HEAVY) - {"numpy"})


def test_a_command_loads_only_what_it_needs(tmp_path: Path) -> None:
    """`crawlsched --version` loads nothing heavy; `status` of an SQLite file neither Scrapy nor what reads pages."""
    of_version = loaded_by("from crawlsched.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass")
    assert of_version.isdisjoint((*HEAVY, *OF_MARKUP))
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    Store.open(url, "news").close()
    asked = ["status", "--database", url, "--json", str(tmp_path / "status.json")]
    of_status = loaded_by(f"from crawlsched.cli import main\nassert main({asked}) == 0")
    assert {"numpy", "sqlalchemy"} <= of_status
    assert of_status.isdisjoint({*HEAVY, *OF_MARKUP} - {"numpy", "sqlalchemy"})
    assert of_status.isdisjoint(
        ("crawlsched.change_detection", "crawlsched.cli.why", "sqlalchemy.dialects.postgresql", "urllib.request")
    )


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The lazy look-up of `Addon` does not answer for other names."""
    with pytest.raises(AttributeError, match="module 'crawlsched' has no attribute 'Adon'"):
        crawlsched.Adon  # noqa: B018


@pytest.mark.parametrize("name", ["crawlsched", *MODULES])
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    """Each name in a module's `__all__` (which ruff keeps sorted) is there, and says what it is."""
    module = importlib.import_module(name)
    public = getattr(module, "__all__", [])
    assert len(set(public)) == len(public)
    for attribute in public:
        value = getattr(module, attribute)
        if callable(value) and getattr(value, "__module__", "").startswith("crawlsched"):
            assert value.__doc__, f"{name}.{attribute} has no docstring"
