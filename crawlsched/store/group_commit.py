"""Group commit: what several shards of a process have to write at the same time is written in one transaction.

A shard of many has a few rows at a time, and a transaction of its own costs the process and the server more than they.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Integer

from crawlsched.store.database import Database, is_row_error
from crawlsched.store.lease import NOT_LONG_IDLE, ShardLease
from crawlsched.store.saving import Group, write

__all__ = ["GroupCommit", "joined"]

_SHARDS = bindparam("shards", type_=ARRAY(Integer))
# As in `ShardLease.is_own`, in the order in which a splitting locks them.
_OWNED = text(
    "SELECT shard, token FROM leases WHERE collection = :collection AND shard = ANY (:shards) ORDER BY shard"
    " FOR KEY SHARE"
).bindparams(_SHARDS)
_NOTED = text(
    "UPDATE collections SET last_change = gen_random_uuid() WHERE collection = :collection AND shard = ANY (:shards)"
).bindparams(_SHARDS)


class _Saving:
    """The groups of rows of one shard, until they are written."""

    def __init__(self, lease: ShardLease, groups: list[Group]) -> None:
        self.lease = lease
        self.groups = groups
        self.error: Exception | None = None
        self.is_done = False
        self.is_written = False


class GroupCommit:
    """Writes the batches of the shards of one process, all that wait at once.

    Threads call `write`, each for its shard. While one of them is writing the others wait, and the first of these then
    writes for all.

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
        self._turn = threading.Lock()
        self._added = threading.Lock()
        self._waiting: list[_Saving] = []

    def write(self, lease: ShardLease, groups: list[Group]) -> bool:
        """Write what has been learned of a shard, with what others have to write.

        Parameters
        ----------
        lease : ShardLease
            The right to write it.
        groups : list of Group

        Returns
        -------
        bool
            False: it has to be written by itself, for the lease is lost, or a row among all of them was refused.

        Raises
        ------
        StoreError
            If the database cannot be written now.
        """
        mine = _Saving(lease, groups)
        with self._added:
            self._waiting.append(mine)
        with self._turn:
            if not mine.is_done:
                with self._added:
                    some, self._waiting = self._waiting, []
                self._write(some)
        if mine.error is not None:
            raise mine.error
        return mine.is_written

    def _write(self, some: Sequence[_Saving]) -> None:
        owned: list[_Saving] = []
        try:
            with self._database.explained("written"), self._database.writing() as connection:
                owned = self._owned(connection, some)
                write(connection, joined([saving.groups for saving in owned]))
        except Exception as error:
            owned = []
            if not is_row_error(error):
                for saving in some:
                    saving.error = error
        for saving in some:
            saving.is_done = True
        for saving in owned:
            saving.is_written = True

    def _owned(self, connection: Connection, some: Sequence[_Saving]) -> list[_Saving]:
        """Return what may be written, keep it so until the end of the transaction, and leave word of the changes."""
        connection.exec_driver_sql(NOT_LONG_IDLE)
        wanted = {"collection": self._collection, "shards": [saving.lease.shard for saving in some]}
        tokens = {row.shard: row.token for row in connection.execute(_OWNED, wanted)}
        owned = [saving for saving in some if tokens.get(saving.lease.shard) == saving.lease.token]
        connection.execute(_NOTED, {**wanted, "shards": [saving.lease.shard for saving in owned]})
        return owned


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
