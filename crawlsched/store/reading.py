"""Reading: small questions about pages, observations and announcements."""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from crawlsched.change_signals import FurtherRow, attributed
from crawlsched.store import models
from crawlsched.store.batch import Host, KeptText, ObservationRow, PageFacts, Source
from crawlsched.store.database import among
from crawlsched.store.rows import from_json, url_digest

__all__ = ["announcements_for", "counts", "facts", "find", "hosts", "observations_of", "signal_observations", "sources"]

Key = tuple[int, int]


def facts(connection: Connection, key: Key, pages: Sequence[int] | np.ndarray) -> list[PageFacts | None]:
    """Give what is known of pages, in the order asked."""
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
    wanted = ("page", "url", "template", "fingerprint", "pending_fingerprint", "recipe", "etag", "last_modified")
    rows = connection.execute(
        select(
            *[page.c[name] for name in (*wanted, "depth", "moved_to", "state", "variant")],
            *[func.coalesce(trace.c[name], b"").label(name) for name in models.TRACE_COLUMNS],
            template.c.data,
        )
        .select_from(joined)
        .where(*_own(page, key), among(page.c.page, pages, connection.dialect.name))
    )
    found = {row.page: _facts(row) for row in rows}
    return [found.get(int(number)) for number in pages]


def _facts(row: Any) -> PageFacts:
    values = row._asdict()
    return PageFacts(template_data=from_json(values.pop("data")), **values)


def noise_mask(connection: Connection, key: Key, template: str) -> Any:
    """Give the noise mask of a template as data; None if there is none."""
    table = models.noise_masks
    data = select(table.c.data).where(*_own(table, key), table.c.template == template)
    return from_json(connection.execute(data).scalar_one_or_none())


def masked_templates(connection: Connection, key: Key) -> list[str]:
    """Give the templates that have a noise mask."""
    return [name for name in _learned(connection, key) if not name.startswith(models.SITE)]


def learned_sites(connection: Connection, key: Key) -> list[str]:
    """Give the names of the sites of which is known what their pages share."""
    return [name for name in _learned(connection, key) if name.startswith(models.SITE)]


def _learned(connection: Connection, key: Key) -> list[str]:
    table = models.noise_masks
    return list(connection.execute(select(table.c.template).where(*_own(table, key))).scalars())


def text_of(connection: Connection, key: Key, page: int) -> KeptText | None:
    """Give the text that is kept of a page; None if none is."""
    table = models.page_texts
    columns = [table.c[name] for name in KeptText._fields]
    row = connection.execute(select(*columns).where(*_own(table, key), table.c.page == page)).one_or_none()
    return None if row is None else KeptText(*row)


def bytes_of_texts(connection: Connection, key: Key) -> int:
    """Count the bytes of all texts that are kept."""
    table = models.page_texts
    size = func.length(table.c.text) + func.coalesce(func.length(table.c.before), 0)
    return int(connection.execute(select(func.coalesce(func.sum(size), 0)).where(*_own(table, key))).scalar_one())


def find(connection: Connection, key: Key, what: str | bytes) -> int | None:
    """Give the page with a URL (the first added, if there are several) or with a request fingerprint."""
    page = models.pages
    if isinstance(what, bytes):
        condition = page.c.request_fingerprint == what
    else:
        condition = (page.c.url_digest == url_digest(what)) & (page.c.url == what)
    found = connection.execute(select(func.min(page.c.page)).where(*_own(page, key), condition)).scalar_one()
    return None if found is None else int(found)


def variants(connection: Connection, key: Key) -> list[tuple[int, str]]:
    """Give page and URL of every page that is one of several of its URL, in the order of their numbers."""
    page = models.pages
    wanted = select(page.c.page, page.c.url).where(*_own(page, key), page.c.variant.is_not(None))
    return [(number, url) for number, url in connection.execute(wanted.order_by(page.c.page))]


def pages_of(connection: Connection, key: Key, url: str) -> list[int]:
    """Give all pages with a URL, exactly as stored."""
    page = models.pages
    wanted = select(page.c.page).where(*_own(page, key), page.c.url_digest == url_digest(url), page.c.url == url)
    return list(connection.execute(wanted.order_by(page.c.page)).scalars())


def undelivered(connection: Connection, key: Key) -> list[int]:
    """Give the pages whose last change is not yet delivered to the spider."""
    page = models.pages
    wanted = select(page.c.page).where(*_own(page, key), page.c.pending_fingerprint.is_not(None))
    return list(connection.execute(wanted.order_by(page.c.page)).scalars())


