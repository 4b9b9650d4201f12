"""Finds hosts most of whose pages fail, and logs them. When a page answers again, others are tried."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.crawl.collection import Collection
from crawlsched.pages import LIVE, STATE_NAMES

__all__ = ["FailingHosts"]

logger = logging.getLogger(__name__)

# A host fails only if at least this number of its pages fail.
_LEAST = 3
# For each page that answers again, this number of other failing pages of its host are tried.
_ASKED_WITH_IT = 8
# A step checks this number of rows, which takes less than a millisecond. After a check of n steps, the next check
# waits for n seconds.
_AT_ONCE = 2**15


class FailingHosts:
    """Find out from time to time which hosts fail.

    A host begins to fail when it rests because of errors, or when more than half of its pages fail. It has
    recovered when no more than a third of its pages fail.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self.answers: dict[int, str] = {}  # by host, how one of its pages failed last
        self.states = dict.fromkeys(STATE_NAMES[1:], 0)  # how many pages were in each state at the last look
        self.returned: Counter[int] = Counter()  # by host, how many pages have answered again since the last look
        self.next_look = 0.0

    def look(self, now: float) -> Iterator[None]:
        """Count the pages that fail by host, in steps of less than a millisecond."""
        pages = self._collection.planner.pages
        asked = {host: n * _ASKED_WITH_IT for host, n in self.returned.items()}  # how many further pages to ask
        self.returned.clear()
        states = np.zeros(len(STATE_NAMES), int)
        self.next_look = now + pages.n / _AT_ONCE
        # The number of pages with a copy, by state (live or failing) and host. `exist` says which hosts have pages.
        n, counts = pages.n, np.zeros((len(STATE_NAMES), len(self._collection.hosts)), np.int32)
        exist = np.zeros(counts.shape[1], np.bool_)
        one = np.int32(1)  # with another type than that of `counts`, `np.add.at` takes thirty times as long
        for start in range(0, n, _AT_ONCE):
            part = slice(start, min(start + _AT_ONCE, n))
            known = pages.host[part] < exist.size  # a free row may have got a page of a newer host
            state, hosts = pages.state[part][known], pages.host[part][known]
            states += np.bincount(state, minlength=states.size)
            exist[hosts[state > 0]] = True
            np.add.at(counts[LIVE], hosts[state == LIVE], one)
            fail = start + np.flatnonzero(known)[state > LIVE]
            fail = fail[pages.failing(fail)]
            np.add.at(counts, (pages.state[fail], pages.host[fail]), one)
            if asked:
                self._ask(fail[np.isin(pages.host[fail], list(asked))], asked, now)
            yield
        self.states = dict(zip(STATE_NAMES[1:], states[1:].tolist(), strict=True))
        n_pages = counts.sum(axis=0)
        n_failing = n_pages - counts[LIVE]
        fails = self._collection.hosts.fails
        for host in np.flatnonzero(n_failing >= _LEAST).tolist():
            if 2 * n_failing[host] > n_pages[host] or fails(host):
                self._fails(host, counts[:, host], now)
        for host in [host for host in self._collection.failing_hosts if host < exist.size]:
            if n_pages[host] and not fails(host) and 3 * n_failing[host] <= n_pages[host]:
                self._answers(host, int(n_failing[host]), int(n_pages[host]), now)
            elif not exist[host]:  # forgotten
                self._collection.failing_hosts.pop(host)
                self._collection.save_host(host, now)

    def _fails(self, host: int, counts: Any, now: float) -> None:
        known = self._collection.failing_hosts.get(host)
        states = {name: int(n) for name, n in zip(STATE_NAMES, counts, strict=True) if n}
        since = now if known is None else known["since"]
        found = {"since": since, "answer": self.answers.get(host, "not the pages"), "pages": states}
        if known == found:
            return
        self._collection.failing_hosts[host] = found
        self._collection.save_host(host, now)
        if known is None:
            n_pages = sum(states.values())
            logger.warning(
                "%s fails (%s): %d of its %d pages fail now. It is asked ever more rarely until one of them answers; "
                "`crawlsched status` shows its state.",
                self._collection.hosts.names[host],
                found["answer"],
                n_pages - states.get("live", 0),
                n_pages,
            )

    def _answers(self, host: int, n_failing: int, n_pages: int, now: float) -> None:
        known = self._collection.failing_hosts.pop(host)
        self._collection.save_host(host, now)
        logger.info(
            "%s answers again, after %.3g minutes: %d of its %d pages still fail.",
            self._collection.hosts.names[host],
            (now - known["since"]) / 60.0,
            n_failing,
            n_pages,
        )

    def _ask(self, failing: IndexArray, most: dict[int, int], now: float) -> None:
        """Let some failing pages of each host be asked soon, and count them off."""
        planner, pages = self._collection.planner, self._collection.planner.pages
        waiting = failing[pages.not_before[failing] > now]
        for host in np.unique(pages.host[waiting]).tolist():
            some = waiting[pages.host[waiting] == host][: most[host]]
            most[host] -= some.size
            planner.ask_soon(some, now)
