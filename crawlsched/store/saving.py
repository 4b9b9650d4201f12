"""Saving: a batch made into groups of rows, and written in one transaction.

A row that the database refuses (an integer too large, a key that is there already) must not block the others for
ever: when the transaction fails for such a reason it is repeated row by row, and what is refused is counted and logged.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, Dialect, Table

from crawlsched.change_signals import part_number
from crawlsched.store import models
from crawlsched.store.batch import Batch, ChangeRow, KeptText, NewPage, ObservationRow, Outgoing
from crawlsched.store.database import is_row_error, reason
from crawlsched.store.rows import clean, column_values, digest, likelihood_rows, plain, to_json, url_digest
from crawlsched.store.statements import ROWS_AT_ONCE, Statement, deleting, insert, replacing_text, updating, upsert

__all__ = ["Saved", "groups", "outgoing_group", "write", "write_carefully"]

logger = logging.getLogger("crawlsched.store")

NEW = 1  # `crawlsched.pages.NEW`, which this layer does not import


@dataclass
class Saved:
    """What became of a batch.

    Attributes
    ----------
    rows : int
        Rows handed to the database.
    refused : Counter of str
        Rows which the database refused, by table.
    cleaned : int
        Texts out of which something had to be taken that no database can hold (NUL, lone surrogates).
    """

    rows: int = 0
    refused: "Counter[str]" = field(default_factory=Counter)
    cleaned: int = 0


class Group(NamedTuple):
    """Rows for one statement."""

    table: str
    statement: Statement
    rows: list[tuple[Any, ...]]

    def write(self, connection: Connection) -> None:
        """Write all rows, many in one statement where that is quicker."""
        rows, many = self.rows, self.statement.sql_for_many
        whole = len(rows) - len(rows) % ROWS_AT_ONCE if many is not None else 0
        for start in range(0, whole, ROWS_AT_ONCE):
            assert many is not None
            connection.exec_driver_sql(many, tuple(chain.from_iterable(rows[start : start + ROWS_AT_ONCE])))
        if whole < len(rows):
            connection.exec_driver_sql(self.statement.sql, rows[whole:])


class _Groups:
    """Collects the groups of one batch."""

    def __init__(self, key: tuple[int, int], dialect: Dialect, saved: Saved) -> None:
        self.key: dict[str, Any] = {"shard": key[0], "collection": key[1]}
        self.dialect = dialect
        self.saved = saved
        self.texts: Counter[str] = Counter()
        self.all: list[Group] = []

    def add(
        self,
        make: Callable[[Table, tuple[str, ...], Dialect], Statement],
        table: Table,
        names: tuple[str, ...],
        items: Iterable[Any],
        row: Callable[[Any], tuple[Any, ...]],
    ) -> None:
        """Add a row (in the order of `names`) for each item, sorted, in one group; what makes no row is refused."""
        made: list[tuple[Any, ...]] = []
        for item in items:
            try:
                made.append(tuple([clean(value, self.texts) for value in row(item)]))
            except (TypeError, ValueError, OverflowError, AttributeError) as error:
                _refuse(self.saved, table.name, str(item)[:80], error)
        if made:
            with suppress(TypeError):  # a key that is no number is refused by the database, alone
                made.sort(key=lambda values: values[0])
            columns: dict[str, Any] = {name: list(c) for name, c in zip(names, zip(*made, strict=True), strict=True)}
            self._add_columns(make, table, names, columns, len(made))

    def _add_columns(self, make: Any, table: Table, names: tuple[str, ...], columns: dict[str, Any], n: int) -> None:
        statement = make(table, names if make is updating else ("shard", "collection", *names), self.dialect)
        self.all.append(Group(table.name, statement, statement.rows({**self.key, **columns}, n)))

    def add_columns(self, make: Any, table: Table, names: tuple[str, ...], columns: dict[str, list[Any]]) -> None:
        """Add a group whose columns are ready."""
        n = len(columns["page"])
        if n:
            names = tuple(name for name in names if name != "page") if make is updating else names
            self._add_columns(make, table, names, columns, n)


def groups(batch: Batch, key: tuple[int, int], dialect: Dialect, saved: Saved) -> list[Group]:
    """Make a batch into groups of rows, in the order in which they are to be written.

    Parameters
    ----------
    batch : Batch
    key : tuple of int
        Shard and number of the collection.
    dialect : sqlalchemy.Dialect
    saved : Saved
        Counts what cannot be made into a row, and the texts which were cleaned.
    """
    made = _Groups(key, dialect, saved)
    made.add(insert, models.request_templates, ("digest", "data"), batch.templates.items(), _template)
    _add_pages(made, batch)
    _add_contents(made, batch)
    made.add(upsert, models.page_traces, ("page", *models.TRACE_COLUMNS), batch.traces.items(), _trace)
    made.add(replacing_text, models.page_texts, ("page", *KeptText._fields), batch.texts.items(), _text)
    made.add(upsert, models.noise_masks, ("template", "data"), batch.masks.items(), _template)
    made.add(insert, models.observations, ObservationRow._fields, batch.observations, _observation)
    made.add(insert, models.changes, ChangeRow._fields, batch.changes, _change)
    made.add(
        upsert, models.announcements, ("page", "source", "lastmod", "n"), batch.announcements.items(), _announcement
    )
    made.add(upsert, models.further_sources, _FURTHER, batch.further_sources.items(), lambda item: (*item[0], *item[1]))
    made.add(upsert, models.sources, _SOURCE, batch.sources.values(), _source)
    made.add(upsert, models.hosts, _HOST, batch.hosts.values(), _host)
    made.add(insert, models.tombstones, ("kind", "digest", "value", "created_at"), batch.tombstones.items(), _tombstone)
    # A key named first is what the rows are sorted by; `updating` finds the row by it.
    _add_finished(made, batch)
    _add_retracted(made, batch)
    _add_handed_over(made, batch)
    saved.cleaned += made.texts["texts"]
    saved.rows += sum(len(group.rows) for group in made.all)
    return made.all


_FURTHER = (
    "page",
    "source",
    "n_signals",
    "n_signals_total",
    "signalled_since",
    "n_heard",
    "signalled_at",
    "true_signals",
    "false_signals",
)
_SOURCE = (
    *("source", "kind", "url", "host", "parent", "polled_at", "next_poll_at", "etag", "last_modified"),
    *("fingerprint", "n_entries", "problems", "quality", "hosts", "listed_lastmod", "read_lastmod"),
)
_HOST = ("host", "rest_until", "crawl_delay", "robots_seen_at", "counts")
_IDENTITY = (
    *("page", "url", "url_digest", "host", "request_fingerprint", "request_fingerprinter", "template", "depth"),
    *("part", "first_seen", "variant"),
)


def _trace(item: tuple[int, Any]) -> tuple[Any, ...]:
    return item[0], *[item[1][name] for name in models.TRACE_COLUMNS]


def _text(item: tuple[int, KeptText]) -> tuple[Any, ...]:
    return item[0], *item[1]


def _template(item: tuple[Any, Any]) -> tuple[Any, ...]:
    return item[0], to_json(dict(item[1]))


def _observation(row: ObservationRow) -> tuple[Any, ...]:
    return (*row[:-1], to_json(row.further) if row.further else None)


def _change(row: ChangeRow) -> tuple[Any, ...]:
    return row.id, row.page, row.time, models.KINDS.index(row.kind), row.observation


def _announcement(item: Any) -> tuple[Any, ...]:
    (page, source), (lastmod, n) = item
    lastmod = plain(lastmod)
    return page, source, None if lastmod is None or lastmod != lastmod else lastmod, n


def _source(source: Any) -> tuple[Any, ...]:
    row = {**vars(source), **{name: to_json(getattr(source, name)) for name in ("problems", "quality", "hosts")}}
    return tuple(row[name] for name in _SOURCE)


def _host(host: Any) -> tuple[Any, ...]:
    return host.host[:255], host.rest_until, host.crawl_delay, host.robots_seen_at, to_json(host.counts)


def _tombstone(item: Any) -> tuple[Any, ...]:
    (kind, value), created_at = item
    return kind, digest(value), value, created_at


def _identity(page: NewPage, texts: "Counter[str]") -> tuple[Any, ...]:
    url = clean(page.url, texts)
    return (
        *(page.page, url, url_digest(url), page.host, bytes(page.request_fingerprint)),
        *(page.request_fingerprinter, page.template, page.depth, part_number(url), page.first_seen),
        page.variant,
    )


def _add_pages(made: _Groups, batch: Batch) -> None:
    """Add new pages (with their columns where the batch has them) and the columns of pages which exist."""
    columns, names = _stored_columns(batch)
    new = batch.new_pages
    rows = columns["page"] if columns else []
    old = [index for index, page in enumerate(rows) if page not in new]
    if len(old) < len(rows):
        place = {page: index for index, page in enumerate(rows) if page in new}
        both = [page for page in new.values() if page.page in place]

        def whole(page: NewPage) -> tuple[Any, ...]:
            return (*_identity(page, made.texts), *[columns[name][place[page.page]] for name in names])

        # Not `insert`: the same page may come again with newer numbers when a batch is repeated.
        made.add(upsert, models.pages, (*_IDENTITY, *names), both, whole)
        new = {number: page for number, page in new.items() if number not in place}
        columns = {name: [column[index] for index in old] for name, column in columns.items()}
    made.add(
        insert,
        models.pages,
        (*_IDENTITY, *models.STATE_COLUMNS),
        new.values(),
        partial(_never_crawled, texts=made.texts),
    )
    if columns:
        made.add_columns(updating, models.pages, names, columns)


def _never_crawled(page: NewPage, texts: "Counter[str]") -> tuple[Any, ...]:
    return (*_identity(page, texts), NEW, 1.0, None, 0.0, 0, 0, 0, 0, 0, None, -1, 0.0, 0.0, 0, 0)


def _stored_columns(batch: Batch) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    """Make the arrays of `Batch.columns` into lists of Python's values, sorted by page."""
    if not batch.columns or not len(batch.columns["page"]):
        return {}, ()
    order = np.argsort(batch.columns["page"], kind="stable")
    names: tuple[str, ...] = models.STATE_COLUMNS
    columns = {name: column_values(np.asarray(batch.columns[name])[order]) for name in ("page", *names)}
    if "log_likelihood" in batch.columns:
        columns["log_likelihood"] = likelihood_rows(np.asarray(batch.columns["log_likelihood"])[order])
        columns["grid"] = [batch.grid] * len(order)
        names = (*names, "log_likelihood", "grid")
    readable = tuple(name for name in models.READABLE_COLUMNS if name in batch.columns)
    columns |= {name: column_values(np.asarray(batch.columns[name])[order]) for name in readable}
    names = (*names, *readable)
    if "estimator_state" in batch.columns:
        columns["estimator_state"] = np.asarray(batch.columns["estimator_state"], object)[order].tolist()
        columns["estimator"] = [batch.estimator] * len(order)
        names = (*names, "estimator_state", "estimator")
    return columns, names


