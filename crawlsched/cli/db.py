"""``crawlsched db upgrade`` and ``crawlsched db check``: the database's tables, and whether it is sound."""

import argparse
from typing import Any

from crawlsched.cli.target import common_options, database_of
from crawlsched.exceptions import StoreError

__all__ = ["add_parser"]


def add_parser(commands: Any) -> None:
    """Add the command and its two sub-commands."""
    parser = commands.add_parser("db", help="bring the database's tables up to date, or look whether they are")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, prog=parser.prog)
    for name, report, say, help_text in (
        ("upgrade", upgrade, say_upgrade, "make the tables of this version, keeping what is in them"),
        ("check", check, say_check, "look whether the tables are this version's and the database is sound"),
    ):
        action = actions.add_parser(name, help=help_text, parents=[common_options(collection=False)])
        action.set_defaults(report=report, say=say)


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
