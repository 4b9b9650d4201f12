"""Samples: a row of figures a minute, thinned out with age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, select

from crawlsched.store import models
from crawlsched.store.access import Access
from crawlsched.store.statements import put

__all__ = ["Samples", "joined", "thinned"]

_DAY = 86_400
# From this age on, the rows of these seconds become one; after the last, none is kept.
_LEVELS = ((2 * _DAY, 600), (14 * _DAY, 3_600))
_KEPT = 730 * _DAY
#: Figures that are counts of the seconds before; all others are of their moment.
_COUNTS = frozenset(("seconds", "used", "idle", "no_free_host", "missed", "visits", "errors", "changes", "delivered"))


class Samples:
    """The samples of a collection."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def put(self, time: float, figures: Mapping[str, float | None]) -> None:
        """Keep the figures of a moment, by the names of `models.FIGURES`; those of the same second are replaced."""
        self._access.write(lambda connection: _put(connection, self._access.key, time, figures))

    def since(self, time: float) -> list[dict[str, Any]]:
        """Give the figures since a time, oldest first."""
        with self._access.database.reading() as connection:
            return _since(connection, self._access, time)

    def thin(self, now: float) -> int:
        """Make several old rows into one, and delete very old ones; give how many rows fewer there are."""

        def thin(connection: Connection) -> int:
            old = [row for row in _since(connection, self._access, 0.0) if row["time"] < now - _LEVELS[0][0]]
            kept = thinned(old, now)
            known = {row["time"]: row for row in old}
            table = models.samples
            for time in sorted(known.keys() - {row["time"] for row in kept}):
                connection.execute(delete(table).where(*self._access.own(table), table.c.time == time))
            for row in kept:
                if row != known.get(row["time"]):
                    _put(connection, self._access.key, row["time"], row)
            return len(old) - len(kept)

        return self._access.write(thin)


def _put(connection: Connection, key: tuple[int, int], time: float, figures: Mapping[str, float | None]) -> None:
    told = {name: figures.get(name) for name in models.FIGURES}
    put(connection, models.samples, [{"shard": key[0], "collection": key[1], "time": int(time), **told}])


def _since(connection: Connection, access: Access, time: float) -> list[dict[str, Any]]:
    table = models.samples
    wanted = select(table.c.time, *[table.c[name] for name in models.FIGURES])
    rows = connection.execute(wanted.where(*access.own(table), table.c.time >= int(time)).order_by(table.c.time))
    return [row._asdict() for row in rows]


def thinned(rows: Sequence[Mapping[str, Any]], now: float) -> list[dict[str, Any]]:
    """Return rows joined by their age: counts are added up, other figures averaged over the time that they stand for.

    >>> rows = [{"time": 60 * n, "seconds": 60.0, "visits": n, "pages": 10.0} for n in (1, 2, 3)]
    >>> thinned(rows, now=3 * 86_400)
    [{'time': 180, 'seconds': 180.0, 'visits': 6, 'pages': 10.0}]
    """
    groups: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        age = now - row["time"]
        if age < _KEPT:
            length = max((seconds for level, seconds in _LEVELS if age >= level), default=0)
            groups.setdefault((length, row["time"] // length if length else row["time"]), []).append(row)
    return [joined(group) for _, group in sorted(groups.items(), key=lambda item: item[1][-1]["time"])]


def joined(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return neighbouring rows as one."""
    if len(rows) == 1:
        return dict(rows[0])
    one: dict[str, Any] = {"time": rows[-1]["time"]}
    for name in rows[0]:
        if name == "time":
            continue
        known = [(row[name], row["seconds"] or 0.0) for row in rows if row[name] is not None]
        weight = sum(seconds for _, seconds in known)
        if name in _COUNTS:
            one[name] = sum(value for value, _ in known)
        elif weight:
            one[name] = sum(value * seconds for value, seconds in known) / weight
        else:
            one[name] = known[-1][0] if known else None
    return one
