"""Listing: the rows of a collection as a person asks for them, by conditions and in an order."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, select

from crawlsched.pages import STATE_NAMES
from crawlsched.store import models
from crawlsched.store.forgetting import pattern
from crawlsched.store.rows import same

__all__ = ["OPERATORS", "TABLES", "Condition", "Kind", "listed"]

# A shard, or None for all of them, and the number of the collection.
Key = tuple[int | None, int]

_ROWS_AT_ONCE = 5_000
_COMPARISONS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
#: What a condition may compare by; ``~`` is a pattern in which ``*`` stands for anything.
OPERATORS = (*_COMPARISONS, "~", "!~")


class Kind(NamedTuple):
    """A column that can be listed."""

    column: ColumnElement[Any]
    kind: str


class Condition(NamedTuple):
    """A condition on a row, such as ``crawled_at < 1700000000.0``; a value of None stands for no value."""

    name: str
    operator: str
    value: float | str | None


def _kinds(table: Any, **names: str) -> dict[str, Kind]:
    return {name: Kind(table.c[name], kind) for name, kind in names.items()}


_page, _visit = models.pages, models.observations

_PAGES = {
    **_kinds(
        _page,
        url="text",
        importance="number",
        host="text",
        state="state",
        first_seen="time",
        crawled_at="time",
        changed_at="time",
        n_crawls="number",
        n_changes="number",
        n_errors="number",
        n_signals_total="number",
        change_rate="number",
        change_rate_low="number",
        change_rate_high="number",
        expected_freshness="number",
        precision="number",
        recall="number",
        not_before="time",
        depth="number",
        variant="text",
        recipe="text",
        etag="text",
        last_modified="text",
        moved_to="text",
    ),
    "undelivered": Kind(case((_page.c.pending_fingerprint.is_not(None), 1), else_=0), "truth"),
}

_OF_A_PAGE = {"url": Kind(_page.c.url, "text")}

#: What can be listed: by table and name, in the order in which it is written.
TABLES: dict[str, dict[str, Kind]] = {
    "pages": _PAGES,
    "visits": {
        **_OF_A_PAGE,
        **_kinds(_visit, time="time", changed="truth", outcome="text", status="number", size="number"),
        **_kinds(_visit, elapsed="number", n_signals="number", changed_share="number", similarity="number"),
        **_kinds(_visit, time_since_modified="number"),
    },
    "announcements": {
        **_OF_A_PAGE,
        "source": Kind(models.sources.c.url, "text"),
        **_kinds(models.announcements, lastmod="time", n="number"),
    },
    "sources": _kinds(
        models.sources, url="text", kind="text", host="text", polled_at="time", next_poll_at="time", n_entries="number"
    ),
    "hosts": _kinds(models.hosts, host="text", rest_until="time", crawl_delay="number", robots_seen_at="time"),
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
    """Give rows that fulfil all conditions, one after the other; a shard of None in `key` stands for all shards.

    `order` is a column and whether the largest comes first; rows without a value come last.
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
    found = connection.execution_options(stream_results=True).execute(wanted).yield_per(_ROWS_AT_ONCE)
    fits: list[tuple[int, Callable[[str], object], bool]] = [
        (len(names) + n, pattern(str(c.value)).fullmatch, c.operator == "~") for n, c in enumerate(patterns)
    ]
    fitting = (row for row in found if all(bool(test(row[at] or "")) is wants for at, test, wants in fits))
    states = [at for at, name in enumerate(names) if kinds[name].kind == "state"]
    for row in islice(fitting, limit):
        values = list(row[: len(names)])
        for at in states:
            values[at] = STATE_NAMES[values[at]]
        yield tuple(values)


def _clause(column: ColumnElement[Any], condition: Condition) -> ColumnElement[bool]:
    _, operator, value = condition
    if operator in ("~", "!~"):
        # LIKE narrows the rows down; which case of letters it tells apart differs, and is looked at afterwards.
        parts = [re.sub(r"([%_\\])", r"\\\1", part) for part in str(value).split("*")]
        like = column.like("%".join(parts), escape="\\")
        return like if operator == "~" else column.is_not(None)
    if value is None:
        return column.is_(None) if operator == "=" else column.is_not(None)
    found: ColumnElement[bool] = _COMPARISONS[operator](column, value)
    return found | column.is_(None) if operator == "!=" else found