def _add_contents(made: _Groups, batch: Batch) -> None:
    """Add the changes of contents, one group for each set of columns."""
    by_names: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for page, changes in batch.contents.items():
        names = tuple(name for name in models.CONTENT_COLUMNS if name in changes)
        if len(names) < len(changes):
            _refuse(
                made.saved, "pages", f"page {page}", ValueError(f"contents are {', '.join(models.CONTENT_COLUMNS)}")
            )
        elif names:
            by_names.setdefault(names, []).append((page, *[changes[name] for name in names]))
    for names, rows in by_names.items():
        cleaned = [[clean(value, made.texts) for value in row] for row in sorted(rows, key=lambda row: row[0])]
        columns = dict(zip(("page", *names), map(list, zip(*cleaned, strict=True)), strict=True))
        made.add_columns(updating, models.pages, names, columns)


def _add_finished(made: _Groups, batch: Batch) -> None:
    rows = []
    for number, (done_at, result) in sorted(batch.finished.items()):
        try:
            rows.append((number, plain(done_at), to_json(result)))
        except (TypeError, ValueError) as error:
            _refuse(made.saved, "commands", f"id {number}", error)
    if rows:
        statement = updating(models.commands, ("done_at", "result"), made.dialect)
        columns: dict[str, Any] = dict(
            zip(("id", "done_at", "result"), map(list, zip(*rows, strict=True)), strict=True)
        )
        made.all.append(Group("commands", statement, statement.rows({**made.key, **columns}, len(rows))))


