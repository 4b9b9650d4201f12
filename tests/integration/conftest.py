"""A site to crawl, and the database of what several processes share."""

import pytest

from crawlsched.store import schema
from crawlsched.store.database import Database
from tests.site import Site


@pytest.fixture(scope="module")
def database(make_postgresql_database):
    """Open a PostgreSQL database that has all tables, and nothing in them."""
    url = make_postgresql_database()
    schema.upgrade(url)
    opened = Database(url)
    yield opened
    opened.close()


@pytest.fixture
def site():
    """Serve on three addresses of loopback what the test adds."""
    with Site(("127.0.0.1", "127.0.0.2", "127.0.0.3")) as site:
        yield site
