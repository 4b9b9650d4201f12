"""Forgetting: delete pages for good, leave tombstones so that they do not return, and delete rows by age."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from sqlalchemy import CompoundSelect, Connection, delete, func, select, update

from crawlsched.store import changes, models
from crawlsched.store.lease import Access
from crawlsched.store.reading import Reader, next_page, size_of_texts
from crawlsched.store.rows import among, digest, own, put, to_json, url_digest

__all__ = ["FORGET_KINDS", "Forgetting", "Tombstone", "Tombstones", "host_of", "pattern"]

Key = tuple[int, int]
_SLICE = 1000
# A tombstone is for a URL, for all URLs of a pattern, or for all URLs of a host.
_KINDS = ("url", "pattern", "host")
#: `forget` deletes pages by URL, pattern or host, or the whole collection.
FORGET_KINDS = (*_KINDS, "collection")
# Tables whose rows stay when a collection is forgotten.
_KEPT = frozenset(("collections", "leases", "commands", "followers", "budgets", "members", "inbox"))


def host_of(url: str) -> str:
    """Return a URL's host in lower case, without port and user.

    >>> host_of("https://me@Example.com:8080/a")
    'example.com'
    """
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def pattern(text: str) -> re.Pattern[str]:
    """Make a pattern for whole URLs, in which ``*`` matches any text, and other characters match themselves.

    >>> found = pattern("https://example.com/old/*?id=*")
    >>> bool(found.fullmatch("https://example.com/old/a?id=1")), bool(found.fullmatch("https://example.com/old/a"))
    (True, False)
    """
    first, *others = (re.escape(part) for part in text.split("*"))
    if not others:
        return re.compile(first)
    # Each part is matched at the first place that fits, without trying later places, so matching takes linear time.
    between = "".join(f"(?>.*?{part})" for part in others[:-1])
    return re.compile(f"{first}{between}.*{others[-1]}", re.DOTALL)


class Tombstone(NamedTuple):
    """A URL, pattern or host that was forgotten, and the time in POSIX seconds."""

    kind: str
    value: str
    created_at: float


class Tombstones:
    """The tombstones of a collection, by which forgotten URLs are found.

    Examples
    --------
    >>> stones = Tombstones([Tombstone("host", "example.com", 5.0), Tombstone("pattern", "*/private/*", 6.0)])
    >>> stones.cover(["http://example.com/a", "http://b.org/", "http://b.org/private/x"])
    [True, False, True]
    >>> stones.covering("http://b.org/private/x")
    Tombstone(kind='pattern', value='*/private/*', created_at=6.0)
    """

    def __init__(self, stones: Iterable[Tombstone] = ()) -> None:
        self._stones: dict[tuple[str, str], Tombstone] = {}
        self._patterns: dict[Tombstone, re.Pattern[str]] = {}
        for stone in stones:
            self.add(*stone)

    def add(self, kind: str, value: str, created_at: float) -> None:
        """Add a tombstone."""
        if kind not in _KINDS:
            raise ValueError(f"kind is {kind!r}; it has to be one of {', '.join(_KINDS)}.")
        stone = Tombstone(kind, value, created_at)
        self._stones[stone[:2]] = stone
        if kind == "pattern":
            # A new dictionary, since another thread may be iterating over the old one.
            self._patterns = {**self._patterns, stone: pattern(value)}

    def take(self, kind: str, value: str) -> bool:
        """Remove a tombstone; return whether it existed."""
        found = self._stones.pop((kind, value), None)
        self._patterns = {stone: compiled for stone, compiled in self._patterns.items() if stone != found}
        return found is not None

    def __iter__(self) -> Iterator[Tombstone]:
        return iter(sorted(self._stones.values(), key=lambda stone: stone.created_at))

    def cover(self, urls: Sequence[str]) -> list[bool]:
        """Return for each URL whether it was forgotten."""
        return [self.covering(url) is not None for url in urls]

    def covering(self, url: str) -> Tombstone | None:
        """Return the tombstone of a URL; None if the URL was not forgotten."""
        if not self._stones:
            return None
        found = self._stones.get(("url", url)) or self._stones.get(("host", host_of(url)))
        return found or next((stone for stone, compiled in self._patterns.items() if compiled.fullmatch(url)), None)


class Forgetting:
    """Delete pages of a collection for good, and rows that are too old or unused.

    The store does not write rows of forgotten `pages`.
    """

    def __init__(self, store: Access, tombstones: Tombstones) -> None:
        self.pages: set[int] = set()
        self._store, self._tombstones = store, tombstones
        # Request templates that were written during a search for unused templates; None: no search runs.
        self._templates: set[bytes] | None = None

    def matching(self, kind: str, value: str) -> np.ndarray:
        """Return the numbers of the pages that `forget` would delete."""
        if kind not in FORGET_KINDS:
            raise ValueError(f"kind is {kind!r}; it has to be one of {', '.join(FORGET_KINDS)}.")
        page = models.pages
        wanted = select(page.c.page, page.c.url).where(*self._store.own(page))
        accepts: Callable[[str], object] = bool
        if kind == "url":
            wanted = wanted.where(page.c.url_digest == url_digest(value), page.c.url == value)
        elif kind == "host":
            wanted = wanted.where(page.c.host == value.lower())
        elif kind == "pattern":
            accepts = pattern(value).fullmatch
        last, found = -1, list[int]()
        while rows := self._store.rows(wanted.where(page.c.page > last).order_by(page.c.page).limit(_SLICE)):
            last = rows[-1][0]
            found += [number for number, url in rows if accepts(url)]
        return np.array(found, dtype=np.int64)

    def forget(self, kind: str, value: str, now: float) -> np.ndarray:
        """Delete pages with all their data, leave a tombstone, and return the pages' numbers.

        `kind` is "url", "pattern" (of whole URLs, with ``*`` for anything), "host" or "collection", which leaves no
        tombstone. In a running crawl, drain the write-behind before, and take the pages out of the planner afterwards.
        """
        store = self._store
        if kind == "collection" and value != store.name:
            raise ValueError(f"value is {value!r}; it has to be {store.name!r}, the collection that is open.")
        value = value.lower() if kind == "host" else value
        if kind != "collection":
            self._tombstones.add(kind, value, now)
            stone = store.row(kind=kind, digest=digest(value), value=value, created_at=now)
            store.write(lambda connection: put(connection, models.tombstones, [stone], "insert"))
        pages = self.matching(kind, value)
        self.delete(pages)
        if kind == "collection":
            store.write(partial(_delete_collection, key=store.key))
        else:  # unused request templates may hold cookies and headers
            store.write(partial(_delete_templates, key=store.key, digests=_unused_templates(store.key)))
        return pages

    def delete(self, pages: np.ndarray) -> None:
        """Delete pages with all their data, without a tombstone."""
        self.pages.update(pages.tolist())
        for part in np.array_split(pages, 1 + pages.size // _SLICE):
            self._store.write_slice(partial(_delete_pages, key=self._store.key, pages=part))

    def take_back(self, kind: str, value: str) -> bool:
        """Delete a tombstone, so that its pages can be found again; return whether it existed."""
        value, stone = value.lower() if kind == "host" else value, models.tombstones
        gone = delete(stone).where(*self._store.own(stone), stone.c.kind == kind, stone.c.digest == digest(value))
        self._store.write(lambda connection: connection.execute(gone))
        return self._tombstones.take(kind, value)

    def prune(self, before: float, limit: int = 10_000) -> int:
        """Delete observations, changes and done commands before a time, at most `limit` of each.

        Return the largest of the three numbers of rows; if it is `limit`, there may be more rows.
        """
        return self._store.write_slice(partial(_prune, key=self._store.key, before=before, limit=limit))

    def note_templates(self, digests: Iterable[bytes]) -> None:
        """Note which request templates are about to be written; the caller must have the store's `turn`."""
        if self._templates is not None:
            self._templates.update(digests)

    def prune_templates(self, limit: int = 10_000) -> int:
        """Delete at most `limit` request templates that no page uses any more; return their number.

        Only the process that owns the collection may call this, since it alone knows which rows it will write next.
        """
        store = self._store
        with store.turn:
            self._templates = written = set[bytes]()
        # Searching all pages takes long, and must not block other writers.
        unused = [name for (name,) in store.rows(_unused_templates(store.key).limit(limit))]

        def delete_some(connection: Connection, some: list[bytes]) -> int:
            # A template that was written during the search is in use.
            return _delete_templates(connection, store.key, [name for name in some if name not in written])

        slices = (unused[start : start + _SLICE] for start in range(0, len(unused), _SLICE))
        deleted = sum(store.write_slice(partial(delete_some, some=some)) for some in slices)
        with store.turn:
            self._templates = None
        return deleted

    def rewrite_templates(self, other: Callable[[Mapping[str, Any]], Mapping[str, Any] | None]) -> None:
        """Replace the data of each request template by the result of `other`; None leaves the template unchanged."""
        store, template = self._store, models.request_templates

        def rewrite(connection: Connection) -> None:
            if connection.dialect.name == "sqlite":  # overwritten credentials must not stay in the file
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
            rows = connection.execute(select(template.c.digest, template.c.data).where(*store.own(template)))
            for name, text in rows.all():
                try:
                    data = other(json.loads(text))
                except (ValueError, TypeError, AttributeError, IndexError, RecursionError):
                    continue  # damaged; the template's reader reports it
                if data is not None:
                    put(connection, template, [store.row(digest=name, data=to_json(data))])

        store.write(rewrite)

    def prune_texts(self, max_bytes: int) -> int:
        """Delete the oldest texts until the total is at most `max_bytes` bytes; return the total."""
        store, table = self._store, models.page_texts
        total = func.sum(size_of_texts()).over(order_by=(table.c.seen_at.desc(), table.c.page))
        kept = select(table.c.page, total.label("total")).where(*store.own(table)).subquery()
        old = select(kept.c.page).where(kept.c.total > max_bytes).limit(_SLICE)
        gone = delete(table).where(*store.own(table), table.c.page.in_(old))
        while store.write_slice(lambda connection: connection.execute(gone).rowcount):
            pass
        return Reader(store.database, store.key).bytes_of_texts()


