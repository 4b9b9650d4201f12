"""A database is copied into an empty one of another kind: everything, exactly, or nothing."""

import pytest
from sqlalchemy import insert, select, update

from crawlsched.cli import main
from crawlsched.exceptions import StoreError
from crawlsched.store import Store, schema
from crawlsched.store.copying import copy_all
from crawlsched.store.database import Database
from crawlsched.store.models import metadata
from tests.databases import all_rows, rows
from tests.rows import NOW


def rows_of(url):
    """Every row of every table, in no order."""
    return {name: sorted(map(repr, found)) for name, found in all_rows(url).items()}


def fill_the_rest(url):
    """Put a row into each table that has none, with the largest and strangest values that its columns hold."""
    database = Database(url)
    values = {"INTEGER": 2**31 - 1, "SMALLINT": -(2**15), "BIGINT": -(2**63), "BLOB": bytes(range(256))}
    with database.writing() as connection:
        for table in metadata.sorted_tables:
            if connection.execute(select(table).limit(1)).first() is None:
                strange = {c.name: values.get(str(c.type), "\\N\tü\n{}") for c in table.columns}
                strange |= {c.name: 0.1 + 0.2 for c in table.columns if "FLOAT" in str(c.type)}
                connection.execute(insert(table).values(**strange | {"shard": 0, "collection": 9}))
    database.close()


@pytest.fixture
def crawled_url(crawled_url):
    """A collection that was crawled, and something in every other table."""
    fill_the_rest(crawled_url)
    return crawled_url


def test_a_copy_is_the_same_to_the_last_byte(crawled_url, postgresql_url, tmp_path, capsys):
    """Every row of every table; and back again it is still the same."""
    told = []
    counts = copy_all(crawled_url, postgresql_url, lambda done, total: told.append((done, total)))
    before = rows_of(crawled_url)
    assert all(before.values())
    assert counts == {name: len(rows) for name, rows in before.items()}
    assert rows_of(postgresql_url) == before
    assert told[-1] == (2 * sum(counts.values()),) * 2
    back = f"sqlite:///{tmp_path}/back.db"
    assert main(["db", "copy", postgresql_url, back]) == 0
    assert "119 pages" in capsys.readouterr().out
    assert rows_of(back) == before


def test_what_must_not_be_copied_is_refused(crawled_url, postgresql_url):
    """A collection that is being crawled, one behind, a target with rows: one sentence, and nothing is changed."""
    store = Store.open(crawled_url, "news")
    lease = store.take_lease("news")
    with pytest.raises(StoreError, match=r"'news' of .* is being crawled \(pid \d+ on .*\); end all its crawls first"):
        copy_all(crawled_url, postgresql_url)
    lease.release()
    store.close()
    assert not any(rows_of(postgresql_url).values())
    copy_all(crawled_url, postgresql_url)
    copied = rows_of(postgresql_url)
    with pytest.raises(StoreError, match=r"is not empty \(its table '\w+' has rows\); name an empty one"):
        copy_all(crawled_url, postgresql_url)
    assert rows_of(postgresql_url) == copied
    rows(crawled_url, f"UPDATE {schema.VERSION_TABLE} SET version_num = '0010'")
    with pytest.raises(StoreError, match=r"by an earlier version of crawlsched \(revision 0010\)"):
        copy_all(crawled_url, postgresql_url)


@pytest.mark.parametrize("broken", ["url = 'a' || char(0) || 'b'", "n_crawls = 'many'", "recipe = x'00'"])
def test_a_row_that_the_other_database_cannot_hold_keeps_all_back(crawled_url, postgresql_url, broken):
    """What SQLite let through, and PostgreSQL has no place for: nothing is copied, and the table is named."""
    rows(crawled_url, f"UPDATE pages SET {broken} WHERE page = 7")
    with pytest.raises(StoreError, match=r"table 'pages' of .*nothing was"):
        copy_all(crawled_url, postgresql_url)
    assert not any(rows_of(postgresql_url).values())


def test_nobody_writes_while_it_is_copied(crawled_url, postgresql_url):
    """A crawl cannot start on either database: what it learned would be missing in the copy."""
    refused = []

    def told(done, total):
        if refused:
            return
        for url in (crawled_url, postgresql_url):
            database = Database(url, busy_timeout=0.1, answer_within=0.2)
            with (
                pytest.raises(StoreError, match=r"another process holds|too slow"),
                database.explained("written"),
                database.writing() as connection,
            ):
                connection.execute(update(metadata.tables["leases"]).values(heartbeat_at=NOW))
            refused.append(url)
            database.close()

    copy_all(crawled_url, postgresql_url, told)
    assert refused == [crawled_url, postgresql_url]
