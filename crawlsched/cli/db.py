"""``crawlsched db``: check, upgrade and copy the database, divide a collection into shards, and refit."""

import argparse
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from crawlsched.cli import refit
from crawlsched.cli.members import say_processes, sharing
from crawlsched.cli.parsing import Option, add_command, add_commands_below, confirm, option, shown_progress
from crawlsched.cli.stores import open_stores
from crawlsched.cli.table_files import new_file
from crawlsched.cli.target import common_options, database_of, find_target
from crawlsched.exceptions import CrawlschedError, StoreError
from crawlsched.settings import format_bandwidth
from crawlsched.wording import or_dash, say_table

__all__ = ["EXAMPLES", "HELP", "add_actions"]


HELP = "check, upgrade, back up or copy the database; its shards; learn again"
EXAMPLES = ("crawlsched db check", "crawlsched db backup crawlsched-backup.db")


def add_actions(parser: argparse.ArgumentParser) -> None:
    """Add the actions of the command."""
    actions = add_commands_below(parser, "actions", "ACTION")
    whole = common_options(collection=False)
    for name, action in _ACTIONS.items():
        common = None if name == "copy" else common_options() if name in _OF_A_COLLECTION else whole
        add_command(actions, name, action, common)


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


_CHECKED = "{database} is sound and up to date (revision {revision})."


def check(arguments: argparse.Namespace) -> dict[str, Any]:
    """Check the database without changing it."""
    from crawlsched.store import schema
    from crawlsched.store.database import Database

    url, _, _ = database_of(arguments)
    revision = schema.check(url)
    with closing(Database(url, read_only=True)) as database:
        problems = schema.damage(database)
    if problems:
        raise StoreError(f"The database {database.name!r} is damaged; restore a backup: {'; '.join(problems)}.")
    return {"database": database.name, "revision": revision, "sound": True}


_BACKED_UP = "{database} was copied to {file} ({bytes:,} bytes)."


def backup(arguments: argparse.Namespace) -> dict[str, Any]:
    """Copy the database as it is now."""
    from crawlsched.store import schema
    from crawlsched.store.copying import copy_file
    from crawlsched.store.database import Database

    url, _, _ = database_of(arguments)
    file: Path = arguments.file
    if file.exists():
        raise CrawlschedError(f"There is a file {str(file)!r} already; name another, or delete it first.")
    revision = schema.check(url)
    with closing(Database(url, read_only=True)) as database, new_file(file) as unfinished:
        # Only the owner may read the copy, since it may hold cookies and passwords.
        unfinished.touch(mode=0o600)
        copy_file(database, unfinished, shown_progress("Copying"))
    return {"database": database.name, "file": str(file), "bytes": file.stat().st_size, "revision": revision}


_RESTORED = "{database} was restored from {file} (revision {revision})."


def restore(arguments: argparse.Namespace) -> dict[str, Any]:
    """Replace the database by a copy; no crawl may use the database meanwhile."""
    from crawlsched.store.copying import copy_file, require_sound
    from crawlsched.store.database import Database, database_url

    url, _, _ = database_of(arguments)
    file: Path = arguments.file
    if not file.is_file():
        raise CrawlschedError(f"There is no file {str(file)!r}; name one that `crawlsched db backup` has written.")
    with closing(Database(url)) as target:
        if not target.is_sqlite:
            raise StoreError(f"The database {target.name!r} is PostgreSQL's; use pg_restore with a copy of pg_dump.")
        revision = require_sound(file)
        path = Path(str(database_url(url).database)).absolute()
        if path == file.absolute():
            raise CrawlschedError(f"{file} is the database itself.")
        if path.exists():
            _refuse_owned(target)
            confirm(f"Replace all that {target.name!r} holds?", is_meant=arguments.yes, refused="Nothing was restored.")
        with closing(Database(f"sqlite:///{file.absolute()}", read_only=True)) as source, target.explained("written"):
            copy_file(source, path, shown_progress("Copying"))
    return {"database": target.name, "file": str(file), "revision": revision}


def _refuse_owned(target: Any) -> None:
    """Raise an error if a crawl runs, since the crawl would write data of the old database into the new one."""
    from sqlalchemy import inspect

    from crawlsched.store.lease import require_idle

    with target.reading() as connection:
        if inspect(connection).has_table("leases"):
            require_idle(target, connection)


def copy(arguments: argparse.Namespace) -> dict[str, Any]:
    """Copy everything into another database."""
    from crawlsched.store.copying import copy_all
    from crawlsched.store.database import database_url

    rows = copy_all(arguments.source, arguments.target, shown_progress("Copying"))
    names = {name: database_url(getattr(arguments, name)).render_as_string() for name in ("source", "target")}
    return {**names, "rows": rows}


