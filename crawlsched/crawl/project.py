"""The project: its database, and the collection that a spider's arguments name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crawlsched.exceptions import SettingError

__all__ = ["anchored", "is_named_by_arguments", "named_collection"]

_SQLITE = "sqlite:///"


def anchored(database_url: str, here: Path) -> str:
    """Return a database URL; a relative path begins at the nearest folder with a ``scrapy.cfg``, from `here` upwards.

    >>> anchored("postgresql://db/crawls", Path("/"))
    'postgresql://db/crawls'
    """
    path = database_url.removeprefix(_SQLITE)
    if path == database_url or not path or path.startswith((":", "/", "file:")) or Path(path).is_absolute():
        return database_url
    here = here.resolve()
    for folder in (here, *here.parents):
        if (folder / "scrapy.cfg").is_file():
            return database_url if folder == here else f"{_SQLITE}{folder / path}"
    return database_url


def is_named_by_arguments(collection: str | None) -> bool:
    """Whether a collection's name has a spider's arguments in it, as in ``{name}-{tag}``."""
    return collection is not None and "{" in collection


def named_collection(collection: str, name: str, arguments: Mapping[str, Any]) -> str:
    """Return the name of a collection with the spider's name and arguments in the place of ``{name}`` and the like.

    >>> named_collection("{name}-{tag}", "quotes", {"tag": "love"})
    'quotes-love'

    Raises
    ------
    SettingError
        If the collection's name has an argument that the spider does not have.
    """
    values = {**{field: value for field, value in arguments.items() if value is not None}, "name": name}
    try:
        return collection.format_map(values)
    except KeyError as field:
        raise SettingError(
            f"CRAWLSCHED_COLLECTION is {collection!r}, but the spider {name!r} has no argument {field}; give it with "
            f"-a {field.args[0]}=VALUE, or set a default in the spider's class."
        ) from None
    except (AttributeError, TypeError, ValueError) as error:
        raise SettingError(f"CRAWLSCHED_COLLECTION is {collection!r}, which cannot be filled in: {error}.") from error
