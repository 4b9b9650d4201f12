"""Soundness: rows whose values cannot be meant are left out with a sentence, and every other row is used.

SQLite takes any value in any column, and a damaged file has a text where a number was. A damaged row costs that row:
nothing is allocated by a number that stands in it, and nothing below the store meets a value that it cannot take.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from sqlalchemy import Table

__all__ = ["fitting", "kinds_of", "misfit", "only_sound", "sound_pages", "without_outliers"]

logger = logging.getLogger("crawlsched.store")

# Columns of JSON, which has no part in whether its row is sound: what is damaged in it is left out alone.
_JSON = frozenset(("problems", "quality", "hosts", "counts"))

# States of pages, as `crawlsched.pages` numbers them.
_LAST_STATE = 6
_LARGEST_TIME = 1e12


def kinds_of(table: Table, *names: str) -> dict[str, tuple[type, ...]]:
    """Return the kinds of values that columns of a table have, by default all but the two that each table has.

    >>> from crawlsched.store import models
    >>> kinds_of(models.hosts, "host", "crawl_delay")
    {'host': (<class 'str'>,), 'crawl_delay': (<class 'float'>, <class 'int'>, <class 'NoneType'>)}
    """
    named = names or [name for name in table.columns.keys()[2:] if name not in _JSON]
    kinds = {name: [table.c[name].type.python_type] for name in named}
    return {
        name: (*kind, *[int] * (float in kind), *[type(None)] * bool(table.c[name].nullable))
        for name, kind in kinds.items()
    }


def misfit(values: Mapping[str, Any], kinds: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a row; None if every value is of one of the kinds of its column, and finite.

    >>> misfit({"url": "https://a.example/", "depth": 3}, {"url": str, "depth": int})
    >>> misfit({"url": 7.5}, {"url": str})
    'url is 7.5'
    """
    for name, kind in kinds.items():
        value = values[name]
        if not isinstance(value, kind) or (isinstance(value, float) and not isfinite(value)):
            shown = repr(value)
            return f"{name} is {shown[:60]}{'...' if len(shown) > 60 else ''}"
    return None


def fitting(rows: Sequence[Sequence[Any]], kinds: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    """Return the rows without misfits; their numbers stand in the order of `kinds`, and others may follow.

    Columns are looked at as a whole, which takes a tenth of the time, and rows where one does not fit.

    >>> fitting([(3, 0.5), (4, float("nan")), ("5", 1.5)], {"page": int, "elapsed": (int, float)})
    [(3, 0.5)]
    """
    for column, kind in zip(zip(*rows, strict=True), kinds.values(), strict=False):
        types = {*map(type, column)}
        is_sound = types.issubset(kind if isinstance(kind, tuple) else (kind,))
        if not is_sound or (float in types and not all(map(isfinite, column))):
            return [row for row in rows if misfit(dict(zip(kinds, row, strict=False)), kinds) is None]
    return rows


def only_sound(
    rows: Iterable[dict[str, Any]], kinds: Mapping[str, Any], what: str, name: str
) -> Iterator[dict[str, Any]]:
    """Give the rows that are sound; each other one costs a line in the log, with `what` and the value of `name`."""
    for row in rows:
        wrong = misfit(row, kinds)
        if wrong is None:
            yield row
        else:
            logger.error("The %s %.60r is left out: its row in the database is damaged (%s).", what, row[name], wrong)


def without_outliers(numbers: Iterable[int], gap: int) -> int | None:
    """Return the largest number that can be meant, of the largest ones of a column, largest first; None: there is none.

    >>> without_outliers([2**31 - 1, 12, 11, 10], 100_000), without_outliers([3, 2, 1], 100_000)
    (12, 3)
    """
    listed = [number for number in numbers if isinstance(number, int) and number >= 0]
    for number, below in zip(listed, [*listed[1:], -1], strict=False):
        if number - below <= gap:
            return number
    return None


def sound_pages(block: dict[str, np.ndarray], n_sources: int) -> dict[str, np.ndarray]:
    """Return a block of pages without those that cannot be meant; each costs a line in the log.

    No source has a number from `n_sources` on.
    """
    page, importance = block["page"], block["importance"]
    sound = (page >= 0) & (block["state"] >= 1) & (block["state"] <= _LAST_STATE)
    sound &= np.isfinite(importance) & (importance >= 0.0)
    for name in ("true_signals", "false_signals"):
        sound &= np.isfinite(block[name]) & (block[name] >= 0.0)
    for name in ("crawled_at", "not_before", "signalled_since", "first_seen", "changed_at"):
        # Never is nan or, of a crawl, before all time.
        sound &= ~(block[name] > _LARGEST_TIME) & ~((block[name] < -_LARGEST_TIME) & (block[name] != -np.inf))
    block["source"] = np.where(block["source"] < n_sources, block["source"], -1)
    if sound.all():
        return block
    for number in page[~sound].tolist():
        logger.error("The page number %d is left out: its row in the database is damaged.", number)
    return {name: column[sound] for name, column in block.items()}