def _delete_pages(connection: Connection, key: Key, pages: np.ndarray) -> None:
    """Delete pages with all their data; their numbers are not used again."""
    table, n_changes = models.collections, changes.kept(connection, key)[1]
    given = {"pages_given": next_page(connection, key) - 1, "changes_given": n_changes}
    connection.execute(update(table).where(*own(table, key)).values(given))
    for table in (table for table in models.metadata.sorted_tables if "page" in table.c):
        connection.execute(delete(table).where(*own(table, key), among(table.c.page, pages)))


def _unused_templates(key: Key) -> CompoundSelect[Any]:
    """Return a query for the request templates that no page uses."""
    template, page = models.request_templates, models.pages
    used = select(page.c.template).where(*own(page, key), page.c.template.is_not(None))
    return select(template.c.digest).where(*own(template, key)).except_(used)


def _delete_templates(connection: Connection, key: Key, digests: CompoundSelect[Any] | list[bytes]) -> int:
    template = models.request_templates
    return connection.execute(delete(template).where(*own(template, key), template.c.digest.in_(digests))).rowcount


def _delete_collection(connection: Connection, key: Key) -> None:
    """Delete all rows of a collection, except rows about pages and rows of the `_KEPT` tables."""
    for table in models.metadata.sorted_tables:
        if table.name not in _KEPT:
            connection.execute(delete(table).where(*own(table, key)))


def _prune(connection: Connection, key: Key, before: float, limit: int) -> int:
    """Delete the oldest rows before a time, at most `limit` of each table; return the largest count of deleted rows."""
    deleted = 0
    for table, at in (
        (models.observations, models.observations.c.time),
        (models.commands, models.commands.c.done_at),
    ):
        oldest = select(table.c.id).where(*own(table, key), at < before).order_by(at).limit(limit)
        result = connection.execute(delete(table).where(*own(table, key), table.c.id.in_(oldest)))
        deleted = max(deleted, result.rowcount)
    return max(deleted, changes.prune(connection, key, before, limit))
