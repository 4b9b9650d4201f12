"""A database, and a collection in it that processes share."""

from collections.abc import Iterator

import pytest

from crawlsched.store import schema
from crawlsched.store.database import Database
from crawlsched.store.members import SharedCollection
from tests.integration.refresh.processes import N_SHARDS


@pytest.fixture(scope="module")
def database(make_postgresql_database) -> Iterator[Database]:
    url = make_postgresql_database()
    schema.upgrade(url)
    opened = Database(url)
    yield opened
    opened.close()


@pytest.fixture
def shared(database, request) -> SharedCollection:
    return SharedCollection.open(database, request.node.name[:60], N_SHARDS, 1000.0)
