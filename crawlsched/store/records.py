"""Records: a crawl's plans and figures, and the positions of readers of the change feed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, select

from crawlsched.slot_clock import DAY
from crawlsched.store import models
from crawlsched.store.rows import among, json_like, put, to_json
from crawlsched.store.store import Store

__all__ = [
    "joined",
    "last_plan",
    "position_of",
    "put_position",
    "put_sample",
    "samples_since",
    "save_plan",
    "thin_samples",
    "thinned",
]

# Pairs of an age and a period, in seconds. Rows of this age or older are joined into one row for each period.
_LEVELS = ((2 * DAY, 600), (14 * DAY, 3_600))
_KEPT = 730 * DAY
# Figures that count the events since the previous row; all other figures show the row's time.
_COUNTS = frozenset(("seconds", "used", "idle", "no_free_host", "missed", "visits", "errors", "changes", "delivered"))


def save_plan(store: Store, data: dict[str, Any], now: float) -> None:
    """Replace the stored plan (JSON), with which the next crawl and every command begin."""
    row = store.row(id=0, made_at=now, data=to_json(data))
    store.write(lambda connection: put(connection, models.plans, [row]))


def last_plan(store: Store) -> dict[str, Any] | None:
    """Return the newest plan; None if there is none."""
    rows = store.rows(select(models.plans.c.data).where(*store.own(models.plans)))
    return json_like(rows[0].data, {}, "the plan") or None if rows else None


def put_sample(store: Store, time: float, figures: Mapping[str, float | None]) -> None:
    """Write the figures of a moment, by the names of `models.FIGURES`; figures of the same second are replaced."""
    row = store.row(time=int(time), **{name: figures.get(name) for name in models.FIGURES})
    store.write(lambda connection: put(connection, models.samples, [row]))


def samples_since(store: Store, time: float) -> list[dict[str, Any]]:
    """Return the figures since a time, oldest first."""
    table = models.samples
    wanted = select(table.c.time, *[table.c[name] for name in models.FIGURES])
    wanted = wanted.where(*store.own(table), table.c.time >= int(time)).order_by(table.c.time)
    return [row._asdict() for row in store.rows(wanted)]


def thin_samples(store: Store, now: float) -> None:
    """Join neighbouring old rows, and delete very old rows."""
    table = models.samples
    known = {row["time"]: row for row in samples_since(store, 0.0) if row["time"] < now - _LEVELS[0][0]}
    kept = {row["time"]: row for row in thinned(list(known.values()), now)}
    joined_rows = [store.row(**row) for time, row in kept.items() if row != known[time]]

    def thin(connection: Connection) -> None:
        gone = among(table.c.time, list(known.keys() - kept.keys()))
        connection.execute(delete(table).where(*store.own(table), gone))
        put(connection, table, joined_rows)

    store.write(thin)


def position_of(store: Store, follower: str) -> int | None:
    """Return the number of the last change that a follower has received; None if it has not begun."""
    table = models.followers
    rows = store.rows(select(table.c.position).where(*store.own(table), table.c.name == follower))
    return rows[0].position if rows else None


def put_position(store: Store, follower: str, position: int) -> None:
    """Write the number of the last change that a follower has received."""
    row = store.row(name=follower, position=position)
    store.write(lambda connection: put(connection, models.followers, [row]))


def thinned(rows: Sequence[Mapping[str, Any]], now: float) -> list[dict[str, Any]]:
    """Join old rows: counts are summed, and other figures averaged, weighted by their `seconds`.

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
    """Join neighbouring rows into one row."""
    if len(rows) == 1:
        return dict(rows[0])
    one: dict[str, Any] = {"time": rows[-1]["time"]}
    for name in [name for name in rows[0] if name != "time"]:
        known = [(row[name], row["seconds"] or 0.0) for row in rows if row[name] is not None]
        weight = sum(seconds for _, seconds in known)
        if name in _COUNTS:
            one[name] = sum(value for value, _ in known)
        elif weight:
            one[name] = sum(value * seconds for value, seconds in known) / weight
        else:
            one[name] = known[-1][0] if known else None
    return one
