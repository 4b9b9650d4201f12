"""The schema: find the revision of a database, whether it is one of crawlsched, and upgrade it to this version."""

import threading
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, func, inspect, select, text

import crawlsched
from crawlsched.exceptions import SchemaOutOfDate, StoreError
from crawlsched.store.database import Database, database_url
from crawlsched.store.models import metadata

__all__ = ["check", "current", "damage", "head", "prepare", "upgrade"]

#: The name of Alembic's table, which differs from other programs' names.
VERSION_TABLE = "crawlsched_version"

#: The key of the advisory lock under which a PostgreSQL database is upgraded ("crawlsch" as a number).
ADVISORY_LOCK = int.from_bytes(b"crawlsch", "big")

# Alembic's environment is global to the process, so two threads must not migrate at the same time.
_alembic = threading.Lock()


def migrations() -> Path:
    """Return the folder of migrations, inside the installed package or at the top of the checkout."""
    package = Path(crawlsched.__file__).parent
    for place in (package / "migrations", package.parent / "migrations"):
        if (place / "env.py").is_file():
            return place
    raise StoreError(f"The migrations of crawlsched are missing beside {str(package)!r}; install crawlsched again.")


def head() -> str:
    """Return the newest revision that this version of crawlsched knows."""
    return max(_revisions())


def _revisions() -> set[str]:
    """Return all revisions, by the names of their files, since loading Alembic would take long."""
    return {path.name.partition("_")[0] for path in (migrations() / "versions").glob("[0-9]*.py")}


def current(url: str) -> str | None:
    """Return a database's revision without changing anything; None if it is empty or does not exist."""
    parsed = database_url(url)
    path = Path(str(parsed.database)).absolute()
    if parsed.get_backend_name() == "sqlite" and not path.exists():
        if not path.parent.is_dir():
            raise StoreError(
                f"The database {url!r} cannot be opened: the directory {str(path.parent)!r} does not exist; make it, "
                "or name another file."
            )
        return None
    with (
        closing(Database(url, read_only=True)) as database,
        database.explained("opened"),
        database.engine.connect() as connection,
    ):
        return _revision(connection, database.name)


def check(url: str) -> str:
    """Return the revision if it is this version's; otherwise raise `SchemaOutOfDate`, which names the remedy."""
    revision = _known(url)
    if revision != head():
        name = database_url(url).render_as_string()
        behind = f"is behind: at revision {revision}, this version's is {head()}"
        state = "has no tables yet" if revision is None else behind
        raise SchemaOutOfDate(f"The database {name!r} {state}; run: crawlsched db upgrade")
    return revision


def prepare(url: str) -> str:
    """Bring a database to this version's revision. On PostgreSQL refuse older tables, which other programs may use."""
    may_upgrade = database_url(url).get_backend_name() == "sqlite" or current(url) is None
    return upgrade(url) if may_upgrade else check(url)


def upgrade(url: str) -> str:
    """Bring a database to this version's revision, which is returned; several processes may call this together.

    If the database is newer, too old, or of another program, it is not changed, and `SchemaOutOfDate` is raised.
    """
    if _known(url) == head():
        return head()
    # Another process may upgrade the same SQLite file at this moment.
    with (
        closing(Database(url, busy_timeout=60.0, answer_within=None)) as database,
        database.explained("upgraded"),
        database.writing() as connection,
    ):
        if not database.is_sqlite:
            connection.execute(select(func.pg_advisory_xact_lock(ADVISORY_LOCK)))
        if _revision(connection, database.name) != head():  # no other process has upgraded it meanwhile
            migrate(connection)
        return head()


def migrate(connection: Connection) -> None:
    """Run Alembic on a connection to a database that no other process upgrades now."""
    # Imported here, since loading Alembic takes a sixth of a second, and most starts do not need it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations()).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _alembic:
        command.upgrade(config, "head")


def damage(database: Database) -> list[str]:
    """Look for damage; return one sentence for each finding."""
    with database.reading() as connection:
        if database.is_sqlite:
            lines = "\n".join(connection.execute(text("PRAGMA quick_check")).scalars()).splitlines()
            return [line for line in lines if line != "ok" and not line.startswith("***")]
        for table in metadata.sorted_tables:
            connection.execute(select(table).limit(1)).all()
    return []


def _revision(connection: Connection, name: str) -> str | None:
    """Return the revision of a database; raise an error if it belongs to another program."""
    tables = set(inspect(connection).get_table_names())
    if VERSION_TABLE in tables:
        found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars().all()
        return str(found[0]) if found else None
    if tables:
        raise SchemaOutOfDate(
            f"The database {name!r} belongs to another program (it has the table {min(tables)!r} "
            f"and no table {VERSION_TABLE!r}); name another database."
        )
    return None


def _known(url: str) -> str | None:
    """Return a database's revision; raise an error if this version does not know the revision."""
    revision, known, name = current(url), _revisions(), database_url(url).render_as_string()
    if revision is None or revision in known:
        return revision
    if revision < min(known):
        raise SchemaOutOfDate(
            f"The database {name!r} was written by an earlier version of crawlsched (revision {revision}), whose "
            "tables this one cannot read; let that version run `crawlsched export FOLDER`, name a new "
            "database, and run `crawlsched import` for the files pages.csv and visits.csv."
        )
    raise SchemaOutOfDate(
        f"The database {name!r} is ahead: at revision {revision}, which this version of crawlsched does not know "
        f"(its newest is {head()}); install the version that wrote it, or a later one."
    )