def announcements_for(
    connection: Connection, key: Key, pages: Sequence[int] | np.ndarray, source: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give what a source last announced of pages: known, lastmod, n, each in the order of `pages`."""
    table = models.announcements
    rows = connection.execute(
        select(table.c.page, table.c.lastmod, table.c.n).where(
            *_own(table, key), table.c.source == source, among(table.c.page, pages, connection.dialect.name)
        )
    )
    found = {page: (lastmod, n) for page, lastmod, n in rows}
    pairs = [found.get(int(page)) for page in pages]
    known = np.array([pair is not None for pair in pairs], dtype=bool)
    lastmod = np.array([pair[0] if pair else None for pair in pairs], dtype=np.float64)
    return known, lastmod, np.array([pair[1] if pair else 0 for pair in pairs], dtype=np.int64)


def signal_observations(connection: Connection, key: Key, since: float, limit: int) -> dict[str, np.ndarray]:
    """Give the newest observations of pages that sources cover, once for each source they tell something of."""
    table = models.observations
    names = ("page", "elapsed", "n_signals", "source", "changed")
    # Numbers side by side: as objects those of 200,000 visits take 50 MB.
    columns = [array(code) for code in "qdqqb"]
    rows = connection.execute(
        select(*[table.c[name] for name in names], table.c.further)
        .where(*_own(table, key), table.c.time >= since, table.c.source >= 0)
        .where(table.c.changed.is_not(None), table.c.elapsed.is_not(None))
        .order_by(table.c.time.desc())
        .limit(limit)
    )
    for *told, further in rows:
        page, elapsed, n_signals, source, changed = told
        heard = [(source, n_signals)]
        if further is not None:
            heard = attributed([*heard, *map(tuple, from_json(further))])
        for one, n in heard:
            for column, number in zip(columns, (page, elapsed, n, one, changed), strict=True):
                column.append(number)
    types = (np.int64, np.float64, np.int64, np.int64, np.bool_)
    return {name: np.array(column, dtype) for name, column, dtype in zip(names, columns, types, strict=True)}


def observations_of(connection: Connection, key: Key, page: int, limit: int) -> list[ObservationRow]:
    """Give a page's newest visits, newest first."""
    table = models.observations
    rows = connection.execute(
        select(*[table.c[name] for name in ObservationRow._fields])
        .where(*_own(table, key), table.c.page == page)
        .order_by(table.c.time.desc(), table.c.id.desc())
        .limit(limit)
    )
    return [_observation(row._asdict()) for row in rows]


def _observation(row: dict[str, Any]) -> ObservationRow:
    changed = None if row["changed"] is None else bool(row["changed"])
    further = tuple((source, n) for source, n in from_json(row["further"] or "[]"))
    return ObservationRow(**{**row, "changed": changed, "further": further})


def further_sources(connection: Connection, key: Key) -> list[tuple[int, int, *FurtherRow]]:
    """Give page, source and the other columns of `models.further_sources`, where a page has several sources."""
    table = models.further_sources
    counts = "n_signals", "n_signals_total", "signalled_since", "n_heard", "signalled_at"
    names = ("page", "source", *counts, "true_signals", "false_signals")
    rows = connection.execute(select(*[table.c[name] for name in names]).where(*_own(table, key)))
    return [tuple(row) for row in rows]


def announcements_of(connection: Connection, key: Key, page: int) -> list[tuple[int, float | None, int]]:
    """Give (source, lastmod, n) for every source that names a page."""
    table = models.announcements
    rows = connection.execute(
        select(table.c.source, table.c.lastmod, table.c.n).where(*_own(table, key), table.c.page == page)
    )
    return [(source, lastmod, n) for source, lastmod, n in rows]


def counts(connection: Connection, key: Key) -> dict[str, dict[int, int]]:
    """Count the pages by host and state."""
    page = models.pages
    counted: dict[str, dict[int, int]] = {}
    for host, state, n in connection.execute(
        select(page.c.host, page.c.state, func.count()).where(*_own(page, key)).group_by(page.c.host, page.c.state)
    ):
        counted.setdefault(host, {})[state] = n
    return counted


def sources(connection: Connection, key: Key) -> list[Source]:
    """Give every source."""
    table = models.sources
    return [
        Source(**{**values, **{name: from_json(values[name] or "[]") for name in ("problems", "quality", "hosts")}})
        for values in _whole_rows(connection, table, key, table.c.source)
    ]


def hosts(connection: Connection, key: Key) -> list[Host]:
    """Give what the hosts told us."""
    return [
        Host(**{**values, "counts": from_json(values["counts"])})
        for values in _whole_rows(connection, models.hosts, key, models.hosts.c.host)
    ]


def next_number(connection: Connection, key: Key, column: Any) -> int:
    """Give the number after the largest one in a column."""
    largest = connection.execute(select(func.max(column)).where(*_own(column.table, key))).scalar_one()
    return 0 if largest is None else int(largest) + 1


def _whole_rows(connection: Connection, table: Any, key: Key, order: Any) -> list[dict[str, Any]]:
    wanted = [column for column in table.c if column.name not in ("shard", "collection")]
    return [row._asdict() for row in connection.execute(select(*wanted).where(*_own(table, key)).order_by(order))]


def _own(table: Any, key: Key) -> tuple[Any, Any]:
    """Make the conditions that keep to this collection."""
    return table.c.shard == key[0], table.c.collection == key[1]
