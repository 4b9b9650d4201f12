"""An empty collection, on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from crawlsched.store import Store


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with closing(Store.open(database_url, "spider", upgrade=True)) as opened:
        yield opened


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[Store]:
    with closing(Store.open(sqlite_url, "spider")) as opened:
        yield opened
