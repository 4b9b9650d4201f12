"""``crawlsched db``: the database: its tables, copies, shards, and learning again from the visits that it keeps."""

import argparse
import sys
from pathlib import Path
from typing import Any

from crawlsched.cli import refit, shards
from crawlsched.cli.parsing import add_json_option, command_parsers, examples
from crawlsched.cli.progress import shown_progress
from crawlsched.cli.table_files import new_file
from crawlsched.cli.target import common_options, database_of
from crawlsched.exceptions import CrawlschedError, StoreError

__all__ = ["add_parser"]

_COPIED = ("source", "target")


def add_parser(commands: Any) -> None:
    """Add the command and its sub-commands."""
    parser = commands.add_parser(
        "db",
        help="check, upgrade, back up or copy the database; its shards; learn again",
        epilog=examples("crawlsched db check", "crawlsched db backup crawlsched-backup.db"),
    )
    actions = command_parsers(parser, "actions", "ACTION")
    for name, report, say, help_text in (
        ("upgrade", upgrade, say_upgrade, "make the tables of this version, keeping what is in them"),
        ("check", check, say_check, "look whether the tables are this version's and the database is sound"),
        ("backup", backup, say_backup, "copy an SQLite database to a file, also while a crawl goes on"),
        ("restore", restore, say_restore, "put such a copy in the place of the database; asks first"),
    ):
        file = " crawlsched-backup.db" if name in ("backup", "restore") else ""
        example = examples(f"crawlsched db {name}{file}")
        action = actions.add_parser(name, help=help_text, parents=[common_options(collection=False)], epilog=example)
        if file:
            action.add_argument("file", metavar="FILE", type=Path)
        if name == "restore":
            action.add_argument("--yes", action="store_true", help="do not ask first")
        action.set_defaults(report=report, say=say, is_long=bool(file))
    example = examples("crawlsched db copy sqlite:///crawlsched.db postgresql://crawl@db.example/crawls")
    action = actions.add_parser(
        "copy", help="copy all of a database into an empty one, such as PostgreSQL's", epilog=example
    )
    action.add_argument("source", metavar="SOURCE", help="the URL of the database that no crawl uses now")
    action.add_argument("target", metavar="TARGET", help="the URL of one without a row")
    add_json_option(action)
    action.set_defaults(report=copy, say=say_copy, is_long=True)
    for module in (refit, shards):
        module.add_parser(actions)


def upgrade(arguments: argparse.Namespace) -> dict[str, Any]:
    """Bring the database to this version's schema."""
    from crawlsched.store import schema
    from crawlsched.store.database import database_url

    url, _, _ = database_of(arguments)
    before = schema.current(url)
    return {"database": database_url(url).render_as_string(), "before": before, "revision": schema.upgrade(url)}


def say_upgrade(report: dict[str, Any]) -> str:
    """Say what was done."""
    if report["before"] == report["revision"]:
        return f"{report['database']} is up to date (revision {report['revision']})."
    if report["before"] is None:
        return f"{report['database']} has its tables now (revision {report['revision']})."
    return f"{report['database']} was upgraded from revision {report['before']} to {report['revision']}."


def check(arguments: argparse.Namespace) -> dict[str, Any]:
    """Look at the database and change nothing."""
    from crawlsched.store import Store, schema
    from crawlsched.store.database import Database

    url, _, _ = database_of(arguments)
    revision = schema.check(url)
    # The check is of the whole database, whatever collections it holds; there is none with the number 0.
    store = Store(Database(url, read_only=True), "", (0, 0))
    try:
        problems = store.quick_check()
    finally:
        store.close()
    if problems:
        raise StoreError(f"The database {store.database.name!r} is damaged; restore a backup: {'; '.join(problems)}.")
    return {"database": store.database.name, "revision": revision, "sound": True}


def say_check(report: dict[str, Any]) -> str:
    """Say that all is well; what is not is an error."""
    return f"{report['database']} is sound and up to date (revision {report['revision']})."


