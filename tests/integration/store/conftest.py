"""An empty collection, on SQLite and on PostgreSQL."""

from contextlib import ExitStack, closing

import pytest

from crawlsched.store import Store


@pytest.fixture
def store(database_url):
    with closing(Store.open(database_url, "spider", upgrade=True)) as opened:
        yield opened


@pytest.fixture
def sqlite_store(sqlite_url):
    with closing(Store.open(sqlite_url, "spider")) as opened:
        yield opened


@pytest.fixture
def beside(database_url):
    """Open the database of `store` once more, as another process does."""
    with ExitStack() as stack:
        yield lambda name="spider", **more: stack.enter_context(closing(Store.open(database_url, name, **more)))
