"""Measuring: read the truth log, while it grows or afterwards, and compute freshness exactly."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any


@dataclass
class SitemapTruth:
    """The true quality of one host's sitemaps, over pages that the client had fetched before.

    The client gets an announcement when its sitemap is served. The announcement is true if it comes from a change that
    the client has not fetched, and that no earlier announcement reported.
    """

    n_announcements: int = 0
    n_true: int = 0
    n_changes: int = 0
    n_told: int = 0
    n_heard_first: int = 0
    n_seen_first: int = 0

    @property
    def precision(self) -> float | None:
        """Share of the announcements that were true; None without announcements."""
        return self.n_true / self.n_announcements if self.n_announcements else None

    @property
    def recall(self) -> float | None:
        """Share of the changes that the sitemap announces, sooner or later; None without changes."""
        return self.n_told / self.n_changes if self.n_changes else None

    @property
    def recall_in_time(self) -> float | None:
        """Share of the changes that were announced before the client saw them; None without such changes.

        A crawl can learn only this share, and only these announcements help it: later ones report what it has seen.
        """
        n_learned = self.n_heard_first + self.n_seen_first
        return self.n_heard_first / n_learned if n_learned else None


@dataclass
class PageTruth:
    """The state of one page, and the client's copy of it."""

    host: str
    url: str
    alive: bool
    version: int = 0
    held: int | None = None  # the version of the client's last 200; None: it has no copy
    n_told: int = 0  # changes since the last fetch that the sitemap reports, and how many of these were announced
    n_heard: int = 0
    n_seen: int = 0  # number of changes up to the last fetch: the version that it saw

    @property
    def fresh(self) -> bool:
        """Whether the client's copy equals the page."""
        return self.alive and self.held == self.version


@dataclass
class Truth:
    """A site's truth log and the figures computed from it.

    Attributes
    ----------
    steps
        (time, fresh pages, living pages) after every event, in the order of time: freshness is constant in between.
    statuses
        Numbers of requests by kind (``page``, ``sitemap``, ``robots``, ``other``) and by status.
    arrivals
        Times at which requests arrived, POSIX seconds.
    asked
        (arrived, answered, host, agent) of every request, in the order of the answers.
    change_times, first_visit_times
        Times of the fetches that brought a new version of a page fetched before, and of those that brought the first.
    """

    path: Path
    epoch: float = 0.0
    pages: dict[int, PageTruth] = field(default_factory=dict)
    steps: list[tuple[float, int, int]] = field(default_factory=list)
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    arrivals: list[float] = field(default_factory=list)
    asked: list[tuple[float, float, str, str]] = field(default_factory=list)
    change_times: list[float] = field(default_factory=list)
    first_visit_times: list[float] = field(default_factory=list)
    forbidden: int = 0
    sitemaps: dict[str, SitemapTruth] = field(default_factory=dict)
    _offset: int = 0
    _n_fresh: int = 0
    _n_alive: int = 0

    def read(self) -> Truth:
        """Read the lines written since the last call; an unfinished last line is left for the next call."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self._take(json.loads(line))
        return self

    def freshness_now(self) -> float:
        """Return the share of living pages whose copy was fresh at the last event."""
        return self._n_fresh / self._n_alive if self._n_alive else 0.0

    def freshness(self, start: float, end: float) -> float:
        """Return freshness averaged over the time from start to end (POSIX seconds), exactly.

        Raises
        ------
        ValueError
            If the window is empty.
        """
        if not start < end:
            raise ValueError(f"the window must not be empty, got start={start} and end={end}")
        total, since, share = 0.0, start, 0.0
        for time, n_fresh, n_alive in self.steps:
            if time > since:
                total += share * (min(time, end) - since)
                since = min(time, end)
            if time >= end:
                break
            share = n_fresh / n_alive if n_alive else 0.0
        return (total + share * (end - since)) / (end - start)

    def series(self, start: float, end: float, interval: float) -> list[tuple[float, float]]:
        """Return (seconds since start, freshness averaged over the interval before) for a picture."""
        n = int((end - start) / interval + 1e-9)
        edges = [start + i * interval for i in range(n + 1)]
        return [(right - start, self.freshness(left, right)) for left, right in pairwise(edges)]

    def rate(self, start: float, end: float) -> float:
        """Return the requests per second that arrived from start to end."""
        return self.n_requests(start, end) / (end - start)

    def n_requests(self, start: float, end: float) -> int:
        """Return the number of requests that arrived from start to end."""
        return sum(start <= time < end for time in self.arrivals)

    def n_status(self, status: int) -> int:
        """Return the number of requests for pages answered with this status."""
        return self.statuses["page", status]

    def _take(self, line: dict[str, Any]) -> None:
        kind = line["kind"]
        if kind == "site":
            self.epoch = line["epoch"]
        elif kind == "page":
            self.pages[line["page"]] = PageTruth(line["host"], line["url"], line["alive"])
            self._n_alive += line["alive"]
        elif kind == "request":
            self._take_request(line)
        else:
            self._take_event(self.pages[line["page"]], kind, line)

    def _take_event(self, page: PageTruth, kind: str, line: dict[str, Any]) -> None:
        fresh, alive = page.fresh, page.alive
        page.version = line["version"]
        if kind == "change" and page.held is not None and (counts := self.sitemaps.get(page.host)) is not None:
            counts.n_changes += 1
            counts.n_told += line["told"]
            page.n_told += line["told"]
        if kind in ("born", "returned"):
            page.alive = True
        elif kind in ("gone", "moved"):
            page.alive = False
        self._step(line["time"], page.fresh - fresh, page.alive - alive)

    def _take_request(self, line: dict[str, Any]) -> None:
        path = line["path"]
        what = (
            "page"
            if "page" in line
            else "robots"
            if path == "/robots.txt"
            else "sitemap"
            if "sitemap" in path
            else "other"
        )
        self.statuses[what, line["status"]] += 1
        self.arrivals.append(line["arrived"])
        self.asked.append((line["arrived"], line["time"], line["host"], line["agent"]))
        self.forbidden += path.startswith("/private/")
        if "announced" in line:
            self._take_announcements(self.sitemaps.setdefault(line["host"], SitemapTruth()), line["announced"])
        if what == "page" and line["status"] in (200, 304):
            self._take_visit(self.pages[line["page"]], line)

    def _take_announcements(self, counts: SitemapTruth, numbers: list[int]) -> None:
        for page in (self.pages[number] for number in numbers):
            if page.held is not None:
                counts.n_announcements += 1
                counts.n_true += page.n_told > page.n_heard
                counts.n_heard_first += page.n_told - page.n_heard
                page.n_heard = page.n_told

    def _take_visit(self, page: PageTruth, line: dict[str, Any]) -> None:
        """Take in an answer that showed the page, or claimed that the client's copy was fresh."""
        fresh = page.fresh
        if page.held is not None and (counts := self.sitemaps.get(page.host)) is not None:
            counts.n_seen_first += line["version"] - page.n_seen - page.n_heard
        if line["before"] is None:
            self.first_visit_times.append(line["time"])
        elif line["held"] != line["before"]:
            self.change_times.append(line["time"])
        page.held, page.n_seen = line["held"], line["version"]
        page.n_told = page.n_heard = 0
        self._step(line["time"], page.fresh - fresh, 0)

    def _step(self, time: float, fresh: int, alive: int) -> None:
        self._n_fresh += fresh
        self._n_alive += alive
        self.steps.append((time, self._n_fresh, self._n_alive))
