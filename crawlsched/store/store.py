"""The store: one collection, or one shard of it, in a database, with its readers and writers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError

from crawlsched.exceptions import StoreError, require_posix
from crawlsched.store import models, saving, schema
from crawlsched.store.batch import Batch
from crawlsched.store.database import Database, is_row_error
from crawlsched.store.forgetting import Forgetting, Tombstone, Tombstones
from crawlsched.store.lease import Access, Lease, LeaseRow, lease_row, lost
from crawlsched.store.loading import page_blocks, wanted_pages
from crawlsched.store.reading import Reader
from crawlsched.store.rows import among
from crawlsched.store.saving import Prepared, Refused

__all__ = ["Store", "save_all"]


class Store(Access):
    """One collection in one database; made by `Store.open`.

    It may be used from several threads. No method reads the clock: `now` and other times are POSIX seconds. Every
    failure is a `StoreError` of one sentence.
    """

    def __init__(self, database: Database, name: str, key: tuple[int, int]) -> None:
        super().__init__(database, name, key)
        table = models.tombstones
        stones = self.rows(select(*[table.c[name] for name in Tombstone._fields]).where(*self.own(table)))
        self.tombstones = Tombstones(Tombstone(*stone) for stone in stones)
        self.reader = Reader(database, key)
        self.forgetting = Forgetting(self, self.tombstones)

    def take_lease(self, spider: str, now: float | None = None) -> Lease:
        """Take the lease of this collection for this process; see `Lease.take` for the arguments."""
        self.lease = Lease.take(self.database, self.key, self.name, spider, now)
        return self.lease

    @classmethod
    def open(
        cls, url: str, collection: str, shard: int = 0, *, upgrade: bool = True, read_only: bool = False
    ) -> "Store":
        """Open a collection.

        `upgrade` brings an SQLite database, or one without tables, to this version's schema, and makes a missing
        collection. Without `upgrade`, or with `read_only`, an old schema or a missing collection is an error. After
        an error nothing is changed.
        """
        require_posix()
        makes = upgrade and not read_only
        (schema.prepare if makes else schema.check)(url)
        database = Database(url, read_only=read_only)
        try:
            if not read_only:
                _require_writable(database)
            return cls(database, collection, (shard, _collection_number(database, collection, shard, makes)))
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Close every connection; the lease, if there is one, is not released."""
        self.database.close()

    def owner(self) -> LeaseRow | None:
        """Return the present or last owner of the collection, with its last status; None if there never was one."""
        with self.database.reading() as connection:
            return lease_row(connection, self.key)

    def clock(self) -> float:
        """Return the time by the database's clock, in POSIX seconds, with which heartbeats are compared."""
        with self.database.reading() as connection:
            return self.database.clock(connection)

    def load(
        self,
        block: int = 100_000,
        *,
        host_number: Callable[[str], int] | None = None,
        grid: str = "",
        n_rates: int = 0,
        fingerprinter: str | None = None,
        estimator: str = "",
        pages: Sequence[int] | np.ndarray | None = None,
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yield every page as arrays, in blocks, in the order of page numbers.

        ``host_number(name)`` is called once for each host; without it, ``host`` has the names. Log-likelihoods of
        another `grid`, and states of another `estimator`, are left out. `fingerprinter` is the name of the
        fingerprinter in use.

        Yields
        ------
        dict of str to ndarray
            ``page`` int64, ``host`` int32, ``depth`` int32; every name in `models.LOADED_COLUMNS`
            ("never" is -inf in crawled_at, and nan in changed_at and signalled_since); ``request_fingerprint`` uint8,
            shape (n, 20), and ``other_fingerprinter`` bool; ``log_likelihood`` uint16, shape (n, n_rates), and
            ``has_log_likelihood`` bool, False if the page has to start from the prior (its row is then 0). With an
            `estimator` also its states, ``estimator_state`` bytes, and ``has_estimator_state`` bool.
        """
        wanted = wanted_pages(self.key, grid, n_rates, fingerprinter, estimator, self.database.is_sqlite)
        if pages is not None:
            wanted = wanted.where(among(models.pages.c.page, pages))
        with self.database.reading() as connection:
            yield from page_blocks(connection, wanted, block, host_number, n_rates)

    def save(self, batch: Batch) -> Refused:
        """Write a batch in one transaction, and count the refused rows by table. A batch may be written twice.

        If another process has taken the lease over (`CollectionInUse`), or the database fails, nothing is written.
        """
        refused, left_out = save_all([(self, batch)])
        if left_out:
            raise self.taken_over()
        return refused[0]

    def prepared(self, batch: Batch, refused: Refused) -> Prepared:
        """Make a batch into rows; the caller keeps the `turn` until these are written."""
        self.forgetting.note_templates(batch.templates)
        return saving.prepared(batch, self.key, refused, self.forgetting.pages)


def save_all(parts: Sequence[tuple[Store, Batch]]) -> tuple[list[Refused], list[Batch]]:
    """Write batches in one transaction, the older first, and count the refused rows of each.

    Batches for shards that another process has claimed are returned instead of written. A refused row does not
    stop the others.
    """
    stores = {store.key: store for store, _ in parts}
    database = parts[0][0].database
    with ExitStack() as turns:
        for store in stores.values():
            turns.enter_context(store.turn)
        for write in (saving.write, saving.write_carefully):
            try:
                with database.explained("written"), database.writing() as connection:
                    gone = lost(connection, stores.values())
                    mine = [(store, batch, Refused()) for store, batch in parts if store.key not in gone]
                    write(connection, [(store.prepared(batch, refused), refused) for store, batch, refused in mine])
                break
            except Exception as error:
                if write is saving.write_carefully or not is_row_error(error):
                    raise
    return [refused for _, _, refused in mine], [batch for store, batch in parts if store.key in gone]


def _require_writable(database: Database) -> None:
    with database.explained("written"), database.writing() as connection:
        if not database.is_sqlite and connection.execute(text("SHOW transaction_read_only")).scalar_one() == "on":
            raise StoreError(
                f"The database {database.name!r} is read-only (a standby, or set so); name one that can be written."
            )


def _collection_number(database: Database, name: str, shard: int, create: bool) -> int:
    """Return a collection's number; `create` makes a missing collection."""
    table = models.collections
    with database.reading() as connection:
        rows = connection.execute(select(table.c.name, table.c.collection).where(table.c.shard == shard)).all()
    known = {str(row.name): row.collection for row in rows}
    if name in known:
        if not isinstance(known[name], int):
            raise StoreError(
                f"The row of the collection {name!r} in the table collections of {database.name!r} is damaged "
                f"(its number is {known[name]!r:.40}); restore a backup, or name another collection."
            )
        return int(known[name])
    if not create:
        names = ", ".join(repr(known_name) for known_name in sorted(known)) or "none"
        raise StoreError(f"The database {database.name!r} has no collection {name!r}; it has {names}.")
    number = max((found for found in known.values() if isinstance(found, int)), default=0) + 1
    try:
        with database.explained("written"), database.writing() as connection:
            connection.execute(insert(table).values(shard=shard, collection=number, name=name))
        return number
    except IntegrityError:  # another process has made the collection at the same time
        return _collection_number(database, name, shard, create)