def _add_retracted(made: _Groups, batch: Batch) -> None:
    if batch.retracted:
        statement = updating(models.observations, ("changed", "outcome"), made.dialect)
        ids = sorted(batch.retracted)
        columns: dict[str, Any] = {"id": ids, "changed": None, "outcome": [batch.retracted[id] for id in ids]}
        made.all.append(Group("observations", statement, statement.rows({**made.key, **columns}, len(ids))))


def outgoing_group(rows: Sequence[Outgoing], collection: int, dialect: Dialect) -> Group:
    """Make the group of what is handed over to other shards."""
    statement = insert(models.inbox, ("shard", "collection", *Outgoing._fields[1:]), dialect)
    columns: dict[str, Any] = dict(zip(Outgoing._fields, map(list, zip(*rows, strict=True)), strict=True))
    columns["data"] = [to_json(dict(row.data)) for row in rows]
    return Group("inbox", statement, statement.rows({**columns, "collection": collection}, len(rows)))  # type: ignore[dict-item]


def _add_handed_over(made: _Groups, batch: Batch) -> None:
    if batch.outgoing:
        made.all.append(outgoing_group(batch.outgoing, made.key["collection"], made.dialect))
    if batch.received:
        statement = deleting(models.inbox, made.dialect)
        senders, numbers = map(list, zip(*batch.received, strict=True))
        columns: dict[str, Any] = {**made.key, "sender": senders, "number": numbers}
        made.all.append(Group("inbox", statement, statement.rows(columns, len(batch.received))))


def write(connection: Connection, batch_groups: list[Group]) -> None:
    """Write groups, one after the other."""
    for group in batch_groups:
        group.write(connection)


def write_carefully(connection: Connection, batch_groups: list[Group], saved: Saved) -> None:
    """Write groups so that a row which is refused costs nothing but itself."""
    for group in batch_groups:
        try:
            with connection.begin_nested():
                group.write(connection)
        except Exception as error:
            if not is_row_error(error):
                raise
            for row in group.rows:
                _write_row(connection, group, row, saved)


def _write_row(connection: Connection, group: Group, row: tuple[Any, ...], saved: Saved) -> None:
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(group.statement.sql, row)
    except Exception as error:
        if not is_row_error(error):
            raise
        numbers = ", ".join(str(value)[:40] for value in row if isinstance(value, int))
        _refuse(saved, group.table, f"numbers {numbers}", error)


def _refuse(saved: Saved, table: str, which: str, error: BaseException) -> None:
    saved.refused[table] += 1
    if saved.refused[table] <= 3:  # a few examples are enough; the count is in the statistics
        logger.error("A row of the table %s (%s) is refused and left out: %s.", table, which, reason(error))
