"""The target: find the database, the collection and the page that a command is about.

Inside a Scrapy project, the settings name the database; elsewhere, ``--database`` does. A collection must be named only
if the database has several.
"""

import argparse
import os
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import add_json_option, reader
from crawlsched.crawl.project import anchored, is_named_by_arguments
from crawlsched.exceptions import SettingError, StoreError, UnknownPage
from crawlsched.settings import PREFIX, Settings
from crawlsched.wording import say_past

if TYPE_CHECKING:
    from sqlalchemy import URL

    from crawlsched.store import Store
    from crawlsched.store.forgetting import Tombstone

__all__ = [
    "Target",
    "common_options",
    "database_of",
    "find_or_make_target",
    "find_page",
    "find_target",
    "find_targets",
    "forgotten_as",
    "not_found",
    "why_forgotten",
]


@dataclass(frozen=True)
class Target:
    """A collection of a database."""

    database: str
    collection: str
    shard: int | None  # None: not given
    settings: Settings  # the project's settings or, outside of a project, the defaults
    is_project: bool  # whether there is a project


def common_options(*, collection: bool = True) -> argparse.ArgumentParser:
    """Return a parser with the options of all commands, to be one of the `parents` of a command's parser."""
    options = argparse.ArgumentParser(add_help=False)
    group = options.add_argument_group("common options")
    group.add_argument(
        "--database", metavar="URL", help="sqlite:///file.db or postgresql://...; by default the project's"
    )
    if collection:
        group.add_argument("--collection", metavar="NAME", help="needed only where the database holds several")
        group.add_argument(
            "--shard", metavar="N", type=reader(int), help="only this shard of a collection that has several"
        )
    add_json_option(group)
    # Scrapy has an -s of its own, before the command's name. This -s has another `dest`, so that both are applied.
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
    """Return the collection that a command is about; raise an error if there are several."""
    targets = find_targets(arguments)
    if len(targets) > 1:
        raise StoreError(
            f"The database {_shown(targets[0].database)!r} holds several collections; name one with --collection: "
            f"{', '.join(repr(target.collection) for target in targets)}."
        )
    return targets[0]


def find_targets(arguments: argparse.Namespace) -> list[Target]:
    """Return the named collection or, if no name is given, all collections."""
    database, settings, is_project = database_of(arguments)
    named = _named(arguments, settings)
    if (path := missing_file(database)) is not None:
        raise StoreError(
            f"There is no database {str(path)!r}; name another with --database, or go to where the crawl runs "
            "(a crawl makes its database when it starts, and so does: crawlsched db upgrade)."
        )
    names = [named] if named is not None else _collections(database)
    if not names:
        raise StoreError(f"The database {_shown(database)!r} has no collection yet; each crawl makes one.")
    return [Target(database, name, arguments.shard, settings, is_project) for name in names]


def find_or_make_target(arguments: argparse.Namespace) -> Target:
    """Return the collection that a command fills, which may not exist yet."""
    database, settings, is_project = database_of(arguments)
    collection = _named(arguments, settings)
    if collection is None:
        names = [] if missing_file(database) else _collections(database)
        names = names or (_spiders() if is_project else [])
        if len(names) != 1:
            known = f" (known are {', '.join(map(repr, names))})" if names else ""
            raise StoreError(
                "The collection to fill is not known; name it with --collection, usually as the spider is "
                f"named{known}."
            )
        collection = names[0]
    return Target(database, collection, arguments.shard, settings, is_project)


def missing_file(database: str) -> Path | None:
    """Return the path of an SQLite database whose file is missing; otherwise None."""
    url = _url(database)
    path = Path(str(url.database)).absolute()
    return path if url.get_backend_name() == "sqlite" and not path.exists() else None


def _named(arguments: argparse.Namespace, settings: Settings) -> str | None:
    """Return the named collection; None without a name, or if the name depends on the spider's arguments."""
    collection: str | None = arguments.collection or settings.collection
    if collection is not None and arguments.collection is None and is_named_by_arguments(collection):
        return None
    return collection


def _spiders() -> list[str]:
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.project import get_project_settings

    return sorted(get_spider_loader(get_project_settings()).list())


def _project_settings() -> Mapping[str, Any] | None:
    here = Path.cwd()
    if "SCRAPY_SETTINGS_MODULE" not in os.environ and not any(
        (folder / "scrapy.cfg").is_file() for folder in (here, *here.parents)
    ):
        return None
    # Imported here, since loading Scrapy takes a second, and commands outside of a project do not need it.
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
    with closing(Database(database, read_only=True)) as opened, opened.reading() as connection:
        wanted = select(collections.c.name).where(collections.c.shard == 0).order_by(collections.c.name)
        return [str(name) for name in connection.execute(wanted).scalars()]


def _url(database: str) -> "URL":
    from crawlsched.store.database import database_url

    return database_url(database)


def _shown(database: str) -> str:
    from crawlsched.store.database import Database

    return Database(database, read_only=True).name


def find_page(store: "Store", url: str) -> int | None:
    """Return the page with this URL, or with another spelling of the URL; None if there is no such page."""
    page = store.reader.find(url)
    if page is None:
        # Imported here, since loading Scrapy takes a second. It is not needed if the URL is stored in this spelling.
        from scrapy import Request
        from scrapy.utils.request import fingerprint

        try:
            page = store.reader.find(fingerprint(Request(url)))
        except ValueError:  # not a URL, since it has no scheme
            return None
    return page


def not_found(store: "Store", url: str) -> UnknownPage:
    """Return the error for an unknown URL; it names the URL's tombstone, or pages that may be meant."""
    if (stone := store.tombstones.covering(url)) is not None:
        return UnknownPage(url, store.name, forgotten=f"{why_forgotten(stone, time.time())}.")
    return UnknownPage(url, store.name, pages_like(store, url))


def why_forgotten(stone: "Tombstone", now: float) -> str:
    """Say what was forgotten and when, and which command undoes this.

    >>> from crawlsched.store.forgetting import Tombstone
    >>> print(why_forgotten(Tombstone("host", "a.org", 1700000000.0), now=1700000060.0))
    the host a.org was forgotten (2023-11-14 22:13:20 UTC, 60 s ago); take that back with `crawlsched ...
    """
    option = "" if stone.kind == "url" else f"--{stone.kind} "
    return (
        f"the {forgotten_as(stone.kind, stone.value)} was forgotten ({say_past(stone.created_at, now)}); "
        f"take that back with `crawlsched forget --undo {option}{quote(stone.value)}`"
    )


def forgotten_as(kind: str, value: str) -> str:
    """Name a URL, a pattern or a host."""
    return f"{'page' if kind == 'url' else kind} {value}"


def pages_like(store: "Store", text: str) -> list[str]:
    """Return some URLs of pages that may be meant: URLs that contain the text, or similar URLs of the same host."""
    from crawlsched.store import host_of
    from crawlsched.store.listing import Condition, listed

    if not text.strip("*/ "):
        return []
    with store.database.reading() as connection:

        def urls(*conditions: Condition, limit: int = 3) -> list[str]:
            return [url for (url,) in listed(connection, store.key, "pages", ["url"], conditions, limit=limit)]

        plain = text.replace("*", "")
        found = urls(Condition("url", "~", f"*{plain}"))
        found = found or urls(Condition("url", "~", f"*{plain}*"))
        if not found and (host := host_of(text)):
            found = get_close_matches(text, urls(Condition("host", "=", host), limit=2_000))
    return found
