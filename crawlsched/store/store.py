"""The store: everything one process reads and writes of one collection in one database."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from sqlalchemy import Connection, delete, insert, select, text
from sqlalchemy.exc import IntegrityError

from crawlsched.change_signals import FurtherRow
from crawlsched.exceptions import CollectionInUse, StoreError, require_posix
from crawlsched.store import (
    changes,
    commands,
    first_pages,
    forgetting,
    models,
    partitions,
    reading,
    samples,
    saving,
    schema,
)
from crawlsched.store.batch import Batch, Host, KeptText, ObservationRow, PageFacts, Source
from crawlsched.store.commands import Command
from crawlsched.store.database import Database, database_url, is_row_error
from crawlsched.store.lease import STALE_AFTER, Lease, LeaseRow, ShardLease, lease_row
from crawlsched.store.loading import page_blocks
from crawlsched.store.rows import json_like, to_json
from crawlsched.store.saving import Group, Saved
from crawlsched.store.tombstones import Tombstone, Tombstones

__all__ = ["Store", "StoredPlan"]

_ROWS_AT_ONCE = 500

T = TypeVar("T")
P = ParamSpec("P")


class StoredPlan(NamedTuple):
    """A plan as it was kept."""

    id: int
    made_at: float
    data: dict[str, Any]


class Store:
    """One collection in one database; made by `Store.open`.

    It may be used from several threads. No method reads the clock: `now` and other times are POSIX seconds.
    Every failure is a `StoreError` of one sentence.

    Attributes
    ----------
    database : Database
    name : str
        The collection's name.
    key : tuple of int
        Shard and number of the collection.
    tombstones : Tombstones
    lease : Lease or None
        While there is one, `save` writes only as long as it is still this process's.
    """

    def __init__(self, database: Database, name: str, key: tuple[int, int]) -> None:
        self.database = database
        self.name = name
        self.key = key
        self.lease: Lease | None = None
        #: In which `facts` are read: shards of one process ask at the same moments, and should not need a connection
        #: each.
        self.in_turn: AbstractContextManager[object] = nullcontext()
        self._forgotten: set[int] = set()
        # Request templates that were written while unused ones are looked for; None: nobody looks.
        self._templates_saved: set[bytes] | None = None
        # Two threads of one process take turns here, instead of waiting for each other's locks in the database.
        self._turn = threading.RLock()
        table = models.tombstones
        with database.reading() as connection:
            columns = (table.c.kind, table.c.value, table.c.created_at)
            rows = connection.execute(select(*columns).where(*self._own(table))).all()
        self.tombstones = Tombstones(Tombstone(*row) for row in rows)

    def take_lease(
        self, spider: str, now: float | None = None, *, stale_after: float = STALE_AFTER, force: bool = False
    ) -> Lease:
        """Become the one process that writes this collection; see `Lease.take`, from which the arguments are."""
        self.lease = Lease.take(self.database, self.key, self.name, spider, now, stale_after=stale_after, force=force)
        return self.lease

    # --- opening and closing

    @classmethod
    def open(
        cls,
        url: str,
        collection: str,
        shard: int = 0,
        *,
        upgrade: bool | None = None,
        read_only: bool = False,
        create: bool | None = None,
    ) -> "Store":
        """Open a collection.

        Parameters
        ----------
        url : str
            ``sqlite:///path`` or ``postgresql://...``.
        collection : str
            Its name.
        shard : int
        upgrade : bool, optional
            Bring the database to this version's schema first. None: on SQLite yes, on PostgreSQL no.
        read_only : bool
            Refuse to write; upgrades nothing.
        create : bool, optional
            Make the collection if it is not there. None: unless `read_only`.

        Returns
        -------
        Store

        Raises
        ------
        SchemaOutOfDate
            If the database is behind, ahead, or another program's.
        StoreError
            If it cannot be used for another reason, or has no such collection. Nothing was changed.
        UnsupportedPlatform
            On Windows.
        """
        require_posix()
        is_sqlite = database_url(url).get_backend_name() == "sqlite"
        if (is_sqlite if upgrade is None else upgrade) and not read_only:
            schema.upgrade(url)
        else:
            schema.check(url)
        database = Database(url, read_only=read_only)
        try:
            if not read_only:
                _require_writable(database)
            create = not read_only if create is None else create
            return cls(database, collection, (shard, _collection_number(database, collection, shard, create)))
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Close every connection; the lease, if there is one, is not released."""
        self.database.close()

    def owner(self) -> LeaseRow | None:
        """Say who owns the collection, or owned it last, and its last status; None: nobody ever did."""
        with self.database.reading() as connection:
            return lease_row(connection, self.key)

    def clock(self) -> float:
        """Return the time by the clock of the database, in POSIX seconds: heartbeats are compared with it."""
        with self.database.reading() as connection:
            return self.database.clock(connection)

    # --- the whole collection

    def load(
        self,
        block: int = 100_000,
        *,
        host_number: Callable[[str], int] | None = None,
        grid: str = "",
        n_rates: int = 0,
        fingerprinter: str | None = None,
        pages: Sequence[int] | np.ndarray | None = None,
    ) -> Iterator[dict[str, np.ndarray]]:
        """Give every page as arrays, in blocks, in the order of page numbers.

        Parameters
        ----------
        block : int
            Pages per block, at most.
        host_number : callable, optional
            Gives a host's number for its name; asked once for each host. None: ``host`` holds the names.
        grid, n_rates : str, int
            The grid of rates in use and its size; log-likelihoods of another grid are not given.
        fingerprinter : str, optional
            The request fingerprinter in use.
        pages : array_like of int, optional
            Only these.

        Yields
        ------
        dict of str to ndarray
            ``page`` int64, ``host`` int32, ``depth`` int32; every name in `models.LOADED_COLUMNS`
            (never: -inf in crawled_at, nan in changed_at and signalled_since); ``request_fingerprint`` uint8, shape
            (n, 20), and ``other_fingerprinter`` bool; ``log_likelihood`` uint16, shape (n, n_rates), and
            ``has_log_likelihood`` bool: False where the page has to start from the prior (its row is 0).
        """
        arguments: dict[str, Any] = {
            "host_number": host_number,
            "grid": grid,
            "n_rates": n_rates,
            "fingerprinter": fingerprinter,
            "pages": pages,
        }
        with self.database.explained("read"):
            yield from page_blocks(self.database, self.key, block, **arguments)

    def next_page(self) -> int:
        """Give the first page number that is free at the end."""
        return self._read(reading.next_number, models.pages.c.page)

    def end_of_sources(self) -> int:
        """Give a number that no source of this collection reaches."""
        return self._read(reading.end_of_sources)

    def next_observation(self) -> int:
        """Give the first observation id that is free at the end."""
        return self._read(reading.next_number, models.observations.c.id)

    def next_change(self) -> int:
        """Give the first number of a delivered change that was never given out."""
        return self._read(changes.next_number)

    def counts(self) -> list[tuple[str, int, int, int]]:
        """Count the pages: host, state, source (-1: none announces them), how many."""
        return self._read(reading.counts)

    def end_of_pages(self) -> int:
        """Give the number after that of the last page: there are no more pages than that."""
        return self._read(reading.next_number, models.pages.c.page)

    def recipes(self, pages: range) -> dict[str, int]:
        """Count some pages by the recipe that they were last read by, but for those whose request names one.

        SQLite sorts the rows for that, and keeps 48 bytes of each in memory.
        """
        return self._read(reading.recipes, pages)

    # --- some pages

    def facts(self, pages: Sequence[int] | np.ndarray) -> list[PageFacts | None]:
        """Give what is needed to request pages, in the order asked; None for one that is not there.

        `WriteBehind.facts` gives the same with what is not written yet.
        """
        with self.in_turn:
            return self._read(reading.facts, pages)

    def noise_mask(self, template: str) -> dict[str, Any] | None:
        """Give the noise mask of a template as data; None if there is none. Written by `Batch.masks`."""
        return self._read(reading.noise_mask, template)  # type: ignore[no-any-return]

    def masked_templates(self) -> list[str]:
        """Give the templates that have a noise mask."""
        return self._read(reading.masked_templates)

    def learned_sites(self) -> list[str]:
        """Give the names of sites of which is known what their pages share; `noise_mask` gives the data of each."""
        return self._read(reading.learned_sites)

    def pages_to_weigh(
        self, after: int, limit: int, *, stated: bool = False
    ) -> list[tuple[int, str, dict[str, Any], bool]]:
        """Give number, URL, request meta, and whether their importance is stated, of the next pages in their order.

        Pages whose importance was stated are left out unless `stated`.
        """
        return self._read(reading.pages_to_weigh, after, limit, stated)

    def text_of(self, page: int) -> KeptText | None:
        """Give the text that is kept of a page, and the one before; None if none is. Written by `Batch.texts`."""
        return self._read(reading.text_of, page)

    def bytes_of_texts(self) -> int:
        """Count the bytes of all texts that are kept."""
        return self._read(reading.bytes_of_texts)

    def urls(self, pages: Sequence[int] | np.ndarray) -> dict[int, str]:
        """Give the URLs of pages by their numbers."""
        return self._read(reading.urls, pages)

    def find(self, what: str | bytes) -> int | None:
        """Give the page with a URL (exactly as stored) or a request fingerprint; None if there is none."""
        return self._read(reading.find, what)

    def variants(self) -> list[tuple[int, str]]:
        """Give page and URL of every page that is one of several of its URL."""
        return self._read(reading.variants)

    def pages_of(self, url: str) -> list[int]:
        """Give all pages with a URL, exactly as stored: several where it has variants."""
        return self._read(reading.pages_of, url)

    def undelivered(self) -> list[int]:
        """Give the pages with a change that has not been through the spider's callback and pipelines."""
        return self._read(reading.undelivered)

    def announcements_for(
        self, pages: Sequence[int] | np.ndarray, source: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Give what a source last announced: (known bool, lastmod float64 or nan, n int64), in the order of `pages`."""
        return self._read(reading.announcements_for, pages, source)

    def announcements_of(self, page: int) -> list[tuple[int, float | None, int]]:
        """Give (source, lastmod, n) of every source that names a page."""
        return self._read(reading.announcements_of, page)

    def observations_of(self, page: int, limit: int = 20) -> list[ObservationRow]:
        """Give a page's newest visits, newest first."""
        return self._read(reading.observations_of, page, limit)

    def signal_observations(self, since: float, limit: int = 200_000) -> dict[str, np.ndarray]:
        """Give the newest observations of pages with a source: page, elapsed, n_signals, source, changed."""
        return self._read(reading.signal_observations, since, limit)

    def announced_visits(self, limit: int = 1_000) -> tuple[int, int]:
        """Count the newest visits, `limit` at most, and those of pages that were announced since their visit before."""
        return self._read(reading.announced_visits, limit)

    def further_sources(self) -> list[tuple[int, int, *FurtherRow]]:
        """Give what each source has announced of a page with several; written back by `Batch.further_sources`."""
        return self._read(reading.further_sources)

    def sources(self) -> list[Source]:
        """Give every source of ChangeSignals; written back by `Batch.sources`."""
        return self._read(reading.sources)

    def host_rows(self) -> list[Host]:
        """Give what hosts told us; written back by `Batch.hosts`."""
        return self._read(reading.hosts)

    def first_hosts(self, limit: int) -> list[Host]:
        """Give what the first hosts by name told us."""
        return self._read(reading.hosts, limit=limit)

    def notable_hosts(self, now: float) -> list[Host]:
        """Give the hosts that want to be left alone now, that fail, and those of which something was withheld."""
        return self._read(reading.hosts, notable_at=now)

    def count_hosts(self) -> int:
        """Say of how many hosts something is known."""
        return self._read(reading.count_hosts)

    def host(self, name: str) -> Host | None:
        """Give what one host told us; None: nothing is known of it."""
        return next(iter(self._read(reading.hosts, name)), None)

    # --- writing

    def save(self, batch: Batch) -> Saved:
        """Write a batch in one transaction; writing it again changes nothing.

        Returns
        -------
        Saved
            What was written, refused, and cleaned.

        Raises
        ------
        CollectionInUse
            If the lease was taken over by another process; nothing was written.
        StoreError
            If the database cannot be written now; nothing was written.
        """
        saved = Saved()
        with self._turn:
            groups = self._groups(batch, saved)
            try:
                self._write(lambda connection: saving.write(connection, groups))
            except Exception as error:
                if not is_row_error(error):
                    raise
                self._write(lambda connection: saving.write_carefully(connection, groups, saved))
        saved.rows -= sum(saved.refused.values())
        return saved

    @contextmanager
    def grouped(self, batch: Batch, saved: Saved) -> Iterator[list[Group] | None]:
        """Give a batch as groups, to be written inside with those of other stores; None: another thread writes here."""
        if not self._turn.acquire(blocking=False):
            yield None
            return
        try:
            yield self._groups(batch, saved)
        finally:
            self._turn.release()

    def _groups(self, batch: Batch, saved: Saved) -> list[Group]:
        if self._templates_saved is not None:
            self._templates_saved.update(batch.templates)
        batch = batch.without(self._forgotten) if self._forgotten else batch
        return saving.groups(batch, self.key, self.database.engine.dialect, saved)

    def add_source(self, kind: str, url: str, host: str, parent: int | None = None) -> Source:
        """Give the source with this kind and URL, a new one if there is none."""

        def add(connection: Any) -> Source:
            for known in reading.sources(connection, self.key):
                if (known.kind, known.url) == (kind, url):
                    return known
            number = reading.next_number(connection, self.key, models.sources.c.source)
            source = Source(number, kind, url, host, parent)
            dialect = self.database.engine.dialect
            saving.write(connection, saving.groups(Batch(sources={number: source}), self.key, dialect, Saved()))
            return source

        return self._write(add)

    def save_plan(self, data: dict[str, Any], now: float, keep: int = 5) -> int:
        """Keep a plan (JSON) and the newest few before it; gives its id. The next days' observations get tables."""
        if not self.database.is_sqlite:
            partitions.make_ahead(self.database, now)
        table = models.plans
        values = {"shard": self.key[0], "collection": self.key[1], "made_at": now, "data": to_json(data)}
        number = commands.insert_numbered(self.database, self.key, table.c.id, values)
        self._write(
            lambda connection: connection.execute(delete(table).where(*self._own(table), table.c.id <= number - keep))
        )
        return number

    def estimator_states(
        self, estimator: str, first: int = 0, last: int | None = None
    ) -> Iterator[tuple[np.ndarray, list[bytes]]]:
        """Give pages (from `first` to `last`) and the rows of an estimator that are kept of them, in blocks."""
        with self.database.explained("read"), self.database.reading() as connection:
            yield from reading.estimator_states(connection, self.key, estimator, first, last)

    def visits_without_state(self, estimator: str) -> dict[str, np.ndarray]:
        """Give the kept visits of the pages of which there is no row of an estimator, in their order.

        Returns
        -------
        dict of ndarray
            ``page``, ``elapsed``, ``changed``, ``n_signals``, ``time_since_modified`` (nan: not known).
        """
        return self._read(reading.visits_without_state, estimator)

    def visits(self, first: int, last: int) -> Iterator[tuple[int, float | None, int | None, int, float | None, str]]:
        """Give the kept visits of pages from `first` to `last`, page by page in their order.

        Yields
        ------
        tuple
            Page, seconds since the visit before (None: the first one), whether it had changed (None: nothing was
            learned), ChangeSignals in between, seconds since its last modification (None: not known), and outcome.
        """
        with self.database.explained("read"), self.database.reading() as connection:
            yield from reading.visits(connection, self.key, first, last)

    def save_grid(self, grid: str, rates: Sequence[float]) -> None:
        """Keep the change rates (per second) of a grid by its name, unless they are there."""
        table = models.rate_grids
        with self.database.reading() as connection:
            known = select(table.c.position).where(*self._own(table), table.c.grid == grid).limit(1)
            if connection.execute(known).first() is not None:
                return
        own = {"shard": self.key[0], "collection": self.key[1], "grid": grid}
        rows = [{**own, "position": position, "change_rate": rate} for position, rate in enumerate(rates)]
        self._write(lambda connection: connection.execute(insert(table), rows))

    def newest_plan(self, after: int = -1) -> StoredPlan | None:
        """Give the newest plan; None if there is none with an id above `after`."""
        table = models.plans
        query = select(table.c.id, table.c.made_at, table.c.data).where(*self._own(table), table.c.id > after)
        with self.database.reading() as connection:
            row = connection.execute(query.order_by(table.c.id.desc()).limit(1)).one_or_none()
        if row is None or not (data := json_like(row.data, {}, f"the plan number {row.id}")):
            return None
        return StoredPlan(row.id, row.made_at, data)

    # --- forgetting

    def matching(self, kind: str, value: str) -> np.ndarray:
        """Give the numbers of the pages that `forget` would delete."""
        slices = list(forgetting.matching(self.database, self.key, kind, value))
        return np.concatenate(slices) if slices else np.empty(0, dtype=np.int64)

    def forget(self, kind: str, value: str, now: float) -> np.ndarray:
        """Delete pages and all that is known of them, and leave a tombstone so that they do not come back.

        In a running crawl drain the write-behind first (a page that is not written yet is not found), and take the
        pages out of the planner afterwards; what this store is still given of them is left out.

        Parameters
        ----------
        kind : {"url", "pattern", "host", "collection"}
            A pattern is matched against whole URLs; in it ``*`` stands for anything. A collection is emptied and
            leaves no tombstone.
        value : str
        now : float

        Returns
        -------
        ndarray of int64
            The numbers of the pages that were deleted.
        """
        if kind == "collection" and value != self.name:
            raise ValueError(f"value is {value!r}; it has to be {self.name!r}, the collection that is open.")
        value = value.lower() if kind == "host" else value
        if kind != "collection":
            self.tombstones.add(kind, value, now)
            self._write(lambda connection: forgetting.leave_tombstone(connection, self.key, kind, value, now))
        forgotten = []
        for pages in forgetting.matching(self.database, self.key, kind, value):
            self._forgotten.update(pages.tolist())
            self._write_slice(partial(forgetting.delete_pages, key=self.key, pages=pages))
            forgotten.append(pages)
        clear = forgetting.delete_collection if kind == "collection" else forgetting.delete_unused_templates
        self._write(lambda connection: clear(connection, self.key))
        return np.concatenate(forgotten) if forgotten else np.empty(0, dtype=np.int64)

    def delete(self, pages: np.ndarray) -> None:
        """Delete pages and all that is known of them; they may come back."""
        self._forgotten.update(pages.tolist())
        for part in np.array_split(pages, 1 + pages.size // _ROWS_AT_ONCE):
            self._write_slice(partial(forgetting.delete_pages, key=self.key, pages=part))

    def take_back(self, kind: str, value: str) -> bool:
        """Let what was forgotten come back when somebody names it again; say whether it was forgotten."""
        value = value.lower() if kind == "host" else value
        self._write(lambda connection: forgetting.take_tombstone(connection, self.key, kind, value))
        return self.tombstones.take(kind, value)

    def tombstoned(self, urls: Sequence[str]) -> list[bool]:
        """Say for each URL whether it was forgotten on purpose; from memory."""
        return self.tombstones.cover(urls)

    def prune(self, before: float, limit: int = 10_000) -> int:
        """Delete at most `limit` observations and done commands older than a time; repeat while it gives `limit`."""
        if not self.database.is_sqlite:
            partitions.drop(self.database, self.key, before)
        return self._write_slice(lambda connection: forgetting.prune(connection, self.key, before, limit))

    def prune_templates(self, limit: int = 10_000) -> int:
        """Delete at most `limit` request templates that no page names any more; give how many.

        Only the process that owns the collection may do this: it alone knows what it is about to write.
        """
        with self._turn:
            self._templates_saved = saved = set[bytes]()
        # Looking through all pages takes long, and must not keep others from writing.
        unused = self._read(forgetting.unused_templates, limit)
        deleted = 0
        for start in range(0, len(unused), _ROWS_AT_ONCE):
            with self._turn:
                # A page may have come to one of them meanwhile.
                some = [digest for digest in unused[start : start + _ROWS_AT_ONCE] if digest not in saved]
                self._write_slice(partial(forgetting.delete_templates, key=self.key, digests=some))
                deleted += len(some)
        with self._turn:
            self._templates_saved = None
        return deleted

    def rewrite_templates(self, other: Callable[[Mapping[str, Any]], Mapping[str, Any] | None]) -> None:
        """Write other data into request templates; None: leave one as it is."""
        with self._turn:
            self._write(partial(forgetting.rewrite_templates, key=self.key, other=other))

    def prune_texts(self, max_bytes: int) -> int:
        """Delete the texts that were seen longest ago until those that are left have at most so many bytes.

        Returns
        -------
        int
            The bytes that are left.
        """
        while (left := self.bytes_of_texts()) > max_bytes:
            share = 1.0 - max_bytes / left
            self._write_slice(partial(forgetting.prune_texts, key=self.key, share=share))
        return left

    # --- figures for whoever watches

    def put_sample(self, time: float, figures: Mapping[str, float | None]) -> None:
        """Keep the figures of a moment, by the names of `models.FIGURES`."""
        self._write(lambda connection: samples.put(connection, self.key, time, figures))

    def samples(self, since: float) -> list[dict[str, Any]]:
        """Give the figures since a time, oldest first."""
        return self._read(samples.since, since)

    def thin_samples(self, now: float) -> int:
        """Join old figures to fewer; give how many rows fewer there are."""
        return self._write(lambda connection: samples.thin(connection, self.key, now))

    def put_first_pages(self, ranked: Sequence[tuple[str, Sequence[int], Sequence[float]]]) -> None:
        """Keep the first pages of several orders, with their values."""

        def put(connection: Connection) -> None:
            for view, pages, values in ranked:
                first_pages.put(connection, self.key, view, pages, values)

        self._write(put)

    def first_pages(self, view: str, offset: int = 0, limit: int = 100) -> list[tuple[int, float]]:
        """Give some of the first pages of an order as of the last plan, with their values."""
        return self._read(first_pages.read, view, offset, limit)

    # --- who follows the changes

    def position_of(self, follower: str) -> int | None:
        """Give the number of the last change that arrived at a follower; None: it has not begun."""
        return self._read(changes.position_of, follower)

    def put_position(self, follower: str, position: int, now: float) -> None:
        """Note how far a follower has come."""
        self._write(lambda connection: changes.put_position(connection, self.key, follower, position, now))

    # --- commands of another process

    def send(self, name: str, arguments: dict[str, Any], now: float) -> int:
        """Leave a command for the process that owns the collection; gives its id."""
        return commands.send(self.database, self.key, name, arguments, now)

    def pending_commands(self) -> list[Command]:
        """Give the commands which are not done, oldest first."""
        return self._read(commands.pending)

    def finish(self, id: int, result: Any, now: float) -> None:
        """Write down a command's result (`Batch.finished` does it with other changes)."""
        self._write(lambda connection: commands.finish(connection, self.key, id, result, now))

    def wait_for(self, id: int, timeout: float) -> Command | None:
        """Wait until a command is done, at most `timeout` seconds; None if it is not."""
        return commands.wait_for(self.database, self.key, id, timeout)

    def quick_check(self) -> list[str]:
        """Look for damage; gives one sentence for each finding, none if all is well."""
        with self.database.reading() as connection:
            if self.database.is_sqlite:
                lines = "\n".join(connection.execute(text("PRAGMA quick_check")).scalars()).splitlines()
                return [line for line in lines if line != "ok" and not line.startswith("***")]
            for table in models.metadata.sorted_tables:
                connection.execute(select(table).limit(1)).all()
        return [f"The tables differ: {difference}" for difference in schema.differences(self.database.text)]

    def _own(self, table: Any) -> tuple[Any, Any]:
        return table.c.shard == self.key[0], table.c.collection == self.key[1]

    def _read(
        self, question: Callable[Concatenate[Connection, tuple[int, int], P], T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        with self.database.reading() as connection:
            return question(connection, self.key, *arguments, **named)

    def _write(self, change: Callable[[Connection], T]) -> T:
        """Change something, if this process still may; the error of a row that is refused is given on as it is."""
        with self._turn, self.database.explained("written"), self.database.writing() as connection:
            if self.lease is not None and not self.lease.is_own(connection):
                if isinstance(self.lease, ShardLease):
                    raise CollectionInUse(
                        f"The shard {self.key[0]} of the collection {self.name!r} was taken over by another process, "
                        "for this one was silent too long; nothing more of it is written by this one."
                    )
                raise CollectionInUse(
                    f"The collection {self.name!r} was taken over by another process, and nothing more is "
                    "written by this one; stop this crawl (crawlsched status shows the new owner)."
                )
            return change(connection)

    def _write_slice(self, change: Callable[[Connection], T]) -> T:
        """Change one slice of many, then rest as long as it took: whoever writes in between has to get a turn."""
        started = time.monotonic()
        result = self._write(change)
        time.sleep(min(1.0, time.monotonic() - started))
        return result


def _require_writable(database: Database) -> None:
    with database.explained("written"), database.writing() as connection:
        if not database.is_sqlite and connection.execute(text("SHOW transaction_read_only")).scalar_one() == "on":
            raise StoreError(
                f"The database {database.name!r} is read-only (a standby, or set so); name one that can be written."
            )


def _collection_number(database: Database, name: str, shard: int, create: bool) -> int:
    """Give a collection's number, and make it if need be."""
    table = models.collections
    with database.reading() as connection:
        rows = connection.execute(select(table.c.name, table.c.collection).where(table.c.shard == shard)).all()
    known = {row.name: int(row.collection) for row in rows}
    if name in known:
        return known[name]
    if not create:
        names = ", ".join(repr(known_name) for known_name in sorted(known)) or "none"
        raise StoreError(f"The database {database.name!r} has no collection {name!r}; it has {names}.")
    number = max(known.values(), default=0) + 1
    try:
        with database.explained("written"), database.writing() as connection:
            connection.execute(insert(table).values(shard=shard, collection=number, name=name))
        return number
    except IntegrityError:  # another process made one at the same time
        return _collection_number(database, name, shard, create)