def say_copy(report: dict[str, Any]) -> str:
    """Say what was copied, and what the user has to do next."""
    rows = report["rows"]
    return (
        f"{report['source']} was copied to {report['target']}: {rows['pages']:,} pages, {sum(rows.values()):,} rows in "
        f"all, each compared.\nSet CRAWLSCHED_DATABASE_URL to the new one: crawls of the old one are not copied."
    )


def shards(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the shards of a collection, and their owners."""
    with open_stores(arguments) as stores:
        if stores.shared is None:
            stores.whole("db shards")
            return {"collection": stores.name, "n_shards": None, "shards": []}
        shared = sharing(stores.shared)
    owners = {member["token"]: f"{member['host']}:{member['pid']}" for member in shared["members"]}
    return {
        "collection": stores.name,
        **{name: shared[name] for name in ("n_shards", "rate", "paused_since", "waiting")},
        "processes": len(owners),
        "shards": [{**row, "owner": owners.get(row["member"])} for row in shared["shards"]],
    }


def say_shards(report: dict[str, Any]) -> str:
    """Say who crawls which shard."""
    if report["n_shards"] is None:
        return f"{report['collection']}: no shards; one process crawls it (CRAWLSCHED_SHARDS lets several share it)"
    processes, rate = say_processes(report["processes"]), format_bandwidth(report["rate"])
    lines = [f"{report['collection']}: {report['n_shards']} shards on {processes}; {rate} for all"]
    rows = [["shard", "process", "pages", "waiting", "owners so far"]]
    for shard in report["shards"]:
        loading = "" if shard["ready"] or shard["owner"] is None else " (loading)"
        counts = [f"{shard[name]:,}" for name in ("pages", "waiting", "epoch")]
        rows.append([f"{shard['shard']}", f"{or_dash(shard['owner'], '{}')}{loading}", *counts])
    return "\n".join([*lines, *say_table(rows, right="rlrrr")])


def split(arguments: argparse.Namespace) -> dict[str, Any]:
    """Divide a collection among more shards."""
    from crawlsched.store import schema
    from crawlsched.store.database import Database
    from crawlsched.store.splitting import split as split_collection

    target = find_target(arguments)
    schema.check(target.database)
    # Splitting takes long, so a long wait is no sign of a server that hangs.
    with closing(Database(target.database, answer_within=None)) as database:
        done = split_collection(database, target.collection, arguments.n, target.settings.bandwidth)
    return {"collection": target.collection, **done}


def say_split(report: dict[str, Any]) -> str:
    """Say what was divided, and what the user has to do next."""
    pages, n_after = report["n_pages"], report["n_after"]
    before = "one process" if report["n_before"] == 1 else f"{report['n_before']} shards"
    return (
        f"{report['collection']}: {sum(pages):,} pages of {before} are in {n_after} shards now, {min(pages):,} to "
        f"{max(pages):,} in each; {format_bandwidth(report['rate'])} for all.\n"
        f"Crawls of it need CRAWLSCHED_SHARDS = {n_after}."
    )


def _action(example: str, meaning: str, report: Any, words: Any, *options: Option) -> SimpleNamespace:
    """Return an action for `add_command`; `words` is a function of the report, or a text with fields of the report."""
    say = words.format_map if isinstance(words, str) else words
    return SimpleNamespace(
        HELP=meaning, EXAMPLES=(f"crawlsched db {example}",), OPTIONS=options, report=report, say=say
    )


_FILE = option("FILE", "of the copy", Path)
_POSTGRESQL = "--database postgresql://crawler@db.example/crawls"
_ACTIONS = {
    "upgrade": _action("upgrade", "bring the tables to this version, and keep their content", upgrade, say_upgrade),
    "check": _action("check", "say whether the tables are this version's and the database is sound", check, _CHECKED),
    "backup": _action(
        "backup crawlsched-backup.db",
        "copy an SQLite database to a file, also while a crawl goes on",
        backup,
        _BACKED_UP,
        _FILE,
    ),
    "restore": _action(
        "restore crawlsched-backup.db",
        "replace the database by such a copy; asks first",
        restore,
        _RESTORED,
        _FILE,
        option("--yes", "do not ask first"),
    ),
    "copy": _action(
        "copy sqlite:///crawlsched.db postgresql://crawl@db.example/crawls",
        "copy all of a database into an empty one, such as PostgreSQL's",
        copy,
        say_copy,
        option("SOURCE", "the URL of a database that no crawl uses now"),
        option("TARGET", "the URL of an empty database"),
    ),
    "refit": refit,
    "shards": _action(
        f"shards {_POSTGRESQL}",
        "the shards of a collection that processes share: who crawls each, and how large it is",
        shards,
        say_shards,
    ),
    "split": _action(
        f"split 64 {_POSTGRESQL}",
        "divide a collection among more shards, or one of a single process for the first time",
        split,
        say_split,
        option("N", "the new number of shards, a power of two; twice as many by default", int, nargs="?"),
    ),
}
_OF_A_COLLECTION = frozenset(("refit", "shards", "split"))
