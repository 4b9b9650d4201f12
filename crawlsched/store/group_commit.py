"""Group commit: what several shards of a process have to write at the same time is written in one transaction.

A shard of many has a few rows at a time, and a transaction of its own costs the process and the server more than they.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from sqlalchemy import ARRAY, Connection, bindparam, text
from sqlalchemy.types import Integer

from crawlsched.store.batch import Batch
from crawlsched.store.database import Database, is_row_error
from crawlsched.store.lease import NOT_LONG_IDLE, ShardLease
from crawlsched.store.saving import Group, Saved, write
from crawlsched.store.store import Store
from crawlsched.store.writing import each_by_itself

__all__ = ["GroupCommit", "joined"]

_SHARDS = bindparam("shards", type_=ARRAY(Integer))
# As in `ShardLease.is_own`, in the order in which a splitting locks them.
_OWNED = text(
    "SELECT shard, token FROM leases WHERE collection = :collection AND shard = ANY (:shards) ORDER BY shard"
    " FOR KEY SHARE"
).bindparams(_SHARDS)


class _Saving(NamedTuple):
    """The groups of rows of one shard, and which of all batches they are."""

    number: int
    lease: ShardLease
    groups: list[Group]
    saved: Saved


class GroupCommit:
    """Saves the batches of shards of one process.

    Parameters
    ----------
    database : Database
        PostgreSQL.
    collection : int
        The number of the collection.
    """

    def __init__(self, database: Database, collection: int) -> None:
        self._database = database
        self._collection = collection

    def save(self, some: Sequence[tuple[Store, Batch]]) -> list[Saved | Exception | None]:
        """Save batches, in one transaction if nothing is wrong with any of them.

        A shard whose lease is lost is left out, and so is one where another thread is writing; if the database refuses
        a row of one, each is saved by itself.

        Parameters
        ----------
        some : sequence of (Store, Batch)
            Of shards, with the leases of this process.

        Returns
        -------
        list of Saved, Exception or None
            What became of each. None: it is to be tried again soon.
        """
        found: list[Saved | Exception | None] = [None] * len(some)
        savings, written = [], list[_Saving]()
        with ExitStack() as turns:
            for number, (store, batch) in enumerate(some):
                saved = Saved()
                try:
                    groups = turns.enter_context(store.grouped(batch, saved))
                except Exception as error:
                    found[number] = error
                    continue
                if groups is not None and isinstance(store.lease, ShardLease):
                    savings.append(_Saving(number, store.lease, groups, saved))
            try:
                written = self._write(savings)
            except Exception as error:
                for saving in savings:
                    found[saving.number] = error
                return found
        for saving in savings:
            found[saving.number] = saving.saved if saving in written else each_by_itself([some[saving.number]])[0]
        return found

    def _write(self, some: Sequence[_Saving]) -> list[_Saving]:
        """Return what was written; the others are not this process's, or a row of one was refused."""
        try:
            with self._database.explained("written"), self._database.writing() as connection:
                owned = self._owned(connection, some)
                write(connection, joined([saving.groups for saving in owned]))
        except Exception as error:
            if is_row_error(error):
                return []
            raise
        return owned

    def _owned(self, connection: Connection, some: Sequence[_Saving]) -> list[_Saving]:
        """Return what may be written, and keep it so until the end of the transaction."""
        connection.exec_driver_sql(NOT_LONG_IDLE)
        wanted = {"collection": self._collection, "shards": [saving.lease.shard for saving in some]}
        tokens = {row.shard: row.token for row in connection.execute(_OWNED, wanted)}
        return [saving for saving in some if tokens.get(saving.lease.shard) == saving.lease.token]


def joined(several: Sequence[list[Group]]) -> list[Group]:
    """Join lists of groups to one, with all rows of a statement together, and each list's order kept.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> a, b, c = (SimpleNamespace(sql=name) for name in "abc")
    >>> found = joined([[Group("t", a, [(1,)]), Group("t", c, [(2,)])], [Group("t", b, [(3,)]), Group("t", c, [(4,)])]])
    >>> [(group.statement.sql, group.rows) for group in found]
    [('b', [(3,)]), ('a', [(1,)]), ('c', [(2,), (4,)])]
    """
    groups: list[Group] = []
    for some in several:
        place = 0
        for group in some:
            found = (at for at in range(place, len(groups)) if groups[at].statement.sql == group.statement.sql)
            at = next(found, None)
            if at is None:
                groups.insert(place, group._replace(rows=list(group.rows)))
                place += 1
            else:
                groups[at].rows.extend(group.rows)
                place = at + 1
    return groups
