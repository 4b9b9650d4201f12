"""Shards: each has a part of the hosts of a collection. This process has some shards in memory, with their pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from crawlsched.columns.growing import grown
from crawlsched.crawl.hosts import Hosts
from crawlsched.pages import FREE, Pages
from crawlsched.sharing import shard_of
from crawlsched.store import Store

__all__ = ["PageNumbers", "Shard", "Shards"]


class Shard:
    """A set of hosts whose pages are in memory, with the store of these pages and their numbers there.

    A collection that one process owns counts as one shard.
    """

    def __init__(self, store: Store) -> None:
        reader = store.reader
        self.store = store
        self.number = store.key[0]
        self.n_pages = 0
        self.next_page = reader.next_page()
        #: The next free numbers of visits, changes and sources.
        self.observations, self.changes = count(reader.next_observation()), count(reader.next_change())
        self.sources = count(reader.next_source())
        self.source_numbers: dict[int, int] = {}
        #: The names of templates and sites about which something was learned.
        self.learned: set[str] = set()
        #: Numbers of the commands that were begun, and are not written down as done yet.
        self.commands_under_way: set[int] = set()


class Shards:
    """The shards that this process has in memory, by their numbers, and the shard of each page.

    Parameters
    ----------
    n : int or None
        How many shards the collection has; None: a single shard, with the number 0.
    pages : Pages
    hosts : Hosts
    numbers : PageNumbers
    """

    def __init__(self, n: int | None, pages: Pages, hosts: Hosts, numbers: PageNumbers) -> None:
        self.n = n
        self.here: dict[int, Shard] = {}
        self._pages, self._hosts, self._numbers = pages, hosts, numbers
        self._of_host = np.empty(0, np.int32)

    def __iter__(self) -> Iterator[Shard]:
        return iter(list(self.here.values()))

    @property
    def only(self) -> Shard:
        """The only shard of a collection."""
        return self.here[0]

    def number_of(self, host: str) -> int:
        """Return the number of a host's shard."""
        return 0 if self.n is None else shard_of(host, self.n)

    def of_name(self, host: str) -> Shard | None:
        """Return the shard of a host; None: the shard is not here."""
        return self.here.get(self.number_of(host))

    def of_host(self, host: int) -> Shard | None:
        """Return the shard of a host, given by its row number in memory; None: the shard is not here."""
        return self.here.get(0 if self.n is None else self._known(host + 1).item(host))

    def of_page(self, page: int) -> Shard | None:
        """Return the shard of a page; None: the shard is not here any more, or the page has been forgotten."""
        return None if self._pages.state.item(page) == FREE else self.of_host(self._pages.host.item(page))

    def _known(self, n_hosts: int) -> NDArray[np.int32]:
        known = self._of_host
        if n_hosts > known.size:
            new = [self.number_of(name) for name in self._hosts.names[known.size :]]
            known = self._of_host = np.concatenate([known, np.array(new, np.int32)])
        return known  # another thread may have put a shorter array in its place

    def hosts_of(self, number: int) -> list[int]:
        """Return the known hosts of a shard."""
        found: list[int] = np.flatnonzero(self._known(len(self._hosts)) == number).tolist()
        return found

    def numbers_of(self, pages: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the number of the shard of each page."""
        if self.n is None:
            return np.zeros(pages.size, np.int32)
        found: NDArray[np.int32] = self._known(len(self._hosts))[self._pages.host[pages]]
        return found

    def pages_of(self, number: int) -> NDArray[np.intp]:
        """Return the pages of a shard; O(n)."""
        rows = np.flatnonzero(self._pages.state[: self._pages.n] != FREE)
        found: NDArray[np.intp] = rows[self.numbers_of(rows) == number]
        return found

    def rows_of(self, shard: Shard, numbers: NDArray[np.integer] | Sequence[int]) -> NDArray[np.intp]:
        """Return the pages that the store of a shard has under these numbers; -1: there is no such page."""
        among = None if self.n is None else self.pages_of(shard.number)
        return self._numbers.rows(np.asarray(numbers, np.int64), among)


class PageNumbers:
    """The numbers of pages in the database; 4 bytes a page, or 8 bytes after the first number of 2^31 or more.

    A number is given to one page only, in all processes and copies of the database. A page's row in memory is valid in
    one run only.

    Examples
    --------
    >>> numbers = PageNumbers()
    >>> numbers.put(np.array([0, 1, 2]), np.array([3, 70, 71]))
    >>> numbers.of([2, 0])
    array([71,  3])
    >>> numbers.rows(np.array([70, 3, 5]))
    array([ 1,  0, -1])

    >>> numbers.put(np.array([2]), np.array([2**40])); numbers.of([2, 0])
    array([1099511627776,             3])

    Each shard has numbers of its own, so with several shards `among` has the pages of one shard:

    >>> numbers.put(np.array([3, 1]), np.array([3, 70]))
    >>> numbers.rows(np.array([70, 3]), among=np.array([3, 1]))
    array([1, 3])
    """

    def __init__(self) -> None:
        self._numbers: NDArray[np.integer] = np.empty(0, np.int32)
        self._n = 0

    def reserve(self, n_pages: int) -> None:
        """Make room for more pages."""
        if n_pages > self._numbers.size:
            self._numbers = grown(self._numbers, max(n_pages, self._n + self._n // 4))

    def put(self, rows: NDArray[np.integer], numbers: NDArray[np.integer]) -> None:
        """Set the numbers of pages."""
        if rows.size:
            self._n = max(self._n, int(rows.max()) + 1)
            self.reserve(self._n)
            if int(numbers.max()) > np.iinfo(self._numbers.dtype).max:
                self._numbers = self._numbers.astype(np.int64)
            self._numbers[rows] = numbers

    def of(self, pages: NDArray[np.integer] | list[int]) -> NDArray[np.int64]:
        """Return the numbers of pages."""
        found: NDArray[np.int64] = self._numbers[pages].astype(np.int64)
        return found

    def item(self, page: int) -> int:
        """Return the number of one page."""
        number: int = self._numbers.item(page)
        return number

    def rows(self, numbers: NDArray[np.integer], among: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """Return the page with each of these numbers; -1 if there is no such page.

        Parameters
        ----------
        numbers : ndarray of int, shape (n,)
        among : ndarray of int, shape (m,), optional
            The pages to look among, in O(m log m). None: all pages, whose numbers must ascend, in O(n log m).
        """
        if among is None:
            known, order = self._numbers[: self._n], None
        else:
            order = among[np.argsort(self._numbers[among])]
            known = self._numbers[order]
        if not known.size:
            return np.full(len(numbers), -1)
        # Without the cast to the same type, all known numbers would be copied. A number that is too large for this type
        # cannot be one of the known numbers.
        at = np.minimum(known.searchsorted(numbers.astype(known.dtype)), known.size - 1)
        return np.where(known[at] == numbers, at if order is None else order[at], -1)
