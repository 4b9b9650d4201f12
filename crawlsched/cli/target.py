"""The target: which database and which collection in it a command is about.

Inside a Scrapy project its settings say so, elsewhere ``--database`` does; a collection has to be named only where the
database holds several.
"""

import argparse
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import add_json_option
from crawlsched.collection.project import anchored, is_named_by_arguments
from crawlsched.exceptions import CrawlschedError, SettingError, StoreError
from crawlsched.settings import PREFIX, Settings

if TYPE_CHECKING:
    from crawlsched.store import LeaseRow, Store

__all__ = [
    "ANSWER_WITHIN",
    "Target",
    "answer_to",
    "common_options",
    "database_of",
    "find_or_make_target",
    "find_target",
    "find_targets",
    "n_shards_of",
    "open_shard",
    "open_store",
    "owner_now",
    "send",
]

# A running crawl looks for commands every half second; it may be in the middle of something.
ANSWER_WITHIN = 15.0


@dataclass(frozen=True)
class Target:
    """A collection of a database.

    Attributes
    ----------
    shard : int or None
        The one that was named; None: none was.
    settings : Settings
        The project's, or the defaults outside of one.
    is_project : bool
        Whether they are a project's.
    """

    database: str
    collection: str
    shard: int | None
    settings: Settings
    is_project: bool


def common_options(*, collection: bool = True) -> argparse.ArgumentParser:
    """Return a parser to be given as one of the `parents` of a command's."""
    options = argparse.ArgumentParser(add_help=False)
    group = options.add_argument_group("common options")
    group.add_argument(
        "--database", metavar="URL", help="sqlite:///file.db or postgresql://...; by default the project's"
    )
    if collection:
        group.add_argument("--collection", metavar="NAME", help="needed only where the database holds several")
        group.add_argument("--shard", metavar="N", type=int, help="only this shard of a collection that has several")
    add_json_option(group)
    # Under a name of its own: Scrapy's own -s stands before the command's name, and both are to count.
    group.add_argument(
        "-s", dest="set_here", action="append", default=[], metavar="NAME=VALUE", help="set a setting of the project"
    )
    return options


def database_of(arguments: argparse.Namespace) -> tuple[str, Settings, bool]:
    """Return the database's URL, the settings, and whether they are a project's."""
    found = arguments.project_settings if arguments.project_settings is not None else _project_settings()
    ours = {name: value for name, value in (found or {}).items() if str(name).startswith(PREFIX)}
    for assignment in arguments.set_here:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise SettingError(f"-s must be followed by NAME=VALUE, got {assignment!r}.")
        if name.startswith(PREFIX):
            ours[name] = value
    settings = Settings.from_scrapy(ours)
    if arguments.database is None and not ours.get("CRAWLSCHED_DATABASE_URL") and found is None:
        raise StoreError(
            "No database is named, and this is not inside a Scrapy project; name one with --database URL, such as "
            f"--database {settings.database_url}"
        )
    database = arguments.database or anchored(settings.database_url, Path.cwd())
    return database, settings, found is not None


def find_target(arguments: argparse.Namespace) -> Target:
    """Find out what a command is about.

    Raises
    ------
    StoreError
        If there is no such database or collection, or several collections and none is named.
    """
    database, settings, is_project = database_of(arguments)
    collection = _named(arguments, settings) or _only_collection(database)
    return Target(database, collection, arguments.shard, settings, is_project)


def find_targets(arguments: argparse.Namespace) -> list[Target]:
    """Find out what a command is about that looks at the collection that is named, or else at all there are.

    Raises
    ------
    StoreError
        If there is no such database, or no collection in it.
    """
    database, settings, is_project = database_of(arguments)
    named = _named(arguments, settings)
    names = [named] if named is not None else _collections_there(database)
    return [Target(database, name, arguments.shard, settings, is_project) for name in names]


def _named(arguments: argparse.Namespace, settings: Settings) -> str | None:
    """Return the collection that is named; None: none is, or one for each way to start the spider."""
    collection: str | None = arguments.collection or settings.collection
    if collection is not None and arguments.collection is None and is_named_by_arguments(collection):
        return None
    return collection


def find_or_make_target(arguments: argparse.Namespace) -> Target:
    """Find out what a command is about that fills a collection, which need not be there yet.

    Raises
    ------
    StoreError
        If nothing says which collection it is.
    """
    from crawlsched.store.database import database_url

    database, settings, is_project = database_of(arguments)
    collection = _named(arguments, settings)
    if collection is None:
        url = database_url(database)
        is_there = url.get_backend_name() != "sqlite" or Path(str(url.database)).exists()
        names = _collections(database) if is_there else []
        names = names or (_spiders() if is_project else [])
        if len(names) != 1:
            known = f" (known are {', '.join(map(repr, names))})" if names else ""
            raise StoreError(
                "Nothing says which collection is to be filled; name it with --collection, usually as the spider is "
                f"named{known}."
            )
        collection = names[0]
    return Target(database, collection, arguments.shard, settings, is_project)


