"""Pages: the data of all pages, with a numpy column for each fact, and without a Python object for each page."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from crawlsched.columns.growing import NumberColumn, grown

__all__ = [
    "ERROR",
    "FREE",
    "GONE",
    "LAST_TRIES",
    "LIVE",
    "MOVED",
    "NEW",
    "REFUSED",
    "STATE_NAMES",
    "Pages",
    "counted",
    "counted_in_parts",
]

#: Names of the states, by number.
STATE_NAMES = ("free", "new", "live", "gone", "moved", "error", "refused")
# FREE: the row was never used, or its page was forgotten. NEW: the page is known, but was never crawled. LIVE: the page
# was crawled, and there is a copy. The last visit decides between the other states. GONE: there is no such page (404,
# 410). MOVED: the page redirects to another URL for good. ERROR: the visit failed, and the page is tried again later.
# REFUSED: the request was not sent (robots.txt, off site).
FREE, NEW, LIVE, GONE, MOVED, ERROR, REFUSED = range(len(STATE_NAMES))

_NEVER = -np.inf
#: Up to this number of visits in a row without content, a page counts as failing. These visits take most of a day.
LAST_TRIES = 10

# The name and type of each column, its value in an empty row, and whether it is a `NumberColumn`. Such a column has
# small numbers in most collections.
_COLUMNS: tuple[tuple[str, str, float, bool], ...] = (
    ("state", "u1", FREE, False),
    ("importance", "f4", 0.0, False),
    ("crawled_at", "f8", _NEVER, False),
    ("host", "i4", 0, True),
    ("n_crawls", "u4", 0, True),
    ("n_changes", "u4", 0, True),
    ("n_signals", "u2", 0, False),
    ("n_signals_total", "u4", 0, True),
    ("source", "i4", -1, True),
    ("further", "i4", 0, False),
    ("part", "u2", 0, False),
    ("signalled_since", "f8", 0.0, False),
    ("first_seen", "f8", 0.0, False),
    ("not_before", "f8", 0.0, False),
    ("n_errors", "u1", 0, False),
    ("rule", "u1", 0, False),
    ("request_digest", "i8", 0, False),
    ("marks", "u2", 0, False),
)
_NUMBERS = tuple(name for name, _, _, is_small in _COLUMNS if is_small)
_ARRAYS = {name: (dtype, empty) for name, dtype, empty, is_small in _COLUMNS if not is_small}
_EMPTY = {name: empty for name, _, empty, _ in _COLUMNS}


class Pages:
    """The columns of all pages; a page is a row number.

    Rows are used in order and never reused, so that a row means the same page as long as a process runs. Full columns
    grow by a quarter, in place (`crawlsched.columns.growing`). A row takes no memory before it is written. A page takes
    41 bytes, and 26 more if pages are announced, new or failing, or have rules.

    Attributes
    ----------
    crawled_at : ndarray of float64
        POSIX seconds of the last visit that brought content; -inf if there was none. A visit also counts if it showed
        that the page has moved, or that a page without content so far is gone.

    Examples
    --------
    >>> pages = Pages()
    >>> pages.add(host=np.array([0, 0, 1]), now=100.0)
    array([0, 1, 2])
    >>> pages.state[:3], pages.crawled_at[:3]
    (array([1, 1, 1], dtype=uint8), array([-inf, -inf, -inf]))
    """

    state: npt.NDArray[np.uint8]  # one of the constants of this module
    importance: npt.NDArray[np.float32]  # the weight of a fresh copy
    crawled_at: npt.NDArray[np.float64]
    host: NumberColumn  # row number of the host
    n_crawls: NumberColumn  # visits that brought content; `n_changes`: how many of them found a change
    n_changes: NumberColumn
    n_signals: npt.NDArray[np.uint16]  # ChangeSignals since the last visit that brought content
    n_signals_total: NumberColumn  # ChangeSignals since `signalled_since`
    source: NumberColumn  # the first source that covers the page; -1: no source does
    further: npt.NDArray[np.int32]  # the place of the data on further sources, counted from 1; 0: no further source
    # The number of the part of the site that has the page (`crawlsched.change_signals.part_number`).
    part: npt.NDArray[np.uint16]
    # When a source first covered the page, POSIX seconds. If no source covers it, the value is 0, and nan in a store.
    signalled_since: npt.NDArray[np.float64]
    first_seen: npt.NDArray[np.float64]  # when the page became known; 0 for a page that the store had as crawled
    not_before: npt.NDArray[np.float64]  # the earliest time of the next visit, POSIX seconds; 0: any time
    n_errors: npt.NDArray[np.uint8]  # the number of visits in a row that brought no content
    rule: npt.NDArray[np.uint8]  # the rule for the page's crawl intervals, counted from 1; 0: no rule
    # The digest of the page's request (`crawlsched.crawl.request_templates.request_digest`); 0: not known.
    request_digest: npt.NDArray[np.int64]
    marks: npt.NDArray[np.uint16]  # the flags of the page (`crawlsched.pages.marks`)

    #: Names of the columns, in order.
    names = tuple(_EMPTY)
    #: The types of the columns.
    types: ClassVar = {name: dtype for name, dtype, _, _ in _COLUMNS}

    def __init__(self, capacity: int = 1024) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1 row, got {capacity!r}.")
        #: The number of rows used so far, including those of forgotten pages. It is the row of the next page.
        self.n = 0
        self.capacity = 0
        for name, dtype, empty, is_small in _COLUMNS:
            setattr(self, name, NumberColumn(dtype, int(empty)) if is_small else np.empty(0, dtype))
        self.reserve(capacity)

    def __len__(self) -> int:
        """Count the pages that are not forgotten; O(n)."""
        return int(np.count_nonzero(self.state[: self.n]))

    def reserve(self, capacity: int) -> None:
        """Make room for at least `capacity` rows, if necessary with longer columns; mostly O(1), seldom O(n)."""
        if capacity <= self.capacity:
            return
        size = max(capacity, self.capacity + self.capacity // 4)
        for name in _NUMBERS:
            getattr(self, name).lengthen(size)
        for name in _ARRAYS:
            setattr(self, name, grown(getattr(self, name), size))
        self.capacity = size

    def _begin(self, stop: int) -> None:
        # Rows take no memory before they are written, so only rows with pages are written.
        if stop > self.n:
            self.reserve(stop)
            for name, (_, empty) in _ARRAYS.items():
                if empty != 0:
                    getattr(self, name)[self.n : stop] = empty
            self.n = stop

    def add(
        self,
        host: npt.ArrayLike,
        now: float,
        importance: npt.ArrayLike = 1.0,
        n: int | None = None,
        part: npt.ArrayLike = 0,
    ) -> npt.NDArray[np.intp]:
        """Return the rows of new pages, or raise ValueError and add no page; O(1) a page.

        `n` is the number of pages if neither `host` nor `importance` is an array. `part` is a part of the site.
        """
        weights = check_importance(importance)
        hosts = np.asarray(host)
        if hosts.dtype.kind not in "iu" or (hosts.size and int(hosts.min()) < 0):
            raise ValueError(f"host must hold row numbers of hosts, integers from 0, got {host!r}.")
        lengths = {column.size for column in (hosts, weights) if column.ndim} | ({n} if n is not None else set())
        if len(lengths) > 1:
            raise ValueError(f"host, importance and n must agree on the number of pages, got {sorted(lengths)}.")
        rows = np.arange(self.n, self.n + (lengths.pop() if lengths else 1))
        new = slice(self.n, self.n + rows.size)
        self._begin(new.stop)
        self.state[new] = NEW
        self.host[new] = hosts
        self.importance[new] = weights
        self.part[new] = part
        self.first_seen[new] = now
        return rows

    def set_rows(self, rows: npt.NDArray[np.intp], columns: dict[str, npt.NDArray[Any]]) -> None:
        """Fill distinct rows from the columns of a store, and make room if necessary; O(1) a page."""
        if not rows.size:
            return
        if int(rows.min()) < 0:
            raise ValueError(f"page must hold row numbers from 0, got {int(rows.min())}.")
        begun = int(rows.min()) < self.n
        self._begin(int(rows.max()) + 1)
        given = {name: columns[name] for name in self.names if name in columns}
        if "signalled_since" in given:
            given["signalled_since"] = np.nan_to_num(given["signalled_since"])
        for name, column in given.items():
            # Unwritten rows take no memory, so a column is not written if all pages have the value of an empty row.
            if begun or np.any(column != _EMPTY[name]):
                getattr(self, name)[rows] = column

    def reached(self, page: int) -> None:
        """Note that a visit has reached the page: reset its errors and its wait. O(1)."""
        # Nothing is written if both are zero.
        if self.not_before.item(page) or self.n_errors.item(page):
            self.not_before[page] = self.n_errors[page] = 0

    def failing(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Return which pages have a copy, but failed at their last visits; O(n)."""
        away: npt.NDArray[np.bool_] = np.isin(self.state[rows], (ERROR, REFUSED, GONE)) & (self.n_crawls[rows] > 0)
        away[away] = self.n_errors[rows[away]] <= LAST_TRIES
        return away

    def free(self, rows: npt.NDArray[np.intp]) -> None:
        """Forget pages; their rows stay empty permanently. O(1) a page."""
        for name, empty in _EMPTY.items():
            getattr(self, name)[rows] = empty

    def columns(self, rows: npt.NDArray[np.intp]) -> dict[str, npt.NDArray[Any]]:
        """Return copies of some pages' columns, by name, with each value in the form in which a store has it; O(n)."""
        copied = {name: getattr(self, name)[rows] for name in self.names}
        copied["signalled_since"][copied["signalled_since"] == 0.0] = np.nan
        return copied


