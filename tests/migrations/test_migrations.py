"""The migrations lead to the tables of the models, whoever runs them and however often at once."""

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, Table, create_engine, inspect, text

from crawlsched.exceptions import SchemaOutOfDate, StoreError
from crawlsched.store import Batch, NewPage, Store, schema
from crawlsched.store.models import metadata
from tests import children

UPGRADES = """
import sys
from crawlsched.store import schema
sys.stdin.read(1)
print(schema.upgrade(sys.argv[1]))
"""


def engine_of(url):
    return create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


def described(url):
    """Describe every table with its columns, keys and indexes."""
    engine = engine_of(url)
    inspector = inspect(engine)
    tables = {
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
    engine.dispose()
    return tables


def differences(url) -> list[object]:
    """Give Alembic's list of differences between a database and the models."""
    engine = engine_of(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE})
        found = list(compare_metadata(context, metadata))
    engine.dispose()
    return found


def test_the_head_is_what_the_models_say(database_url):
    """Alembic finds nothing to change, and every constraint and index is there, made at once or by the migrations."""
    engine = engine_of(database_url)
    with engine.begin() as connection:
        schema.migrate(connection)
    assert differences(database_url) == []
    from_migrations = described(database_url)
    with engine.begin() as connection:
        for table in [*metadata.sorted_tables, Table(schema.VERSION_TABLE, MetaData())]:
            table.drop(connection)
    metadata.create_all(engine)
    engine.dispose()
    assert described(database_url) == from_migrations


def test_a_difference_between_migrations_and_models_is_found(database_url):
    """The comparison can fail: a column that is missing, and one that is too many, are both seen."""
    schema.upgrade(database_url)
    engine = engine_of(database_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE pages ADD COLUMN surplus INTEGER"))
        connection.execute(text("ALTER TABLE hosts DROP COLUMN crawl_delay"))
    engine.dispose()
    found = " ".join(str(difference) for difference in differences(database_url))
    assert "surplus" in found
    assert "crawl_delay" in found


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
    assert differences(database_url) == []


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
    engine = engine_of(database_url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '{revision}'"))
    before = described(database_url)
    said = rf"earlier version of crawlsched \(revision {revision}\), .* run `crawlsched import` for the files pages.csv"
    for use in (schema.check, schema.upgrade, lambda url: Store.open(url, "spider")):
        with pytest.raises(SchemaOutOfDate, match=said):
            use(database_url)
    assert (schema.current(database_url), described(database_url)) == (revision, before)
    engine.dispose()


def test_an_upgrade_that_fails_changes_nothing(database_url):
    """A table of the same name in the way (made between the look and the upgrade) undoes the whole upgrade."""
    engine = engine_of(database_url)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE {schema.VERSION_TABLE} (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("CREATE TABLE tombstones (a INTEGER)"))
    with pytest.raises(StoreError, match=r"cannot be upgraded: .*tombstones.* already exists"):
        schema.upgrade(database_url)
    assert inspect(engine).get_table_names() in (
        ["tombstones", schema.VERSION_TABLE],
        [schema.VERSION_TABLE, "tombstones"],
    )
    engine.dispose()


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