def _spiders() -> list[str]:
    """Return the names of the spiders of the project in the working directory."""
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.project import get_project_settings

    return sorted(get_spider_loader(get_project_settings()).list())


def open_shard(target: Target, shard: int, *, read_only: bool = True) -> "Store":
    """Open one shard of the collection; it has to be there."""
    from crawlsched.store import Store

    _refuse_missing_file(target.database)
    return Store.open(target.database, target.collection, shard, upgrade=False, read_only=read_only, create=False)


def open_store(target: Target, *, read_only: bool = True) -> "Store":
    """Open the collection for a command that looks at one store; it has to be there.

    Raises
    ------
    StoreError
        If processes share it, and no shard is named.
    """
    store = open_shard(target, target.shard or 0, read_only=read_only)
    try:
        if target.shard is None and (n_shards := n_shards_of(store)) is not None:
            raise StoreError(
                f"The collection {store.name!r} has {n_shards} shards, and this command is about one of them; name it "
                f"with --shard, from 0 to {n_shards - 1}."
            )
    except BaseException:
        store.close()
        raise
    return store


def n_shards_of(store: "Store") -> int | None:
    """Return how many shards the collection has that this is, or is one of; None: it has none."""
    from crawlsched.store.lease import shards_of

    with store.database.reading() as connection:
        return shards_of(connection, store.key[1])


def owner_now(store: "Store") -> "LeaseRow | None":
    """Return the running process that owns the collection; None if there is none."""
    owner = store.owner()
    return owner if owner is not None and owner.is_held(store.clock()) else None


def send(store: "Store", name: str, arguments: dict[str, Any], *, timeout: float = ANSWER_WITHIN) -> dict[str, Any]:
    """Ask the running crawl for something, and return its answer.

    Raises
    ------
    CrawlschedError
        If it answers that it cannot, or does not answer.
    """
    return answer_to(store, store.commands.send(name, arguments, time.time()), timeout=timeout)


def answer_to(store: "Store", number: int, *, timeout: float, said: float | None = None) -> dict[str, Any]:
    """Wait for the answer to a command that was sent; `said` is the time-out that the sentence names."""
    answer = store.commands.wait_for(number, timeout)
    if answer is None:
        # Withdrawn, so that a crawl which starts tomorrow does not do it then.
        store.commands.finish(number, {"error": "Nobody did it in time."}, time.time())
        raise CrawlschedError(
            f"The crawl of the collection {store.name!r} did not answer within {said or timeout:g} s, so nothing was "
            "done; look at its log."
        )
    result: dict[str, Any] = answer.result
    if isinstance(result, dict) and "error" in result:
        raise CrawlschedError(str(result["error"]))
    return result


def _project_settings() -> Mapping[str, Any] | None:
    here = Path.cwd()
    if "SCRAPY_SETTINGS_MODULE" not in os.environ and not any(
        (folder / "scrapy.cfg").is_file() for folder in (here, *here.parents)
    ):
        return None
    # Only here: outside of a project the command line does without Scrapy, which takes a second to load.
    from scrapy.utils.project import get_project_settings

    try:
        return get_project_settings()
    except ImportError as error:
        raise SettingError(f"The settings of this Scrapy project cannot be imported: {error}.") from error


def _collections(database: str) -> list[str]:
    from sqlalchemy import select

    from crawlsched.store import schema
    from crawlsched.store.database import Database
    from crawlsched.store.models import collections

    schema.check(database)
    opened = Database(database, read_only=True)
    try:
        with opened.reading() as connection:
            wanted = select(collections.c.name).where(collections.c.shard == 0).order_by(collections.c.name)
            return [str(name) for name in connection.execute(wanted).scalars()]
    finally:
        opened.close()


def _collections_there(database: str) -> list[str]:
    """Return the names of the collections, of which there has to be one."""
    from crawlsched.store.database import Database

    _refuse_missing_file(database)
    names = _collections(database)
    if not names:
        name = Database(database, read_only=True).name
        raise StoreError(f"The database {name!r} holds no collection yet; it gets one when a crawl starts.")
    return names


def _only_collection(database: str) -> str:
    from crawlsched.store.database import Database

    names = _collections_there(database)
    if len(names) == 1:
        return names[0]
    name = Database(database, read_only=True).name
    raise StoreError(
        f"The database {name!r} holds several collections; name one with --collection: "
        f"{', '.join(repr(name) for name in names)}."
    )


def _refuse_missing_file(database: str) -> None:
    from crawlsched.store.database import database_url

    url = database_url(database)
    if url.get_backend_name() == "sqlite" and not (path := Path(str(url.database)).absolute()).exists():
        raise StoreError(
            f"There is no database {str(path)!r}; name another with --database, or go to where the crawl runs "
            "(a crawl makes its database when it starts, and so does: crawlsched db upgrade)."
        )