def check_importance(importance: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return importances as an array, or raise `ValueError`."""
    weights = np.asarray(importance, dtype=np.float64)
    # In float32 larger values would become infinite.
    if not bool(((weights >= 0) & (weights <= 3e38)).all()):
        raise ValueError(f"importance must be a weight that is not negative and at most 3e38, got {importance!r}.")
    return weights


def counted_in_parts(pages: Pages, at_once: int = 65_536) -> Generator[None, None, dict[str, Any]]:
    """Count pages in a generator that yields after each part, which takes about a millisecond; O(n).

    The result has three counts. ``states`` has the number of pages by the name of their state. ``sources`` has the
    number of pages by their first source, or -1. ``hosts`` is the number of hosts that have a page.
    """
    n = pages.n
    states, sources, has_pages = np.zeros(len(STATE_NAMES), int), np.zeros(1, int), np.zeros(1, bool)
    for start in range(0, n, at_once):
        rows = slice(start, min(start + at_once, n))
        state = pages.state[rows]
        known = state != FREE
        states += np.bincount(state, minlength=states.size)
        found = np.bincount(pages.source[rows][known] + 1, minlength=sources.size)
        found[: sources.size] += sources
        sources, hosts = found, pages.host[rows][known]
        if hosts.size and (most := int(hosts.max())) >= has_pages.size:
            has_pages = np.append(has_pages, np.zeros(most + 1 - has_pages.size, bool))
        has_pages[hosts] = True
        yield
    return {
        "states": dict(zip(STATE_NAMES[1:], states[1:].tolist(), strict=True)),
        "sources": {source - 1: count for source, count in enumerate(sources.tolist()) if count},
        "hosts": int(np.count_nonzero(has_pages)),
    }


def counted(pages: Pages) -> dict[str, Any]:
    """Count pages like `counted_in_parts`, but in one step.

    >>> pages = Pages()
    >>> _ = pages.add(host=np.array([0, 0, 7]), now=100.0)
    >>> counts = counted(pages)
    >>> counts["states"]["new"], counts["sources"], counts["hosts"]
    (3, {-1: 3}, 2)
    """
    parts = counted_in_parts(pages)
    while True:
        try:
            next(parts)
        except StopIteration as end:
            counts: dict[str, Any] = end.value
            return counts
