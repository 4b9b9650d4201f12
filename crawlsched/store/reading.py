"""Reading: queries for pages, observations, announcements and hosts."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection, Executable, Row, Select, bindparam, func, select

from crawlsched.change_signals import FurtherRow, attributed
from crawlsched.exceptions import DamagedRow
from crawlsched.store import changes, models
from crawlsched.store.batch import Host, KeptText, ObservationRow, PageFacts, Source
from crawlsched.store.database import Database
from crawlsched.store.rows import (
    END_OF_SOURCES,
    ROWS_AT_ONCE,
    among,
    among_those,
    fitting,
    from_json,
    json_like,
    json_list,
    kinds_of,
    misfit,
    only_sound,
    own,
    same,
    url_digest,
)

__all__ = ["Part", "Reader", "next_number", "next_page", "size_of_texts"]

logger = logging.getLogger("crawlsched.store")

Key = tuple[int, int]
T = TypeVar("T")


class Part:
    """A collection, or one shard of it, in a database, with queries that all readers share."""

    def __init__(self, database: Database, key: Key) -> None:
        self.database = database
        self.key = key

    def own(self, table: Any) -> tuple[Any, Any]:
        """Make the conditions that restrict a query to this collection."""
        return own(table, self.key)

    def rows(self, wanted: Executable, **values: Any) -> Sequence[Any]:
        """Run a query with these parameters, and return its rows."""
        with self.database.reading() as connection:
            return connection.execute(wanted, values).all()


class Reader(Part):
    """Read from one collection, or one shard of it; a failure is a `StoreError` of one sentence."""

    def _ask(self, question: Callable[[Connection, Key], T]) -> T:
        with self.database.reading() as connection:
            return question(connection, self.key)

    def _parts(self, wanted: Select[Any]) -> Iterator[Sequence[Row[Any]]]:
        with self.database.reading() as connection:
            yield from connection.execute(wanted).partitions(ROWS_AT_ONCE)

    def _number(self, of: Any, table: Any) -> int:
        return int(self.rows(select(of).select_from(table).where(*self.own(table)))[0][0])

    def facts(self, pages: Sequence[int] | np.ndarray) -> list[PageFacts | None]:
        """Return the `PageFacts` of pages, in their order; None for a page that does not exist.

        `Collection.facts` adds data that are not written yet.
        """
        shard, collection = self.key
        rows = self.rows(_FACTS_WANTED, shard=shard, collection=collection, pages=json_list(pages))
        found = {row.page: _facts(row) for row in rows}
        return [found.get(int(number)) for number in pages]

    def urls(self, pages: Sequence[int] | np.ndarray) -> dict[int, str]:
        """Return the URLs of pages by their numbers."""
        page = models.pages
        rows = self.rows(select(page.c.page, page.c.url).where(*self.own(page), among(page.c.page, pages)))
        # A damaged URL is shown as well as possible; `facts` logs that its row is damaged.
        return {number: url.decode("utf-8", "replace") if isinstance(url, bytes) else url for number, url in rows}

    def noise_mask(self, template: str) -> Any:
        """Return the noise mask of a template, or the common parts of a site, as data; None if it is not stored."""
        table = models.noise_masks
        rows = self.rows(select(table.c.data).where(*self.own(table), table.c.template == template))
        return json_like(rows[0].data, {}, f"the template {template}") or None if rows else None

    def learned(self) -> list[str]:
        """Return the templates that have a noise mask, and the sites (`models.SITE`) whose common parts are known."""
        table = models.noise_masks
        return [name for (name,) in self.rows(select(table.c.template).where(*self.own(table)))]

    def pages_to_weigh(
        self, after: int, limit: int, *, stated: bool = False
    ) -> list[tuple[int, str, dict[str, Any], bool]]:
        """Return at most `limit` pages after a page number, as (number, URL, request meta, is importance stated).

        Pages whose importance was stated are left out unless `stated`.
        """
        page, template = models.pages, models.request_templates
        rows = self.rows(
            select(page.c.page, page.c.url, page.c.depth, template.c.data, page.c.importance_stated)
            .outerjoin(template, same(template, page) & (template.c.digest == page.c.template))
            .where(*self.own(page), page.c.page > after, page.c.importance_stated <= int(stated))
            .order_by(page.c.page)
            .limit(limit)
        )
        return [
            (number, url, {**(from_json(data) or {}).get("meta", {}), "depth": depth}, bool(is_stated))
            for number, url, depth, data, is_stated in rows
        ]

    def text_of(self, page: int) -> KeptText | None:
        """Return the stored text of a page; None if there is no text."""
        table = models.page_texts
        columns = [table.c[name] for name in KeptText._fields]
        rows = self.rows(select(*columns).where(*self.own(table), table.c.page == page))
        return KeptText(*rows[0]) if rows else None

    def bytes_of_texts(self) -> int:
        """Return the bytes of all stored texts."""
        return self._number(func.coalesce(func.sum(size_of_texts()), 0), models.page_texts)

    def find(self, what: str | bytes) -> int | None:
        """Return the page with a request fingerprint, or the first page with a URL."""
        if isinstance(what, str):
            return min(self.pages_of(what), default=None)
        page = models.pages
        rows = self.rows(select(page.c.page).where(*self.own(page), page.c.request_fingerprint == what))
        return rows[0].page if rows else None

    def pages_of(self, url: str) -> list[int]:
        """Return all pages with a URL, exactly as stored."""
        page = models.pages
        wanted = select(page.c.page).where(*self.own(page), page.c.url_digest == url_digest(url), page.c.url == url)
        # Python sorts the numbers, since SQLite would search all pages to sort them.
        return sorted(number for (number,) in self.rows(wanted))

    def undelivered(self) -> list[int]:
        """Return the pages whose last change was not yet delivered to the spider."""
        page = models.pages
        wanted = select(page.c.page).where(*self.own(page), page.c.pending_fingerprint.is_not(None))
        return [number for (number,) in self.rows(wanted.order_by(page.c.page))]

    def announcements_for(
        self, pages: Sequence[int] | np.ndarray, source: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays in the order of `pages`: known, lastmod and n of a source's last announcements."""
        table = models.announcements
        wanted = select(table.c.page, table.c.lastmod, table.c.n).where(*self.own(table), table.c.source == source)
        found = {page: (True, lastmod, n) for page, lastmod, n in self.rows(wanted.where(among(table.c.page, pages)))}
        rows = [found.get(int(page), (False, None, 0)) for page in pages]
        known, lastmod, n = _columns([rows], (np.bool_, np.float64, np.int64))
        return known, lastmod, n

    def signal_observations(self, since: float, limit: int = 200_000) -> dict[str, np.ndarray]:
        """Return the newest visits as evidence about sources; each row has one visit and one source."""
        table = models.observations

        @cache  # most visits have the same sources and numbers
        def heard(source: int, n_signals: int, further: str | None) -> list[tuple[int, int]]:
            told = [(source, n_signals)]
            if further is not None and 0 <= source < END_OF_SOURCES:
                told = attributed([*told, *_further(further)])
            return [(one, n) for one, n in told if 0 <= one < END_OF_SOURCES]

        kinds = kinds_of(table, "page", "elapsed", "changed", "source", "n_signals")
        parts = self._parts(
            select(*[table.c[name] for name in kinds], table.c.further)
            .where(*self.own(table), table.c.time >= since, table.c.source >= 0)
            .where(table.c.changed.is_not(None), table.c.elapsed.is_not(None))
            .order_by(table.c.time.desc())
            .limit(limit)
        )

        def each(part: Sequence[Row[Any]]) -> list[tuple[Any, ...]]:
            visits = fitting(part, kinds)  # damaged rows are left out
            return [(*visit, one, n) for *visit, source, n_of, more in visits for one, n in heard(source, n_of, more)]

        columns = _columns(map(each, parts), (np.int64, np.float64, np.bool_, np.int64, np.int64))
        return dict(zip(kinds, columns, strict=True))

    def visits(self, first: int, last: int) -> Iterator[tuple[int, float | None, int | None, int, float | None, str]]:
        """Yield page, elapsed, changed, ChangeSignals, time since modified and outcome for visits of each page."""
        table = models.observations
        names = ("page", "elapsed", "changed", "n_signals", "time_since_modified", "outcome")
        wanted = select(*[table.c[name] for name in names]).where(*self.own(table), table.c.page.between(first, last))
        for rows in self._parts(wanted.order_by(table.c.page, table.c.time, table.c.id)):
            yield from map(tuple, rows)

    def observations_of(self, page: int, limit: int = 20) -> list[ObservationRow]:
        """Return a page's newest visits, newest first."""
        table = models.observations
        rows = self.rows(
            select(*[table.c[name] for name in ObservationRow._fields])
            .where(*self.own(table), table.c.page == page)
            .order_by(table.c.time.desc(), table.c.id.desc())
            .limit(limit)
        )
        return [
            ObservationRow(*row)._replace(
                changed=None if row.changed is None else bool(row.changed), further=_further(row.further)
            )
            for row in rows
        ]

    def announced_visits(self, limit: int = 1_000) -> tuple[int, int]:
        """Return the number of newest visits (at most `limit`), and how many of these followed an announcement."""
        table = models.observations
        newest = select(table.c.n_signals, table.c.further).where(*self.own(table)).order_by(table.c.time.desc())
        rows = self.rows(newest.limit(limit))
        return len(rows), sum(bool(n) or any(more for _, more in _further(further)) for n, further in rows)

    def further_sources(self) -> list[tuple[int, int, *FurtherRow]]:
        """Return the rows of `models.further_sources`: page, source and the other columns."""
        table, kinds = models.further_sources, kinds_of(models.further_sources)
        rows = self.rows(select(*[table.c[name] for name in kinds]).where(*self.own(table)))
        sound = only_sound((row._asdict() for row in rows), kinds, "further source of the page", "page")
        return [tuple(row.values()) for row in sound if 0 <= row["source"] < END_OF_SOURCES]

    def announcements_of(self, page: int) -> list[tuple[int, float | None, int]]:
        """Return (source, lastmod, n) for every source that lists a page."""
        table = models.announcements
        wanted = select(table.c.source, table.c.lastmod, table.c.n).where(*self.own(table), table.c.page == page)
        return [(source, lastmod, n) for source, lastmod, n in self.rows(wanted)]

    def counts(self) -> list[tuple[str, int, int, int]]:
        """Count the pages by host, state and source (-1: no source announces them)."""
        page = models.pages
        kinds = (page.c.host, page.c.state, page.c.source)
        rows = self.rows(select(*kinds, func.count()).where(*self.own(page)).group_by(*kinds))
        return [(host, state, source, n) for host, state, source, n in rows]

    def sources(self) -> list[Source]:
        """Return every source."""
        found = []
        for row in only_sound(self._whole(models.sources), _SOURCE, "source", "url"):
            if not 0 <= row["source"] < END_OF_SOURCES:
                logger.error("The source %.60r is left out: its number %d cannot be meant.", row["url"], row["source"])
                continue
            name = f"the source {row['url']}"
            row["problems"], row["quality"] = (json_like(row[part], {}, name) for part in ("problems", "quality"))
            row["hosts"] = [host for host in json_like(row["hosts"], [], name) if isinstance(host, str)]
            found.append(Source(**row))
        numbers = {source.source for source in found}
        # A parent that does not exist, or was left out, becomes None.
        return [source if source.parent in numbers else replace(source, parent=None) for source in found]

    def hosts(self, name: str | None = None, notable_at: float | None = None, limit: int | None = None) -> list[Host]:
        """Return hosts; with `notable_at` only hosts that rest at this time, fail, or had pages withheld."""
        table = models.hosts
        only = [] if name is None else [table.c.host == name]
        if notable_at is not None:
            known = table.c.counts.contains('"withheld"') | table.c.counts.contains('"failing"')
            only.append((table.c.rest_until > notable_at) | known)
        return [
            Host(**{**values, "counts": json_like(values["counts"], {}, f"the host {values['host']}")})
            for values in only_sound(self._whole(table, *only, limit=limit), _HOST, "host", "host")
        ]

    def _whole(self, table: Any, *only: Any, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Return rows with all columns, in the order of their keys."""
        others = list(table.c)[2:]
        wanted = select(*others).where(*self.own(table), *only).order_by(*table.primary_key).limit(limit)
        return (row._asdict() for row in self.rows(wanted))

    def count_hosts(self) -> int:
        """Return the number of rows of hosts."""
        return self._number(func.count(), models.hosts)

    def count_pages(self) -> int:
        """Return the number of pages; takes time in proportion to it."""
        return self._number(func.count(), models.pages)

    def next_page(self) -> int:
        """Return the first unused page number."""
        return self._ask(next_page)

    def next_observation(self) -> int:
        """Return the number after the largest observation id."""
        return self._ask(lambda connection, key: next_number(connection, key, models.observations.c.id))

    def next_change(self) -> int:
        """Return the first unused number for a row of the change feed."""
        return self._ask(changes.next_number)

    def next_source(self) -> int:
        """Return the number after the largest number of a source."""
        return self._ask(lambda connection, key: next_number(connection, key, models.sources.c.source, END_OF_SOURCES))


def _make_facts_wanted() -> Select[Any]:
    page, template, trace = models.pages, models.request_templates, models.page_traces
    joined = page.outerjoin(template, same(template, page) & (template.c.digest == page.c.template))
    of_trace = {name: func.coalesce(trace.c[name], b"").label(name) for name in models.TRACE_COLUMNS}
    columns = {**dict(page.c.items()), **of_trace, "template_data": template.c.data.label("template_data")}
    return (
        select(*(columns[name] for name in PageFacts._fields))
        .select_from(joined.outerjoin(trace, same(trace, page, "page")))
        .where(page.c.shard == bindparam("shard"), page.c.collection == bindparam("collection"))
        .where(among_those(page.c.page, "pages"))
        # No index has this order, so SQLite reads all rows before it returns the first. Otherwise it would release
        # the interpreter's lock for each row, and then wait half a millisecond for a busy crawl to release the lock.
        .order_by(page.c.page + 0)
    )


# Made only once, since making the query takes four times as long as reading a page with it.
_FACTS_WANTED = _make_facts_wanted()


def _facts(row: Any) -> PageFacts | None:
    """Make a row into facts; None if the row is damaged."""
    facts = PageFacts._make(row)
    wrong = misfit(facts._asdict(), _FACTS)
    if wrong is None:
        try:
            data = from_json(row.template_data)
            return facts if data is None else facts._replace(template_data=dict(data))
        except (DamagedRow, TypeError, ValueError) as error:
            wrong = str(error)
    logger.error("The page number %s cannot be used: its row in the database is damaged (%s).", row.page, wrong)
    return None


_FACTS = kinds_of(models.pages, *(set(PageFacts._fields) & set(models.pages.c.keys())))
_FACTS |= kinds_of(models.page_traces, *models.TRACE_COLUMNS)
_SOURCE, _HOST = kinds_of(models.sources), kinds_of(models.hosts)
# A larger number of a page or a visit is damaged, since sound numbers never become so large.
_NO_NUMBER = int(np.iinfo(np.int64).max) // 2


def _columns(parts: Iterable[Sequence[Sequence[Any]]], types: Sequence[Any]) -> list[np.ndarray]:
    """Make rows into columns part by part, since 200,000 visits as objects would take 50 MB."""
    made = [list(map(np.array, zip(*rows, strict=True), types)) for rows in parts if rows]
    empty = [np.empty(0, dtype) for dtype in types]
    return [np.concatenate(column) for column in zip(empty, *made, strict=True)]


def _further(value: str | None) -> tuple[tuple[int, int], ...]:
    pairs = json_like(value, [], "an observation's further sources")
    return tuple((s, n) for s, n in (pair for pair in pairs if isinstance(pair, list) and len(pair) == 2))


def size_of_texts() -> Any:
    """Return the SQL expression for the bytes of a page's texts."""
    table = models.page_texts
    return func.length(table.c.text) + func.coalesce(func.length(table.c.before), 0)


def next_page(connection: Connection, key: Key) -> int:
    """Return the first unused page number."""
    table = models.collections
    given = connection.execute(select(table.c.pages_given).where(*own(table, key))).scalar_one()
    return max(next_number(connection, key, models.pages.c.page), 0 if given is None else given + 1)


def next_number(connection: Connection, key: Key, column: Any, end: int = _NO_NUMBER) -> int:
    """Return the number after the largest in a column; numbers from `end` on are damaged and ignored."""
    largest = select(column).where(*own(column.table, key), column < end).order_by(column.desc()).limit(1)
    found = connection.execute(largest).scalar_one_or_none()
    return 0 if found is None or found < 0 else int(found) + 1
