"""Reading: small questions about pages, observations, announcements and hosts."""

import logging
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain
from math import nan
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, bindparam, func, select

from crawlsched.change_signals import FurtherRow, attributed
from crawlsched.exceptions import DamagedRow
from crawlsched.store import changes, models
from crawlsched.store.batch import Host, KeptText, ObservationRow, PageFacts, Source
from crawlsched.store.database import Database, among, among_those, listed
from crawlsched.store.rows import from_json, json_like, url_digest
from crawlsched.store.soundness import fitting, misfit, only_sound, without_outliers

__all__ = ["Reader", "next_number", "next_page"]

logger = logging.getLogger("crawlsched.store")

Key = tuple[int, int]

_ROWS_AT_ONCE = 5_000


class Reader:
    """Asks one collection, or one shard of it; a failure is a `StoreError` of one sentence."""

    def __init__(self, database: Database, key: Key) -> None:
        self._reading = database.reading
        self._key = key

    def facts(self, pages: Sequence[int] | np.ndarray) -> list[PageFacts | None]:
        """Return what is needed to request pages, in the order asked; None for a page that is not there.

        `WriteBehind.facts` adds what is not written yet.
        """
        with self._reading() as connection:
            dialect = connection.dialect.name
            asked = {"shard": self._key[0], "collection": self._key[1], "pages": listed(pages, dialect)}
            found = {row.page: _facts(row) for row in connection.execute(_facts_wanted(dialect), asked)}
            return [found.get(int(number)) for number in pages]

    def urls(self, pages: Sequence[int] | np.ndarray) -> dict[int, str]:
        """Give the URLs of pages by their numbers."""
        with self._reading() as connection:
            page = models.pages
            wanted = select(page.c.page, page.c.url).where(
                *_own(page, self._key), among(page.c.page, pages, connection.dialect.name)
            )
            # One that is no text is shown as well as may be: `facts` says that its row is damaged.
            return {
                row.page: row.url.decode("utf-8", "replace") if isinstance(row.url, bytes) else row.url
                for row in connection.execute(wanted)
            }

    def noise_mask(self, template: str) -> Any:
        """Give the noise mask of a template, or what is known of a site, as data; None if there is none."""
        with self._reading() as connection:
            table = models.noise_masks
            data = select(table.c.data).where(*_own(table, self._key), table.c.template == template)
            found = connection.execute(data).scalar_one_or_none()
            return json_like(found, {}, f"the template {template}") or None

    def masked_templates(self) -> list[str]:
        """Give the templates that have a noise mask."""
        with self._reading() as connection:
            return [name for name in _learned(connection, self._key) if not name.startswith(models.SITE)]

    def learned_sites(self) -> list[str]:
        """Give the names of the sites whose shared texts are known."""
        with self._reading() as connection:
            return [name for name in _learned(connection, self._key) if name.startswith(models.SITE)]

    def pages_to_weigh(
        self, after: int, limit: int, *, stated: bool = False
    ) -> list[tuple[int, str, dict[str, Any], bool]]:
        """Give number, URL, request meta, and whether their importance is stated, of the next pages in their order.

        Pages whose importance was stated are left out unless `stated`.
        """
        with self._reading() as connection:
            page, template = models.pages, models.request_templates
            rows = connection.execute(
                select(page.c.page, page.c.url, page.c.depth, template.c.data, page.c.importance_stated)
                .outerjoin(
                    template,
                    (template.c.shard == page.c.shard)
                    & (template.c.collection == page.c.collection)
                    & (template.c.digest == page.c.template),
                )
                .where(*_own(page, self._key), page.c.page > after, page.c.importance_stated <= int(stated))
                .order_by(page.c.page)
                .limit(limit)
            )
            found = []
            for number, url, depth, data, is_stated in rows:
                meta = (from_json(data) or {}).get("meta", {})
                found.append((number, url, {**meta, "depth": depth}, bool(is_stated)))
            return found

    def text_of(self, page: int) -> KeptText | None:
        """Give the text that is kept of a page; None if none is."""
        with self._reading() as connection:
            table = models.page_texts
            columns = [table.c[name] for name in KeptText._fields]
            row = connection.execute(
                select(*columns).where(*_own(table, self._key), table.c.page == page)
            ).one_or_none()
            return None if row is None else KeptText(*row)

    def bytes_of_texts(self) -> int:
        """Count the bytes of all texts that are kept."""
        with self._reading() as connection:
            table = models.page_texts
            size = func.length(table.c.text) + func.coalesce(func.length(table.c.before), 0)
            return int(
                connection.execute(select(func.coalesce(func.sum(size), 0)).where(*_own(table, self._key))).scalar_one()
            )

    def find(self, what: str | bytes) -> int | None:
        """Give the page with a URL (the first added, if there are several) or with a request fingerprint."""
        with self._reading() as connection:
            page = models.pages
            if isinstance(what, bytes):
                condition = page.c.request_fingerprint == what
            else:
                condition = (page.c.url_digest == url_digest(what)) & (page.c.url == what)
            # Not min() in SQL: for that SQLite goes through all pages in their order, until one fits.
            found = connection.execute(select(page.c.page).where(*_own(page, self._key), condition)).scalars()
            return min(map(int, found), default=None)

    def variants(self) -> list[tuple[int, str]]:
        """Give page and URL of every page that is one of several of its URL, in the order of their numbers."""
        with self._reading() as connection:
            page = models.pages
            wanted = select(page.c.page, page.c.url).where(*_own(page, self._key), page.c.variant.is_not(None))
            return [(number, url) for number, url in connection.execute(wanted.order_by(page.c.page))]

    def pages_of(self, url: str) -> list[int]:
        """Give all pages with a URL, exactly as stored."""
        with self._reading() as connection:
            page = models.pages
            wanted = select(page.c.page).where(
                *_own(page, self._key), page.c.url_digest == url_digest(url), page.c.url == url
            )
            return sorted(connection.execute(wanted).scalars())  # for the same reason not in SQL

    def undelivered(self) -> list[int]:
        """Give the pages whose last change is not yet delivered to the spider."""
        with self._reading() as connection:
            page = models.pages
            wanted = select(page.c.page).where(*_own(page, self._key), page.c.pending_fingerprint.is_not(None))
            return list(connection.execute(wanted.order_by(page.c.page)).scalars())

    def announcements_for(
        self, pages: Sequence[int] | np.ndarray, source: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Give what a source last announced of pages: known, lastmod, n, each in the order of `pages`."""
        with self._reading() as connection:
            table = models.announcements
            rows = connection.execute(
                select(table.c.page, table.c.lastmod, table.c.n).where(
                    *_own(table, self._key),
                    table.c.source == source,
                    among(table.c.page, pages, connection.dialect.name),
                )
            )
            found = {page: (lastmod, n) for page, lastmod, n in rows}
            pairs = [found.get(int(page)) for page in pages]
            known = np.array([pair is not None for pair in pairs], dtype=bool)
            lastmod = np.array([pair[0] if pair else None for pair in pairs], dtype=np.float64)
            return known, lastmod, np.array([pair[1] if pair else 0 for pair in pairs], dtype=np.int64)

    def signal_observations(self, since: float, limit: int = 200_000) -> dict[str, np.ndarray]:
        """Give the newest observations of pages that sources cover, once for each source they tell something of."""
        with self._reading() as connection:
            table = models.observations
            n_sources = _end_of_sources(connection, self._key)

            @cache  # most visits say of sources what others do
            def heard(source: int, n_signals: int, further: str | None) -> list[tuple[int, int]]:
                told = [(source, n_signals)]
                if further is not None and 0 <= source < n_sources:
                    told = attributed([*told, *_further(further)])
                return [(one, n) for one, n in told if 0 <= one < n_sources]

            result = connection.execute(
                select(*[table.c[name] for name in _VISIT], table.c.further)
                .where(*_own(table, self._key), table.c.time >= since, table.c.source >= 0)
                .where(table.c.changed.is_not(None), table.c.elapsed.is_not(None))
                .order_by(table.c.time.desc())
                .limit(limit)
            )
            # Arrays part by part: as objects the numbers of 200,000 visits take 50 MB.
            types = (np.int64, np.float64, np.bool_, np.int64, np.int64)
            columns: list[list[np.ndarray]] = [[np.empty(0, dtype)] for dtype in types]
            for part in result.partitions(_ROWS_AT_ONCE):
                rows = fitting(part, _VISIT)  # a damaged row costs one visit of two hundred thousand
                if not rows:
                    continue
                *visits, source, n_signals, further = zip(*rows, strict=True)
                told = [*map(heard, source, n_signals, further)]
                of_row = np.repeat(np.arange(len(rows)), [*map(len, told)])
                numbers = np.array([*chain(*told)], np.int64).reshape(-1, 2)
                for column, dtype, values in zip(columns, types, visits, strict=False):
                    column.append(np.array(values, dtype)[of_row])
                columns[3].append(numbers[:, 0])
                columns[4].append(numbers[:, 1])
            return {name: np.concatenate(column) for name, column in zip(_VISIT, columns, strict=True)}

    def estimator_states(
        self, estimator: str, first: int = 0, last: int | None = None
    ) -> Iterator[tuple[np.ndarray, list[bytes]]]:
        """Give pages and the rows of an estimator that are kept of them, in blocks."""
        with self._reading() as connection:
            page = models.pages
            wanted = select(page.c.page, page.c.estimator_state).where(
                *_own(page, self._key), page.c.estimator == estimator, page.c.page >= first
            )
            if last is not None:
                wanted = wanted.where(page.c.page <= last)
            for rows in connection.execute(wanted.order_by(page.c.page)).partitions(_ROWS_AT_ONCE):
                pages, states = zip(*rows, strict=True)
                yield np.array(pages, np.intp), list(states)

    def visits_without_state(self, estimator: str) -> dict[str, np.ndarray]:
        """Give the visits of pages that have no row of an estimator, in their order."""
        with self._reading() as connection:
            table, page = models.observations, models.pages
            names = ("page", "elapsed", "changed", "n_signals", "time_since_modified")
            columns = [array(code) for code in "qdbqd"]
            rows = connection.execute(
                select(*[table.c[name] for name in names])
                .join(
                    page,
                    (page.c.shard == table.c.shard)
                    & (page.c.collection == table.c.collection)
                    & (page.c.page == table.c.page),
                )
                .where(*_own(table, self._key), table.c.changed.is_not(None), table.c.elapsed > 0)
                .where(page.c.estimator.is_(None) | (page.c.estimator != estimator))
                .order_by(table.c.time, table.c.id)
            )
            for *told, since in rows:
                for column, number in zip(columns, (*told, nan if since is None else since), strict=True):
                    column.append(number)
            types = (np.intp, np.float64, np.bool_, np.int64, np.float64)
            return {name: np.array(column, dtype) for name, column, dtype in zip(names, columns, types, strict=True)}

    def visits(self, first: int, last: int) -> Iterator[tuple[int, float | None, int | None, int, float | None, str]]:
        """Give page, elapsed, changed, ChangeSignals, time since modified, and outcome, of each page in their order."""
        with self._reading() as connection:
            table = models.observations
            names = ("page", "elapsed", "changed", "n_signals", "time_since_modified", "outcome")
            wanted = select(*[table.c[name] for name in names]).where(
                *_own(table, self._key), table.c.page >= first, table.c.page <= last
            )
            for rows in connection.execute(wanted.order_by(table.c.page, table.c.time, table.c.id)).partitions(
                _ROWS_AT_ONCE
            ):
                yield from map(tuple, rows)

    def observations_of(self, page: int, limit: int = 20) -> list[ObservationRow]:
        """Give a page's newest visits, newest first."""
        with self._reading() as connection:
            table = models.observations
            rows = connection.execute(
                select(*[table.c[name] for name in ObservationRow._fields])
                .where(*_own(table, self._key), table.c.page == page)
                .order_by(table.c.time.desc(), table.c.id.desc())
                .limit(limit)
            )
            return [_observation(row._asdict()) for row in rows]

    def announced_visits(self, limit: int = 1_000) -> tuple[int, int]:
        """Count the newest visits, and those of them that an announcement had come before."""
        with self._reading() as connection:
            table = models.observations
            newest = (
                select(table.c.n_signals, table.c.further).where(*_own(table, self._key)).order_by(table.c.time.desc())
            )
            rows = connection.execute(newest.limit(limit)).all()
            return len(rows), sum(bool(n) or any(more for _, more in _further(further)) for n, further in rows)

    def further_sources(self) -> list[tuple[int, int, *FurtherRow]]:
        """Give page, source and the other columns of `models.further_sources`, where a page has several sources."""
        with self._reading() as connection:
            table = models.further_sources
            counts = "n_signals", "n_signals_total", "signalled_since", "n_heard", "signalled_at"
            names = ("page", "source", *counts, "true_signals", "false_signals")
            rows = connection.execute(select(*[table.c[name] for name in names]).where(*_own(table, self._key)))
            n_sources = _end_of_sources(connection, self._key)
            kinds = {name: (int, float, type(None)) for name in names} | {"page": int, "source": int}
            sound = only_sound((row._asdict() for row in rows), kinds, "further source of the page", "page")
            return [tuple(row.values()) for row in sound if 0 <= row["source"] < n_sources]

    def announcements_of(self, page: int) -> list[tuple[int, float | None, int]]:
        """Give (source, lastmod, n) for every source that names a page."""
        with self._reading() as connection:
            table = models.announcements
            rows = connection.execute(
                select(table.c.source, table.c.lastmod, table.c.n).where(*_own(table, self._key), table.c.page == page)
            )
            return [(source, lastmod, n) for source, lastmod, n in rows]

    def counts(self) -> list[tuple[str, int, int, int]]:
        """Count the pages by host, state and source (-1: none announces them)."""
        with self._reading() as connection:
            page = models.pages
            kinds = (page.c.host, page.c.state, page.c.source)
            return [
                tuple(row)
                for row in connection.execute(
                    select(*kinds, func.count()).where(*_own(page, self._key)).group_by(*kinds)
                )
            ]

    def sources(self) -> list[Source]:
        """Give every source."""
        with self._reading() as connection:
            table = models.sources
            largest = _largest_source(connection, self._key)
            found = []
            for row in only_sound(_whole_rows(connection, table, self._key, table.c.source), _SOURCE, "source", "url"):
                if not 0 <= row["source"] <= largest:
                    logger.error(
                        "The source %.60r is left out: its number %d cannot be meant.", row["url"], row["source"]
                    )
                    continue
                name = f"the source {row['url']}"
                row["problems"], row["quality"] = (json_like(row[part], {}, name) for part in ("problems", "quality"))
                row["hosts"] = [host for host in json_like(row["hosts"], [], name) if isinstance(host, str)]
                found.append(Source(**row))
            numbers = {source.source for source in found}
            # A parent that is none, or that was left out, is no parent.
            return [source if source.parent in numbers else replace(source, parent=None) for source in found]

    def hosts(
        self,
        name: str | None = None,
        notable_at: float | None = None,
        limit: int | None = None,
    ) -> list[Host]:
        """Give what is known of hosts: all, one, the first by name, or those that rest or have something withheld."""
        with self._reading() as connection:
            table = models.hosts
            only = [] if name is None else [table.c.host == name]
            if notable_at is not None:
                known = table.c.counts.contains('"withheld"') | table.c.counts.contains('"failing"')
                only.append((table.c.rest_until > notable_at) | known)
            rows = _whole_rows(connection, table, self._key, table.c.host, *only, limit=limit)
            return [
                Host(**{**values, "counts": json_like(values["counts"], {}, f"the host {values['host']}")})
                for values in only_sound(rows, _HOST, "host", "host")
            ]

    def count_hosts(self) -> int:
        """Count the hosts that something is known of."""
        with self._reading() as connection:
            counted = select(func.count()).select_from(models.hosts).where(*_own(models.hosts, self._key))
            return int(connection.execute(counted).scalar_one())

    def host(self, name: str) -> Host | None:
        """Give what is known of one host; None: nothing."""
        return next(iter(self.hosts(name)), None)

    def count_pages(self) -> int:
        """Count the pages; O(n)."""
        with self._reading() as connection:
            counted = select(func.count()).select_from(models.pages).where(*_own(models.pages, self._key))
            return int(connection.execute(counted).scalar_one())

    def next_page(self) -> int:
        """Give the first page number that was never given out."""
        with self._reading() as connection:
            return next_page(connection, self._key)

    def next_observation(self) -> int:
        """Give the first observation id that is free at the end."""
        with self._reading() as connection:
            return next_number(connection, self._key, models.observations.c.id)

    def next_change(self) -> int:
        """Give the first number of a row of the feed that was never given out."""
        with self._reading() as connection:
            return changes.next_number(connection, self._key)

    def next_source(self) -> int:
        """Give the first number of a source that is free at the end."""
        with self._reading() as connection:
            return _largest_source(connection, self._key) + 1

    def end_of_sources(self) -> int:
        """Give a number that no source of this collection reaches."""
        with self._reading() as connection:
            return _end_of_sources(connection, self._key)


@lru_cache
def _facts_wanted(dialect: str) -> Select[Any]:
    # Kept: to make it takes four times as long as to read a page by it.
    page, template = models.pages, models.request_templates
    trace = models.page_traces
    joined = page.outerjoin(
        template,
        (template.c.shard == page.c.shard)
        & (template.c.collection == page.c.collection)
        & (template.c.digest == page.c.template),
    ).outerjoin(
        trace,
        (trace.c.shard == page.c.shard) & (trace.c.collection == page.c.collection) & (trace.c.page == page.c.page),
    )
    of_row = {
        **{name: page.c[name] for name in PageFacts._fields if name in page.c},
        **{name: func.coalesce(trace.c[name], b"").label(name) for name in models.TRACE_COLUMNS},
        "template_data": template.c.data,
    }
    return (
        select(*[of_row[name] for name in PageFacts._fields])
        .select_from(joined)
        .where(page.c.shard == bindparam("shard"), page.c.collection == bindparam("collection"))
        .where(among_those(page.c.page, "pages", dialect))
        # Sorted by what no index has, so that SQLite looks up all rows before it gives the first one: while it looks
        # for one it gives the interpreter's lock away, and a busy crawl keeps that for half a millisecond.
        .order_by(page.c.page + 0)
    )


def _facts(row: Any) -> PageFacts | None:
    """Make a row into facts; None for a damaged one, which costs that page and no other."""
    facts = PageFacts(*row)
    try:
        if facts.template_data is not None:
            facts = facts._replace(template_data=from_json(row.data))
    except DamagedRow as error:
        logger.error("The page number %s cannot be used. %s", row.page, error)
        return None
    wrong = misfit(facts._asdict(), _FACTS)
    if wrong is not None:
        logger.error("The page number %s cannot be used: its row in the database is damaged (%s).", row.page, wrong)
        return None
    return facts


_BYTES, _TEXT, _NUMBER = (bytes, type(None)), (str, type(None)), (float, int, type(None))
_FACTS: dict[str, Any] = {
    "url": str,
    "template": _BYTES,
    "template_data": (dict, type(None)),
    "fingerprint": _BYTES,
    "pending_fingerprint": _BYTES,
    "recipe": _TEXT,
    "etag": _TEXT,
    "last_modified": _TEXT,
    "depth": int,
    "moved_to": _TEXT,
    "variant": _TEXT,
    "history": bytes,
    "text_sketch": bytes,
    "block_sketch": bytes,
}
_SOURCE: dict[str, Any] = {
    "source": int,
    "kind": str,
    "url": str,
    "host": str,
    "parent": (int, type(None)),
    "polled_at": _NUMBER,
    "next_poll_at": _NUMBER,
    "etag": _TEXT,
    "last_modified": _TEXT,
    "fingerprint": _BYTES,
    "n_entries": int,
    "listed_lastmod": _NUMBER,
    "read_lastmod": _NUMBER,
}
_VISIT: dict[str, Any] = {"page": int, "elapsed": (float, int), "changed": int, "source": int, "n_signals": int}
_HOST: dict[str, Any] = {"host": str, "rest_until": (float, int), "crawl_delay": _NUMBER, "robots_seen_at": _NUMBER}
# An index of a hundred thousand sitemaps is a large one; their numbers are places in a list.
_LARGEST_GAP_OF_SOURCES = 100_000
_LARGEST_ONES = 1_000
# What numbers pages and visits have says nothing of how many there are; from here on they could not go on.
_NO_NUMBER = 2**62


def _learned(connection: Connection, key: Key) -> list[str]:
    table = models.noise_masks
    return list(connection.execute(select(table.c.template).where(*_own(table, key))).scalars())


def _further(value: str | None) -> tuple[tuple[int, int], ...]:
    pairs = json_like(value, [], "an observation's further sources")
    return tuple((s, n) for s, n in (pair for pair in pairs if isinstance(pair, list) and len(pair) == 2))


def _observation(row: dict[str, Any]) -> ObservationRow:
    changed = None if row["changed"] is None else bool(row["changed"])
    further = _further(row["further"])
    return ObservationRow(**{**row, "changed": changed, "further": further})


def next_page(connection: Connection, key: Key) -> int:
    """Give the first page number that was never given out."""
    table = models.collections
    given = connection.execute(select(table.c.pages_given).where(*_own(table, key))).scalar_one()
    return max(next_number(connection, key, models.pages.c.page), 0 if given is None else given + 1)


def next_number(connection: Connection, key: Key, column: Any) -> int:
    """Give the number after the largest one in a column; one after which there is no room is damaged."""
    largest = select(column).where(*_own(column.table, key), column < _NO_NUMBER).order_by(column.desc()).limit(1)
    found = connection.execute(largest).scalar_one_or_none()
    return 0 if found is None or found < 0 else int(found) + 1


def _end_of_sources(connection: Connection, key: Key) -> int:
    """Give a number that no source reaches: what a row says of one beyond it is damaged."""
    return _largest_source(connection, key) + 1 + _LARGEST_GAP_OF_SOURCES


def _largest_source(connection: Connection, key: Key) -> int:
    """Give the largest number of a source that can be meant: one far above all others is damaged; -1: there is none."""
    table = models.sources
    query = select(table.c.source).where(*_own(table, key)).order_by(table.c.source.desc())
    found = without_outliers(connection.execute(query.limit(_LARGEST_ONES)).scalars(), _LARGEST_GAP_OF_SOURCES)
    return -1 if found is None else found


def _whole_rows(
    connection: Connection, table: Any, key: Key, order: Any, *only: Any, limit: int | None = None
) -> list[dict[str, Any]]:
    wanted = [column for column in table.c if column.name not in ("shard", "collection")]
    rows = connection.execute(select(*wanted).where(*_own(table, key), *only).order_by(order).limit(limit))
    return [row._asdict() for row in rows]


def _own(table: Any, key: Key) -> tuple[Any, Any]:
    """Make the conditions that keep to this collection."""
    return table.c.shard == key[0], table.c.collection == key[1]
