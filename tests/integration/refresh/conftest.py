"""A collection that processes share."""

import pytest

from crawlsched.store.members import SharedCollection
from tests.integration.refresh.processes import N_SHARDS


@pytest.fixture
def shared(database, request) -> SharedCollection:
    return SharedCollection.open(database, request.node.name[:60], N_SHARDS, 1000.0)
