"""A database that cannot be used gives one sentence, and nothing in it is changed."""

import hashlib
import os
import re
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import make_url, text

from crawlsched.exceptions import SchemaOutOfDate, StoreError
from crawlsched.store import Batch, Store, schema
from crawlsched.store.database import Database
from tests.databases import rows
from tests.integration.store.locks import locked
from tests.rows import new_pages


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def contents(path: Path) -> dict[str, bytes]:
    return {name.name: hashlib.sha256(name.read_bytes()).digest() for name in path.parent.iterdir() if name.is_file()}


def test_a_new_sqlite_file_is_made_by_itself(sqlite_url):
    """The default needs no command: the file, its tables and the collection are made at the first start."""
    Store.open(sqlite_url, "spider").close()
    assert schema.check(sqlite_url) == schema.head()
    assert rows(sqlite_url, "PRAGMA journal_mode") == [{"journal_mode": "wal"}]


def test_an_empty_postgresql_database_gets_its_tables(postgresql_url):
    """Nobody else can be using them; a command that only looks makes none, and says how."""
    with pytest.raises(SchemaOutOfDate, match=r"has no tables yet; run: crawlsched db upgrade"):
        Store.open(postgresql_url, "spider", read_only=True)
    assert schema.current(postgresql_url) is None
    Store.open(postgresql_url, "spider").close()
    assert schema.current(postgresql_url) == schema.head()


def test_a_newer_database_is_refused_unchanged(database_url):
    """A revision that this version does not know was written by a later one."""
    Store.open(database_url, "spider", upgrade=True).close()
    rows(database_url, "UPDATE crawlsched_version SET version_num = '9999'")
    for upgrade in (True, False):
        with pytest.raises(SchemaOutOfDate, match=r"is ahead: at revision 9999, .* install the version that wrote it"):
            Store.open(database_url, "spider", upgrade=upgrade)
    assert rows(database_url, "SELECT version_num FROM crawlsched_version") == [{"version_num": "9999"}]


@pytest.mark.parametrize("table", ["django_migrations", "alembic_version", "pages"])
def test_another_programs_database_is_refused_unchanged(database_url, table):
    """Tables without ours among them belong to somebody else, even where a name is the same."""
    rows(database_url, f"CREATE TABLE {table} (version_num VARCHAR(32))")
    is_sqlite = database_url.startswith("sqlite")
    before = contents(path_of(database_url)) if is_sqlite else {}
    for upgrade in (True, False):
        with pytest.raises(SchemaOutOfDate, match=rf"belongs to another program \(it has the table '{table}'"):
            Store.open(database_url, "spider", upgrade=upgrade)
    if is_sqlite:
        assert contents(path_of(database_url)) == before
    tables = "sqlite_master" if is_sqlite else "pg_tables WHERE schemaname = 'public'"
    assert len(rows(database_url, f"SELECT 1 AS one FROM {tables}")) == 1


@pytest.mark.parametrize("content", [b"not a database, but a text\n" * 500, b"SQLite format 3\0" + b"\xff" * 8000])
def test_a_file_that_is_no_database_is_refused_unchanged(sqlite_url, content):
    """A text, or a file whose header alone looks right."""
    path_of(sqlite_url).write_bytes(content)
    with pytest.raises(StoreError, match=r"cannot be opened: .*; restore a backup, or name another file"):
        Store.open(sqlite_url, "spider")
    assert path_of(sqlite_url).read_bytes() == content


def test_a_damaged_file_is_said_to_be_damaged(sqlite_url):
    """Pages of the file overwritten in the middle: reading them, and the check, say so in a sentence."""
    with closing(Store.open(sqlite_url, "spider")) as store:
        for start in range(0, 20_000, 5000):
            store.save(Batch(new_pages=new_pages(range(start, start + 5000))))
    path, sound = path_of(sqlite_url), path_of(sqlite_url).read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(30):  # where the schema itself is hit, opening fails, and not always in the same words
        damaged = bytearray(sound)
        for start in rng.integers(4096 * 4, len(sound) - 200, 300).tolist():
            damaged[start : start + 100] = rng.bytes(100)
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"the database is damaged \(.*\); restore a backup"):
            load_and_check(sqlite_url)


def load_and_check(url):
    with closing(Store.open(url, "spider")) as store:
        list(store.load())
        if findings := schema.damage(store.database):  # damage where nothing was read
            raise StoreError(f"the database is damaged ({findings[0]}); restore a backup")


@pytest.mark.parametrize(
    "damage", ["n_crawls = 'many'", "host = x'00'", "host = x'dcff'", "host = CAST(x'dcff' AS TEXT)"]
)
def test_a_value_of_the_wrong_kind_costs_its_row(sqlite_url, caplog, damage):
    """SQLite keeps a text in a column of numbers without a word; loading leaves that page out, says so, and goes on."""
    store = Store.open(sqlite_url, "spider")
    store.save(Batch(new_pages=new_pages(range(3))))
    rows(sqlite_url, f"UPDATE pages SET {damage} WHERE page = 1")
    assert [block["page"].tolist() for block in store.load()] == [[0, 2]]
    assert "The page number 1 is left out: its row in the database is damaged" in caplog.text
    rows(sqlite_url, "UPDATE pages SET etag = CAST(x'6aff' AS TEXT) WHERE page = 2")
    assert [facts is None for facts in store.reader.facts([0, 2])] == [False, True]
    assert "The page number 2 cannot be used: its row in the database is damaged" in caplog.text
    store.close()


