"""PostgreSQL behind PgBouncer in transaction mode: nothing is left in a session, and nothing is expected there."""

import pytest
from sqlalchemy import text

from crawlsched.exceptions import StoreError
from crawlsched.store import schema
from crawlsched.store.database import Database


def asked(database: Database, question: str, **options) -> object:
    with database.reading() as connection:
        return connection.execute(text(question), options).scalar_one()


@pytest.mark.parametrize(("said", "n_prepared"), [("", 1), ("&pgbouncer=true", 0)])
def test_no_statement_is_prepared_where_it_would_be_looked_for_in_another_session(
    postgresql_url, said: str, n_prepared: int
) -> None:
    """PgBouncer before 1.21 gives the next transaction a session that knows nothing of it."""
    database = Database(postgresql_url + said)
    for number in range(20):
        assert asked(database, "SELECT CAST(:number AS integer)", number=number) == number
    assert asked(database, "SELECT count(*) FROM pg_prepared_statements") == n_prepared
    database.close()


def test_limits_are_those_of_a_transaction(postgresql_url) -> None:
    """The next user of the session must not have them."""
    database = Database(postgresql_url + "&pgbouncer=true", answer_within=3.0)
    assert asked(database, "SHOW lock_timeout") == "2700ms"
    assert asked(database, "SHOW statement_timeout") == "3s"
    with database.at_once() as connection:
        assert connection.execute(text("SHOW statement_timeout")).scalar_one() == "0"
    database.close()


def test_what_reads_only_cannot_write(postgresql_url) -> None:
    """As without a pool."""
    database = Database(postgresql_url + "&pgbouncer=true", read_only=True)
    with (
        pytest.raises(StoreError, match="the database is read-only"),
        database.explained("written"),
        database.writing() as connection,
    ):
        connection.execute(text("CREATE TABLE forbidden ()"))
    database.close()


def test_tables_are_not_changed_through_a_pool(postgresql_url) -> None:
    """The lock against a second upgrade is a session's, and would stay with whoever gets that session next."""
    with pytest.raises(StoreError, match=r"give `crawlsched db upgrade` the URL of PostgreSQL itself"):
        schema.upgrade(postgresql_url + "&pgbouncer=true")
    schema.upgrade(postgresql_url)
    schema.upgrade(postgresql_url + "&pgbouncer=true")  # there is nothing to do
    schema.check(postgresql_url + "&pgbouncer=true")
