"""The snapshot: what a crawl knew when it ended, in one file, with which the next begins if the store is as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from crawlsched import __version__
from crawlsched.collection.hosts import Hosts
from crawlsched.columns.array_file import read_arrays, read_facts, write_arrays
from crawlsched.pages.page_index import PageIndex
from crawlsched.planner import (
    Plan,
    Planner,
    planner_arrays,
    planner_facts,
    plans_in_turn,
    restore_planner,
)
from crawlsched.settings import Settings
from crawlsched.store import Store, schema

__all__ = ["SnapshotFile", "Unusable"]

# Of fewer pages none is left beside a database: reading them from it takes no longer than a second.
_LEAST_PAGES = 100_000
_FORMAT = 7


class Unusable(Exception):
    """A snapshot that does not fit; the text says why."""


class SnapshotFile(NamedTuple):
    """Where a collection's snapshot is, and from how many pages on there is one.

    Attributes
    ----------
    path : Path
    least_pages : int
    """

    path: Path
    least_pages: int

    @classmethod
    def of(cls, settings: Settings, store: Store) -> SnapshotFile | None:
        """Return where the settings want it: beside an SQLite database, in a folder of its own, or nowhere."""
        url = store.database.url
        database = Path(url.database or "")
        where, least_pages = settings.snapshot, 0
        if where is True:
            if not store.database.is_sqlite or str(database) in ("", ".", ":memory:"):
                return None
            where, least_pages = str(database.parent), _LEAST_PAGES
        if where is False:
            return None
        assert isinstance(where, str)
        name = f"{database.name}.{quote(store.name, safe='')}.{store.key[0]}.snapshot"
        return cls(Path(where) / name, least_pages)

    def write(self, store: Store, planner: Planner, hosts: Hosts, index: PageIndex, fingerprinter: str) -> bool:
        """Write it, if the collection is large enough; the store must hold all that the planner knows.

        Returns
        -------
        bool
            Whether there is one now.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        if not planner.pages.n or planner.pages.n < self.least_pages:
            self.path.unlink(missing_ok=True)
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        facts = {
            **_stamp(store, fingerprinter),
            "planner": planner_facts(planner),
            "plans": [plan and plan.to_dict(hosts.names) for plan in plans_in_turn(planner)],
            "hosts": hosts.names,
        }
        arrays = planner_arrays(planner) | {f"index.{name}": array for name, array in index.arrays().items()}
        write_arrays(self.path, facts | {"arrays": list(arrays)}, arrays)
        return True

    def read(
        self, store: Store, planner: Planner, hosts: Hosts, index: PageIndex, fingerprinter: str, now: float
    ) -> None:
        """Fill a planner without pages, hosts and index from it; nothing is changed if it does not fit.

        Raises
        ------
        FileNotFoundError
            If there is none.
        Unusable
            If it is not of this store as it is now, of this version, or whole.
        """
        try:
            facts = read_facts(self.path)
            self._check(facts, _stamp(store, fingerprinter), planner, now)
            arrays = read_arrays(self.path)
            if missing := [name for name in facts["arrays"] if name not in arrays]:
                raise ValueError(f"the file is damaged (it has no {missing[0]})")
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            raise Unusable(str(error)) from error
        index.restore({name[6:]: arrays.pop(name) for name in list(arrays) if name.startswith("index.")})
        for name in facts["hosts"]:
            hosts.number(name)
        before, *coming = [data and Plan.from_dict(data, hosts.number) for data in facts["plans"]]
        if before is not None:
            planner.adopt(before, now)
            planner.work(now)
        if coming:
            planner.adopt(coming[0], now, begin=facts["planner"]["n_adopted"])
        restore_planner(planner, facts["planner"], arrays, now)
        newest = store.newest_plan()
        # One that was made while the crawl ended, or later, or was waiting for its turn, comes as it would in a crawl.
        if newest is not None and newest.data != facts["plans"][-1]:
            planner.adopt(Plan.from_dict(newest.data, hosts.number), now)

    def _check(self, facts: dict[str, Any], stamp: dict[str, Any], planner: Planner, now: float) -> None:
        found = {name: facts.get(name) for name in stamp}
        for name, why in _WHY.items():
            if found[name] != stamp[name]:
                raise Unusable(why)
        if facts["planner"]["grid"] != planner.grid:
            raise Unusable("it is of another grid of change rates")
        if facts["planner"]["time"] is None or facts["planner"]["time"] > now:
            raise Unusable("it is of a later time than the clock says")


_WHY = {
    "format": "it is of another version of crawlsched",
    "version": "it is of another version of crawlsched",
    "schema": "it is of another version of the tables",
    "collection": "it is of another collection",
    "last_change": "the pages have been changed in the store since it was written",
    "fingerprinter": "the project has another REQUEST_FINGERPRINTER_CLASS than when it was written",
}


def _stamp(store: Store, fingerprinter: str) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "version": __version__,
        "schema": schema.head(),
        "collection": [store.name, *store.key],
        "last_change": store.last_change(),
        "fingerprinter": fingerprinter,
    }
