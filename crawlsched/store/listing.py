"""Listing: read rows of a collection by conditions and in an order."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Text, case, select

from crawlsched.pages import STATE_NAMES
from crawlsched.store import models
from crawlsched.store.forgetting import pattern
from crawlsched.store.rows import ROWS_AT_ONCE, same

__all__ = ["OPERATORS", "TABLES", "Condition", "Kind", "listed"]

# A shard (None: all shards) and the number of the collection.
Key = tuple[int | None, int]

_COMPARISONS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
#: The operators of conditions; ``~`` compares with a pattern, in which ``*`` matches any text.
OPERATORS = (*_COMPARISONS, "~", "!~")


class Kind(NamedTuple):
    """A column that can be listed."""

    column: ColumnElement[Any]
    kind: str


class Condition(NamedTuple):
    """A condition on a row, such as ``crawled_at < 1700000000.0``; None stands for an empty value."""

    name: str
    operator: str
    value: float | str | None


# The kinds of columns that are neither numbers nor texts.
_OTHERS = {
    **dict.fromkeys(("first_seen", "crawled_at", "changed_at", "not_before", "time", "lastmod"), "time"),
    **dict.fromkeys(("polled_at", "next_poll_at", "rest_until", "robots_seen_at"), "time"),
    "changed": "truth",
}


def _kinds(table: Any, names: str) -> dict[str, Kind]:
    columns = {name: table.c[name] for name in names.split()}
    return {
        name: Kind(column, _OTHERS.get(name, "text" if isinstance(column.type, Text) else "number"))
        for name, column in columns.items()
    }


_page, _visit = models.pages, models.observations
_OF_A_PAGE = _kinds(_page, "url")

#: The columns that can be listed, by table and name, in the order of output.
TABLES: dict[str, dict[str, Kind]] = {
    "pages": {
        **_kinds(_page, "url importance host state first_seen crawled_at changed_at n_crawls n_changes n_errors"),
        **_kinds(_page, "n_signals_total change_rate change_rate_low change_rate_high expected_freshness precision"),
        **_kinds(_page, "recall not_before depth recipe etag last_modified moved_to"),
        "state": Kind(case(dict(enumerate(STATE_NAMES)), value=_page.c.state), "state"),
        "undelivered": Kind(case((_page.c.pending_fingerprint.is_not(None), 1), else_=0), "truth"),
    },
    "visits": {
        **_OF_A_PAGE,
        **_kinds(_visit, "time changed outcome status size elapsed n_signals changed_share similarity"),
        **_kinds(_visit, "time_since_modified"),
    },
    "announcements": {
        **_OF_A_PAGE,
        "source": Kind(models.sources.c.url, "text"),
        **_kinds(models.announcements, "lastmod n"),
    },
    "sources": _kinds(models.sources, "url kind host polled_at next_poll_at n_entries"),
    "hosts": _kinds(models.hosts, "host rest_until crawl_delay robots_seen_at"),
}
_ORDERS = {"pages": _page.c.page, "visits": _visit.c.id}


def listed(
    connection: Connection,
    key: Key,
    table: str,
    names: Sequence[str],
    conditions: Sequence[Condition] = (),
    order: tuple[str, bool] | None = None,
    limit: int | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that fulfil all conditions.

    `order` names a column, and says whether its largest value is first; rows without a value are last.
    """
    kinds = TABLES[table]
    patterns = [c for c in conditions if c.operator in ("~", "!~")]
    named = [*names, *(c.name for c in patterns)]
    wanted = select(*[kinds[name].column.label(f"c{n}") for n, name in enumerate(named)])
    shard, collection = key
    rows: Any = models.metadata.tables["observations" if table == "visits" else table]
    joined = rows
    if "url" not in rows.c and "page" in rows.c:
        joined = joined.join(_page, same(rows, _page, "page"))
    if "source" in kinds:
        joined = joined.join(models.sources, same(rows, models.sources, "source"))
    wanted = wanted.select_from(joined).where(rows.c.collection == collection)
    if shard is not None:
        wanted = wanted.where(rows.c.shard == shard)
    wanted = wanted.where(*[_clause(kinds[c.name].column, c) for c in conditions])
    if order is not None:
        column = kinds[order[0]].column
        wanted = wanted.order_by(column.is_(None), column.desc() if order[1] else column)
    if table in _ORDERS:
        wanted = wanted.order_by(_ORDERS[table])
    if limit is not None and not patterns:
        wanted = wanted.limit(limit)
    found = connection.execution_options(stream_results=True).execute(wanted).yield_per(ROWS_AT_ONCE)
    fits: list[tuple[int, Callable[[str], object], bool]] = [
        (len(names) + n, pattern(str(c.value)).fullmatch, c.operator == "~") for n, c in enumerate(patterns)
    ]
    fitting = (row for row in found if all(bool(test(row[at] or "")) is wants for at, test, wants in fits))
    yield from (tuple(row[: len(names)]) for row in islice(fitting, limit))


def _clause(column: ColumnElement[Any], condition: Condition) -> ColumnElement[bool]:
    _, operator, value = condition
    if operator in ("~", "!~"):
        # LIKE finds candidates. SQLite's LIKE ignores case, so case is checked afterwards.
        parts = [re.sub(r"([%_\\])", r"\\\1", part) for part in str(value).split("*")]
        like = column.like("%".join(parts), escape="\\")
        return like if operator == "~" else column.is_not(None)
    if value is None:
        return column.is_(None) if operator == "=" else column.is_not(None)
    found: ColumnElement[bool] = _COMPARISONS[operator](column, value)
    return found | column.is_(None) if operator == "!=" else found