def test_a_damaged_collection_ends_the_start_with_one_sentence(sqlite_url):
    """Its number names all its rows; another collection is opened beside it."""
    Store.open(sqlite_url, "news").close()
    rows(sqlite_url, "UPDATE collections SET collection = 'x' WHERE name = 'news'")
    with pytest.raises(
        StoreError, match=r"The row of the collection 'news' .* is damaged \(its number is 'x'\); restore"
    ):
        Store.open(sqlite_url, "news")
    Store.open(sqlite_url, "other").close()


def test_a_locked_file_is_said_to_be_locked(sqlite_url, monkeypatch):
    """Another process holds it exclusively: after a few seconds the sentence says so."""
    monkeypatch.setitem(Database.__init__.__kwdefaults__, "busy_timeout", 0.3)
    Store.open(sqlite_url, "spider").close()
    with (
        locked(sqlite_url, "DELETE", "EXCLUSIVE"),
        pytest.raises(StoreError, match=r"another process holds the database locked .*; end the process that holds"),
    ):
        Store.open(sqlite_url, "spider")
    Store.open(sqlite_url, "spider").close()


@contextmanager
def as_nobody():
    """Act as a user without rights."""
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="has to become another user")
def test_a_file_that_may_not_be_written_is_said_to_be_read_only(sqlite_url, tmp_path):
    """Started by a user who may read the file but not write it."""
    for directory in (tmp_path, *tmp_path.parents):
        if directory != Path("/") and directory.stat().st_mode & 0o005 != 0o005:
            directory.chmod(directory.stat().st_mode | 0o005)
    Store.open(sqlite_url, "spider").close()
    rows(sqlite_url, "PRAGMA journal_mode = DELETE")  # so that no other files are needed to read it
    path_of(sqlite_url).chmod(0o444)
    before = contents(path_of(sqlite_url))
    said = r"the database is read-only.*give this user the right to write, or name another database\.$"
    with as_nobody(), pytest.raises(StoreError, match=said):
        Store.open(sqlite_url, "spider")
    assert contents(path_of(sqlite_url)) == before


def test_a_server_that_is_read_only_is_refused(postgresql_url):
    """A standby accepts connections and refuses writes; it is found out at the start, not at the first batch."""
    Store.open(postgresql_url, "spider", upgrade=True).close()
    name = make_url(postgresql_url).database
    rows(postgresql_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(StoreError, match="is read-only"):
        Store.open(postgresql_url, "spider")


@pytest.mark.parametrize("case", re.findall(r".+\n    .+", (Path(__file__).parent / "urls.txt").read_text()))
def test_a_wrong_url_gives_one_sentence_without_the_password(case):
    """What is wrong, what to write instead, and never the password."""
    url, sentence = case.split("\n    ")
    with pytest.raises(StoreError, match=re.escape(sentence)) as raised:
        Store.open(url, "spider")
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_path_with_signs_of_its_own_is_opened(tmp_path):
    """Blanks, percent signs, hashes and letters outside ASCII in a directory's name, to write and only to read."""
    directory = tmp_path / "my data 100% #1 ü"
    directory.mkdir()
    url = f"sqlite:///{directory}/a b.db"
    Store.open(url, "spider").close()
    Store.open(url, "spider", read_only=True).close()
    assert (directory / "a b.db").is_file()


# PostgreSQL behind PgBouncer in transaction mode: nothing is left in a session, and nothing is expected there.
def asked(database: Database, question: str, **options) -> object:
    with database.reading() as connection:
        return connection.execute(text(question), options).scalar_one()


@pytest.mark.parametrize(("said", "n_prepared"), [("", 1), ("&pgbouncer=true", 0)])
def test_no_statement_is_prepared_where_it_would_be_looked_for_in_another_session(postgresql_url, said, n_prepared):
    """PgBouncer before 1.21 gives the next transaction a session that knows nothing of it."""
    database = Database(postgresql_url + said)
    for number in range(20):
        assert asked(database, "SELECT CAST(:number AS integer)", number=number) == number
    assert asked(database, "SELECT count(*) FROM pg_prepared_statements") == n_prepared
    database.close()


def test_limits_are_those_of_a_transaction(postgresql_url):
    """The next user of the session must not have them; nor is the lock of an upgrade the session's."""
    assert schema.upgrade(postgresql_url + "&pgbouncer=true") == schema.check(postgresql_url + "&pgbouncer=true")
    database = Database(postgresql_url + "&pgbouncer=true", answer_within=3.0)
    assert asked(database, "SHOW lock_timeout") == "2700ms"
    assert asked(database, "SHOW statement_timeout") == "3s"
    with database.at_once() as connection:
        assert connection.execute(text("SHOW statement_timeout")).scalar_one() == "0"
    database.close()
    reader = Database(postgresql_url + "&pgbouncer=true", read_only=True)
    assert asked(reader, "SHOW transaction_read_only") == "on"
    reader.close()
