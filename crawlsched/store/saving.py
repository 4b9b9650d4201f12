"""Saving: make a batch into rows, and write these in one transaction.

The database may refuse a row (an integer too large, a key that exists already). Such a row must not block the others.
So the transaction is repeated row by row, and refused rows are counted and logged.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from sqlalchemy import Connection, Table

from crawlsched.change_signals import part_number
from crawlsched.pages import NEW
from crawlsched.store import models
from crawlsched.store.batch import Batch, ChangeRow, KeptText, NewPage, ObservationRow, Outgoing
from crawlsched.store.database import is_row_error, reason
from crawlsched.store.rows import OWN, put, to_json, url_digest

__all__ = ["Prepared", "Refused", "prepared", "write", "write_carefully"]

logger = logging.getLogger("crawlsched.store")

Row = dict[str, Any]
#: The rows to write, by the index of their step in `_STEPS`.
Prepared = dict[int, list[Row]]
#: The number of rows of a batch that the database refused, by table.
Refused = Counter[str]

_OWN_PAGE = (OWN + "shard", OWN + "collection", OWN + "page")
_COLUMNS = frozenset(models.pages.c.keys())
_NEVER_CRAWLED = {
    **dict.fromkeys(models.STATE_COLUMNS, 0),
    **{"state": NEW, "importance": 1.0, "crawled_at": None, "signalled_since": None, "source": -1},
}


# Types that need no cleaning. They are looked for first, since nearly all values have these types.
_PLAIN = frozenset({int, float, bytes, type(None)})


def _clean(value: Any) -> Any:
    r"""Convert a value for the database: containers to JSON, numpy's numbers to Python's, truth values to 0 or 1.

    Characters that PostgreSQL or UTF-8 cannot hold are removed from texts.

    >>> _clean('W/"a\0b"'), _clean(np.True_), _clean([1])
    ('W/"ab"', 1, '[1]')
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        if type(value) is str and value.isascii() and "\0" not in value:
            return value
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    return to_json(value) if isinstance(value, dict | list | tuple | Mapping) else value


def _named(*names: str) -> Callable[[Any], Row]:
    def row(item: tuple[Any, Any]) -> Row:
        parts = [part if isinstance(part, tuple) else (part,) for part in item]
        return dict(zip(names, (*parts[0], *parts[1]), strict=True))

    return row


def _new_pages(batch: Batch) -> Iterator[tuple[NewPage, Row]]:
    """Yield the new pages, each with its row of `Batch.columns`, or the row of a page that was never crawled."""
    if batch.new_pages:
        states = dict(_states(batch))
        yield from ((page, states.get(number, _NEVER_CRAWLED)) for number, page in batch.new_pages.items())


def _new_page(item: tuple[NewPage, Row]) -> Row:
    page, state = item
    url = _clean(page.url)
    of_url = {"url": page.url, "url_digest": url_digest(url), "part": part_number(url)}
    return {**page._asdict(), **of_url, "request_fingerprint": bytes(page.request_fingerprint), **state}


def _states(batch: Batch) -> Iterator[tuple[int, Row]]:
    """Yield number and columns of each page in `Batch.columns`."""
    if not batch.columns:
        return
    order = np.argsort(batch.columns["page"], kind="stable")
    written = (*models.STATE_COLUMNS, *(name for name in models.READABLE_COLUMNS if name in batch.columns))
    columns = {name: _values(np.asarray(batch.columns[name])[order]) for name in written}
    if "log_likelihood" in batch.columns:
        columns["log_likelihood"] = [row.tobytes() for row in batch.columns["log_likelihood"][order].astype("<u2")]
        columns["grid"] = [batch.grid] * len(order)
    if "estimator_state" in batch.columns:
        columns["estimator_state"] = np.asarray(batch.columns["estimator_state"], object)[order].tolist()
        columns["estimator"] = [batch.estimator] * len(order)
    names = list(columns)
    for page, *values in zip(batch.columns["page"][order].tolist(), *columns.values(), strict=True):
        yield page, dict(zip(names, values, strict=True))


def _values(column: np.ndarray) -> list[Any]:
    """Make a column into a list of Python's values; nan and infinity become None."""
    values: list[Any] = column.tolist()
    if column.dtype.kind != "f" or np.isfinite(column).all():
        return values
    return [value if isfinite(value) else None for value in values]


def _state(item: tuple[int, Row]) -> Row:
    return {OWN + "page": item[0], **item[1]}


def _content(item: tuple[int, Any]) -> Row:
    if unknown := item[1].keys() - _COLUMNS:
        raise LookupError(f"there is no column {', '.join(unknown)}")
    return _state(item)


def _of_page(item: tuple[int, Any]) -> Row:
    return {"page": item[0], **item[1]}


def _observation(row: ObservationRow) -> Row:
    made = row._asdict()
    made["further"] = row.further or None
    return made


def _change(row: ChangeRow) -> Row:
    return {**row._asdict(), "kind": models.KINDS.index(row.kind)}


def _announcement(item: tuple[tuple[int, int], tuple[float | None, int]]) -> Row:
    (page, source), (lastmod, n) = item
    return {"page": page, "source": source, "lastmod": None if lastmod != lastmod else lastmod, "n": n}


def _finished(item: tuple[int, tuple[float, Any]]) -> Row:
    return {OWN + "id": item[0], "done_at": item[1][0], "result": to_json(item[1][1])}


def _retracted(item: tuple[int, str]) -> Row:
    return {OWN + "id": item[0], "changed": None, "outcome": item[1]}


