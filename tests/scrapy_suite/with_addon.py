"""A pytest plugin: every crawler of the tests has the add-on, at its defaults but for rate, end and database.

The settings are put where Scrapy's own defaults are, so whatever a test sets itself stands.
"""

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import default_settings

from crawlsched.addon.addon import Addon
from crawlsched.store import schema

_FOLDER = Path(tempfile.mkdtemp(prefix="crawlsched-scrapy-tests-"))
_NUMBERS = itertools.count()
_install = Addon.update_settings


def _update_settings(self: Addon, settings: Any) -> None:
    """Give each crawl an empty database of its own, already upgraded, and install the add-on."""
    database = _FOLDER / f"{next(_NUMBERS)}.db"
    shutil.copyfile(_FOLDER / "empty.db", database)
    settings.set("CRAWLSCHED_DATABASE_URL", f"sqlite:///{database}", "default")
    _install(self, settings)


def pytest_configure() -> None:
    """Install it for all tests of this process."""
    schema.upgrade(f"sqlite:///{_FOLDER / 'empty.db'}")
    Addon.update_settings = _update_settings  # type: ignore[method-assign]
    settings: Any = default_settings
    settings.ADDONS = {"crawlsched.Addon": 500}
    settings.CRAWLSCHED_ONE_PASS = True
    settings.CRAWLSCHED_BANDWIDTH = "300/s"


@pytest.fixture(scope="session", autouse=True)
def _folder() -> Iterator[None]:
    yield
    shutil.rmtree(_FOLDER, ignore_errors=True)
