"""Kept values: what a spider hands from page to page (`meta`, `cb_kwargs`), as JSON and back, items and dates too."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path, PurePath
from typing import Any
from uuid import UUID

from itemadapter import ItemAdapter, is_item

__all__ = ["from_kept", "to_kept"]

# What is no JSON stands as {_TAG: kind, "value": ...}; a dictionary that has such a key itself is written as pairs.
_TAG = "$crawlsched"
_PLAIN = (str, int, bool, type(None))

_WRITTEN: dict[type, tuple[str, Callable[[Any], Any]]] = {
    tuple: ("tuple", lambda value: [to_kept(one) for one in value]),
    set: ("set", lambda value: sorted((to_kept(one) for one in value), key=repr)),
    frozenset: ("frozenset", lambda value: sorted((to_kept(one) for one in value), key=repr)),
    bytes: ("bytes", lambda value: value.decode("latin-1")),
    datetime.datetime: ("datetime", datetime.datetime.isoformat),
    datetime.date: ("date", datetime.date.isoformat),
    datetime.time: ("time", datetime.time.isoformat),
    datetime.timedelta: ("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    Decimal: ("decimal", str),
    UUID: ("uuid", str),
}
_READ: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda value: tuple(from_kept(one) for one in value),
    "set": lambda value: {from_kept(one) for one in value},
    "frozenset": lambda value: frozenset(from_kept(one) for one in value),
    "bytes": lambda value: value.encode("latin-1"),
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda value: datetime.timedelta(*value),
    "decimal": Decimal,
    "uuid": UUID,
    "path": Path,
    "float": float,
    "pairs": lambda value: {from_kept(key): from_kept(one) for key, one in value},
}


def to_kept(value: Any) -> Any:
    """Return a value as JSON from which `from_kept` makes an equal one, or raise ValueError.

    It may be text, numbers, booleans, None, bytes, dates and times, decimals, UUIDs, paths, lists, tuples, sets,
    dictionaries, and items: `scrapy.Item`, dataclasses, attrs and pydantic classes that can be imported.

    Examples
    --------
    >>> to_kept({"seen": datetime.date(2026, 1, 2)})
    {'seen': {'$crawlsched': 'date', 'value': '2026-01-02'}}
    >>> from_kept(to_kept(("a", {1: 2.5})))
    ('a', {1: 2.5})
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else {_TAG: "float", "value": repr(value)}
    if kind is list:
        return [to_kept(one) for one in value]
    if kind is dict:
        if all(type(key) is str for key in value) and _TAG not in value:
            return {key: to_kept(one) for key, one in value.items()}
        return {_TAG: "pairs", "value": [[to_kept(key), to_kept(one)] for key, one in value.items()]}
    if (written := _WRITTEN.get(kind)) is not None:
        return {_TAG: written[0], "value": written[1](value)}
    if is_item(value) and not isinstance(value, dict):
        return _item_to_kept(value)
    if isinstance(value, PurePath):
        return {_TAG: "path", "value": str(value)}
    if isinstance(value, str) and not isinstance(value, Enum):
        return str.__str__(value)
    if isinstance(value, Integral) and not isinstance(value, Enum):
        return int(value)
    if isinstance(value, Real):
        return to_kept(float(value))
    raise ValueError(f"{_short(value)} is not data that can be written down")


def from_kept(value: Any) -> Any:
    """Return the value that `to_kept` has written; ValueError if an item's class is gone or takes other fields now."""
    if isinstance(value, list):
        return [from_kept(one) for one in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_TAG)
    if kind is None:
        return {key: from_kept(one) for key, one in value.items()}
    if kind == "item":
        return _item_from_kept(value["class"], {name: from_kept(one) for name, one in value["value"].items()})
    return _READ[kind](value["value"])


def _item_to_kept(item: Any) -> dict[str, Any]:
    path = _path_of(item)
    fields = {str(name): to_kept(value) for name, value in ItemAdapter(item).items()}
    made = _item_from_kept(path, {name: from_kept(value) for name, value in fields.items()})
    if {str(name): to_kept(value) for name, value in ItemAdapter(made).items()} != fields:
        raise ValueError(f"{_short(item)} is not made again as it was from its fields")
    return {_TAG: "item", "class": path, "value": fields}


def _item_from_kept(path: str, fields: dict[str, Any]) -> Any:
    kind = _class(path)
    # The path may come from a database, so nothing but an item is made of it.
    if not isinstance(kind, type) or not ItemAdapter.is_item_class(kind) or issubclass(kind, dict):
        raise ValueError(f"The class {path} of an item in meta or cb_kwargs is not there any more, or is no item.")
    try:
        return kind(**fields)
    except Exception as error:
        raise ValueError(
            f"An item of the class {path} cannot be made of the fields {sorted(fields)}: {error}"
        ) from error


def _path_of(value: Any) -> str:
    kind = type(value)
    path = f"{kind.__module__}:{kind.__qualname__}"
    if _class(path) is not kind:
        raise ValueError(f"{_short(value)} is of the class {path}, which cannot be imported by that name")
    return path


def _class(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
