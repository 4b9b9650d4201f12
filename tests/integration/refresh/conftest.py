"""A collection that processes share."""

import pytest

from crawlsched.crawl.shared.membership import Membership
from crawlsched.store.lease import me
from crawlsched.store.members import SharedCollection, new_token
from tests.integration.refresh.processes import N_SHARDS


@pytest.fixture
def shared(database, request):
    return SharedCollection.open(database, request.node.name[:60], N_SHARDS, 1000.0)


@pytest.fixture
def member(shared):
    """A process that belongs to those which share it, once it has renewed its word."""
    membership = Membership(shared, new_token(), me("spider"))
    yield membership
    shared.leave(membership.token)
