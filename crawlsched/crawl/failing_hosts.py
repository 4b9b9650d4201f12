"""Hosts most of whose pages fail: the log names beginning and end; when one page is back, others are asked for."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from crawlsched.crawl.collection import Collection
from crawlsched.pages import LIVE, STATE_NAMES

__all__ = ["FailingHosts"]

logger = logging.getLogger(__name__)

# Fewer pages that fail say nothing about their host.
_LEAST = 3
# Each page that is back lets this number of others of its host go, so that few go if it was the only one.
_ASKED_WITH_IT = 8
# Rows that a step of a millisecond looks at. Looks are at least one second apart for each step, so they cost little.
_AT_ONCE = 2**15


class FailingHosts:
    """Look now and then, if pages failed or came back, which hosts fail.

    A host fails once it rests for its errors, or once more than half of its pages fail. It fails until at most a third
    of them do.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self.have_news = True  # whether pages have failed or come back since the last look
        self.answers: dict[int, str] = {}  # by host, how a page of it failed last
        self.states = dict.fromkeys(STATE_NAMES[1:], 0)  # how many pages were in each state at the last look
        self._returned: Counter[int] = Counter()
        self._next_look = 0.0

    def returned(self, host: int) -> None:
        """A page of a host is back."""
        self.have_news = True
        self._returned[host] += 1

    def is_due(self, now: float) -> bool:
        """Whether it is time for a look."""
        return self.have_news and now >= self._next_look

    def look(self, now: float) -> Iterator[None]:
        """Count the pages that fail by host, in steps of a millisecond."""
        pages, returned = self._collection.planner.pages, self._returned
        states = np.zeros(len(STATE_NAMES), int)
        self.have_news, self._returned = False, Counter()
        self._next_look = now + pages.n / _AT_ONCE
        # By state and host, the pages that had a copy and are live or fail; and which hosts have any page.
        counts = np.zeros((len(STATE_NAMES), len(self._collection.hosts)), np.int32)
        exist = np.zeros(counts.shape[1], np.bool_)
        wait: dict[int, list[int]] = {host: [] for host in returned}
        for start in range(0, pages.n, _AT_ONCE):
            rows = np.arange(start, min(start + _AT_ONCE, pages.n))
            fail, hosts = pages.failing(rows), pages.host[rows]
            inside = hosts < exist.size  # others are new since
            exist[hosts[inside & (pages.state[rows] > 0)]] = True
            states += np.bincount(pages.state[rows], minlength=states.size)
            some = inside & (fail | (pages.state[rows] == LIVE))
            np.add.at(counts, (pages.state[rows][some], hosts[some]), 1)
            for host in returned:
                wait[host] += rows[fail & (hosts == host)].tolist()
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
        for host, n in returned.items():
            self._ask(wait[host], n * _ASKED_WITH_IT, now)

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
                "%s fails (%s): %d of its %d pages by now. It is asked ever more rarely until one of them is back; "
                "`crawlsched status` says how it stands.",
                self._collection.hosts.names[host],
                found["answer"],
                n_pages - states.get("live", 0),
                n_pages,
            )

    def _answers(self, host: int, n_failing: int, n_pages: int, now: float) -> None:
        known = self._collection.failing_hosts.pop(host)
        self._collection.save_host(host, now)
        logger.info(
            "%s answers again, after %.3g minutes: %d of its %d pages fail still.",
            self._collection.hosts.names[host],
            (now - known["since"]) / 60.0,
            n_failing,
            n_pages,
        )

    def _ask(self, pages: list[int], most: int, now: float) -> None:
        planner = self._collection.planner
        wait = [page for page in pages if not planner.in_flight(page) and planner.pages.not_before.item(page) > now]
        if wait:
            planner.ask_soon(np.array(wait[:most]), now)