_FURTHER = models.further_sources.c.keys()[2:]
# The steps of writing a batch. Each has a table, the `how` of `put`, a function that takes data from the batch, and a
# function that makes rows of these data.
_STEPS: tuple[tuple[Table, str, Callable[[Batch], Iterable[Any]], Callable[[Any], Row]], ...] = (
    (models.request_templates, "insert", lambda batch: batch.templates.items(), _named("digest", "data")),
    # "upsert", since a repeated batch may write the same page again with newer numbers.
    (models.pages, "upsert", _new_pages, _new_page),
    (models.pages, "update", lambda batch: (s for s in _states(batch) if s[0] not in batch.new_pages), _state),
    (models.pages, "update", lambda batch: batch.contents.items(), _content),
    (models.page_traces, "upsert", lambda batch: batch.traces.items(), _of_page),
    (models.page_texts, "next text", lambda batch: batch.texts.items(), _named("page", *KeptText._fields)),
    (models.noise_masks, "upsert", lambda batch: batch.masks.items(), _named("template", "data")),
    (models.observations, "insert", lambda batch: batch.observations, _observation),
    (models.changes, "insert", lambda batch: batch.changes, _change),
    (models.announcements, "upsert", lambda batch: batch.announcements.items(), _announcement),
    (models.further_sources, "upsert", lambda batch: batch.further_sources.items(), _named(*_FURTHER)),
    (models.sources, "upsert", lambda batch: batch.sources.values(), lambda source: {**vars(source)}),
    (models.hosts, "upsert", lambda batch: batch.hosts.values(), lambda host: {**vars(host)}),
    (models.commands, "update", lambda batch: batch.finished.items(), _finished),
    (models.observations, "update", lambda batch: batch.retracted.items(), _retracted),
    (models.inbox, "insert", lambda batch: batch.outgoing, Outgoing._asdict),
    (models.inbox, "delete", lambda batch: batch.received, _named(OWN + "sender", OWN + "number")),
)


def prepared(batch: Batch, key: tuple[int, int], refused: Refused, forgotten: Collection[int] = ()) -> Prepared:
    """Make a batch into rows, without rows of `forgotten` pages; `refused` counts data that cannot become rows."""
    rows: Prepared = {}
    for number, (table, how, items, row) in enumerate(_STEPS):
        own = OWN if how in ("update", "delete") else ""
        of_collection = {f"{own}shard": key[0], f"{own}collection": key[1]}
        page = f"{own}page"
        for item in items(batch):
            try:
                made = row(item)
                if not _PLAIN.issuperset(map(type, made.values())):
                    made = {name: _clean(value) for name, value in made.items()}
            except (TypeError, ValueError, OverflowError, AttributeError, LookupError) as error:
                _refuse(refused, table.name, str(item)[:80], error)
                continue
            # Rows of inboxes name their shard themselves, since they are for other shards.
            made |= {"collection": key[1]} if how == "insert" and table is models.inbox else of_collection
            if not forgotten or made.get(page) not in forgotten:
                rows.setdefault(number, []).append(made)
    return rows


def write(connection: Connection, several: Sequence[tuple[Prepared, Refused]]) -> None:
    """Write the rows of several batches, oldest first, with as few statements as possible.

    Each statement costs a round trip to a distant database.
    """
    for number, (table, how, _, _) in enumerate(_STEPS):
        for rows in _alike(row for prepared, _ in several for row in prepared.get(number, ())):
            put(connection, table, rows, how)


def write_carefully(connection: Connection, several: Sequence[tuple[Prepared, Refused]]) -> None:
    """Write the rows so that a refused row does not stop the others."""
    for prepared, refused in several:
        for number, (table, how, _, _) in enumerate(_STEPS):
            for rows in _alike(prepared.get(number, ())):
                _put_carefully(connection, table, rows, how, refused)


def _put_carefully(connection: Connection, table: Table, rows: list[Row], how: str, refused: Refused) -> None:
    """Write all rows together or, if the database refuses one of them, each row by itself."""
    try:
        with connection.begin_nested():
            put(connection, table, rows, how)
    except Exception as error:
        if not is_row_error(error):
            raise
        if len(rows) > 1:
            for row in rows:
                _put_carefully(connection, table, [row], how, refused)
        else:
            numbers = ", ".join(str(value)[:40] for value in rows[0].values() if isinstance(value, int))
            _refuse(refused, table.name, f"numbers {numbers}", error)


def _alike(rows: Iterable[Row]) -> list[list[Row]]:
    """Group rows with the same columns, but keep the order of changes to the same stored row."""
    rows = list(rows)
    if len(set(map(tuple, rows))) <= 1:  # the usual case
        return [rows] if rows else []
    groups: list[tuple[tuple[str, ...], list[Row]]] = []
    group_of: dict[tuple[Any, ...], int] = {}
    for row in rows:
        changed, names = tuple(map(row.get, _OWN_PAGE)), tuple(row)
        at = group_of.get(changed, 0)
        while at < len(groups) and groups[at][0] != names:
            at += 1
        if at == len(groups):
            groups.append((names, []))
        groups[at][1].append(row)
        group_of[changed] = at
    return [alike for _, alike in groups]


def _refuse(refused: Refused, table: str, which: str, error: BaseException) -> None:
    refused[table] += 1
    if refused[table] <= 3:  # a few examples are enough
        logger.error("A row of the table %s (%s) is refused and left out: %s.", table, which, reason(error))
