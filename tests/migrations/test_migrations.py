"""The migrations lead to the tables of the models, whoever runs them and however often at once."""

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, Table, inspect, text

from crawlsched.exceptions import SchemaOutOfDate, StoreError
from crawlsched.store import Batch, NewPage, Store, schema
from crawlsched.store.models import metadata
from tests import children
from tests.databases import connected, rows

UPGRADES = """
import sys
from crawlsched.store import schema
sys.stdin.read(1)
print(schema.upgrade(sys.argv[1]))
"""


def described(url):
    """Describe every table with its columns, keys and indexes."""
    with connected(url) as connection:
        inspector = inspect(connection)
        return {
            name: (
                [(column["name"], str(column["type"]), column["nullable"]) for column in inspector.get_columns(name)],
                inspector.get_pk_constraint(name)["constrained_columns"],
                sorted((index["name"], index["column_names"]) for index in inspector.get_indexes(name)),
                sorted((unique["name"], unique["column_names"]) for unique in inspector.get_unique_constraints(name)),
                sorted((check["name"], check["sqltext"]) for check in inspector.get_check_constraints(name)),
            )
            for name in inspector.get_table_names()
            if name != schema.VERSION_TABLE
        }


def test_the_head_is_what_the_models_say(database_url):
    """Every column, constraint and index is there, made at once or by the migrations."""
    with connected(database_url) as connection:
        schema.migrate(connection)
        from_migrations = described(database_url)
        for table in [*metadata.sorted_tables, Table(schema.VERSION_TABLE, MetaData())]:
            table.drop(connection)
        metadata.create_all(connection)
    assert described(database_url) == from_migrations


def test_there_is_one_head_and_each_step_is_reached():
    """No two migrations follow the same one, and their revisions are numbered in order."""
    script = ScriptDirectory(str(schema.migrations()))
    revisions = [step.revision for step in script.walk_revisions()][::-1]
    assert script.get_heads() == [revisions[-1]] == [schema.head()]
    assert revisions == [f"{number:04}" for number in range(21, 21 + len(revisions))]


def test_upgrading_twice_changes_nothing(database_url):
    """At the head there is nothing to do, and nothing is written."""
    assert schema.upgrade(database_url) == schema.upgrade(database_url) == schema.head()


def test_several_processes_upgrade_at_once(database_url):
    """One does it, the others wait and find it done; none fails."""
    pipe = subprocess.PIPE
    processes = [
        children.start(sys.executable, "-c", UPGRADES, database_url, stdin=pipe, stdout=pipe, stderr=pipe)
        for _ in range(4)
    ]
    for process in processes:  # they are all waiting for this byte, so that they begin together
        process.stdin.write("x")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert (out.strip(), process.returncode) == (schema.head(), 0), err
    assert schema.check(database_url) == schema.head()


def test_a_database_that_is_behind_is_named_with_both_revisions(database_url, monkeypatch):
    """The sentence has the revision found, the one wanted, and the command; nothing is upgraded by itself."""
    schema.upgrade(database_url)
    found = schema.head()
    monkeypatch.setattr(schema, "head", lambda: "9999")
    with pytest.raises(
        SchemaOutOfDate, match=f"is behind: at revision {found}, this version's is 9999; run: crawlsched db"
    ):
        schema.check(database_url)


@pytest.mark.parametrize("revision", ["0001", "0020"])
def test_a_database_of_an_earlier_schema_is_refused_unchanged(database_url, revision):
    """The sentence says how its pages come into a new one; no migration leads here from what was never released."""
    schema.upgrade(database_url)
    rows(database_url, f"UPDATE {schema.VERSION_TABLE} SET version_num = '{revision}'")
    before = described(database_url)
    said = rf"earlier version of crawlsched \(revision {revision}\), .* run `crawlsched import` for the files pages.csv"
    for use in (schema.check, schema.upgrade, lambda url: Store.open(url, "spider")):
        with pytest.raises(SchemaOutOfDate, match=said):
            use(database_url)
    assert (schema.current(database_url), described(database_url)) == (revision, before)


def test_an_upgrade_that_fails_changes_nothing(database_url):
    """A table of the same name in the way (made between the look and the upgrade) undoes the whole upgrade."""
    rows(database_url, f"CREATE TABLE {schema.VERSION_TABLE} (version_num VARCHAR(32) NOT NULL)")
    rows(database_url, "CREATE TABLE tombstones (a INTEGER)")
    with pytest.raises(StoreError, match=r"cannot be upgraded: .*tombstones.* already exists"):
        schema.upgrade(database_url)
    assert described(database_url).keys() == {"tombstones"}


def test_every_key_contains_shard_and_collection():
    """No row of one collection can clash with one of another."""
    for table in metadata.sorted_tables:
        keys = [table.primary_key, *(c for c in table.constraints if type(c).__name__ == "UniqueConstraint")]
        for key in keys:
            names = {column.name for column in key.columns}
            assert "shard" in names, table.name
            assert "collection" in names or table.name == "collections", table.name


def test_the_reference_has_a_line_for_every_table():
    """Whoever writes SQL finds there what a row is."""
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "store.md").read_text()
    assert [table.name for table in metadata.sorted_tables if f"\n| `{table.name}` | " not in reference] == []


def test_nothing_is_stored_as_a_pickle():
    """Every column is a number, a text or bytes."""
    kinds = {type(column.type).__name__ for table in metadata.sorted_tables for column in table.columns}
    assert kinds <= {"BigInteger", "Float", "Integer", "LargeBinary", "SmallInteger", "Text"}


def test_postgresql_finds_a_page_by_its_key_before_the_table_is_analysed(postgresql_url):
    """Without statistics any index that begins with shard and collection looks as good, and reads every page."""
    store = Store.open(postgresql_url, "spider", upgrade=True)
    pages = range(3000)
    store.save(Batch(new_pages={n: NewPage(n, f"http://a/{n}", "a", n.to_bytes(20, "big"), 1.7e9) for n in pages}))
    with store.database.reading() as connection:
        asked = "EXPLAIN UPDATE pages SET etag = '' WHERE shard = 0 AND collection = 1 AND page = 77"
        plan = " ".join(connection.execute(text(asked)).scalars())
    assert "using pk_pages" in plan
    store.close()