def backup(arguments: argparse.Namespace) -> dict[str, Any]:
    """Copy the database as it is now."""
    from crawlsched.store import schema
    from crawlsched.store.backup import copy_database
    from crawlsched.store.database import Database

    url, _, _ = database_of(arguments)
    file: Path = arguments.file
    if file.exists():
        raise CrawlschedError(f"There is a file {str(file)!r} already; name another, or delete it first.")
    revision = schema.check(url)
    database = Database(url, read_only=True)
    try:
        with new_file(file) as unfinished, shown_progress("Copying") as progress:
            # Cookies and passwords may stand in it, as in the database.
            unfinished.touch(mode=0o600)
            copy_database(database, unfinished, progress)
    finally:
        database.close()
    return {"database": database.name, "file": str(file), "bytes": file.stat().st_size, "revision": revision}


def say_backup(report: dict[str, Any]) -> str:
    """Say what was written."""
    return f"{report['database']} was copied to {report['file']} ({report['bytes'] / 1e6:,.1f} MB)."


def restore(arguments: argparse.Namespace) -> dict[str, Any]:
    """Put a copy in the place of the database, which no crawl may use meanwhile."""
    from crawlsched.store.backup import copy_database, require_sound
    from crawlsched.store.database import Database, database_url

    url, _, _ = database_of(arguments)
    file: Path = arguments.file
    if not file.is_file():
        raise CrawlschedError(f"There is no file {str(file)!r}; name one that `crawlsched db backup` has written.")
    target = Database(url)
    try:
        if not target.is_sqlite:
            raise StoreError(f"The database {target.name!r} is PostgreSQL's; pg_restore puts a copy of pg_dump back.")
        revision = require_sound(file)
        path = Path(str(database_url(url).database)).absolute()
        if path == file.absolute():
            raise CrawlschedError(f"{file} is the database itself.")
        if path.exists():
            _refuse_owned(target)
            if not arguments.yes:
                _ask(target.name)
        source = Database(f"sqlite:///{file.absolute()}", read_only=True)
        try:
            with shown_progress("Copying") as progress, target.explained("written"):
                copy_database(source, path, progress)
        finally:
            source.close()
    finally:
        target.close()
    return {"database": target.name, "file": str(file), "revision": revision}


def say_restore(report: dict[str, Any]) -> str:
    """Say what was done."""
    return f"{report['database']} is what {report['file']} holds now (revision {report['revision']})."


def copy(arguments: argparse.Namespace) -> dict[str, Any]:
    """Copy everything into another database."""
    from crawlsched.store.copying import copy_all
    from crawlsched.store.database import database_url

    with shown_progress("Copying") as progress:
        rows = copy_all(arguments.source, arguments.target, progress)
    names = {name: database_url(url).render_as_string() for name, url in vars(arguments).items() if name in _COPIED}
    return {**names, "rows": rows}


def say_copy(report: dict[str, Any]) -> str:
    """Say what was copied, and what is left to do."""
    rows = report["rows"]
    return (
        f"{report['source']} was copied to {report['target']}: {rows['pages']:,} pages, {sum(rows.values()):,} rows in "
        f"all, each compared.\nSet CRAWLSCHED_DATABASE_URL to it: what a crawl learns in the old one stays there."
    )


def _ask(name: str) -> None:
    if not sys.stdin.isatty():
        raise CrawlschedError(
            f"Restoring would replace all that {name!r} holds, and nobody is here to be asked; "
            "add --yes if it is meant."
        )
    print(f"Replace all that {name!r} holds? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CrawlschedError("Nothing was restored.")


def _refuse_owned(target: Any) -> None:
    """Refuse while a crawl runs: it would write on what it remembers of the database that was there before."""
    from sqlalchemy import inspect

    from crawlsched.store.copying import require_idle

    with target.reading() as connection:
        if inspect(connection).has_table("leases"):
            require_idle(target, connection)
