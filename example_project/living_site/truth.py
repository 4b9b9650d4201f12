"""The truth, logged by the site as it happens: one JSON object per line, in the order of time, flushed at once.

Lines by their ``kind``:

- ``site``: seed, epoch, port, addresses; the first line.
- ``page``: one per address that can be fetched, with ``alive`` at the epoch.
- ``change``, ``gone``, ``returned``, ``moved``, ``born``: an event of a page, with its ``version`` after that; a
  change also has ``told``: whether the host's sitemap announces it, at once or later.
- ``request``: every request answered: ``arrived`` and ``time`` (answered), host, path, status, and the ``agent`` that
  the client names; for a page also its ``version``, and the versions that the client held ``before`` and
  afterwards (``held``: that of its last 200; a 304 does not change it; null: no copy); for a sitemap the pages
  ``announced``: their ``lastmod`` differs from the one served before, and is later than the client's last fetch.

The site treats all clients as one, however many processes there are.
"""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

from living_site.site import Site


class TruthLog:
    """Write the truth, and remember the client's version of every page."""

    def __init__(self, path: Path, site: Site, epoch: float, port: int) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1)  # flushed at every line
        self._site, self._epoch = site, epoch
        self._held: dict[int, int] = {}
        self._fetched: dict[int, float] = {}
        self._told: dict[tuple[str, str], dict[int, float]] = {}
        self._events = sorted(
            (time, page.number, name, page.timeline.version(time))
            for page in site.pages
            for time, name in page.timeline.events()
        )
        self._n_written = 0
        addresses = [host.address for host in site.cast]
        self._write(kind="site", seed=site.seed, epoch=epoch, port=port, addresses=addresses)
        for page in site.pages:
            url = f"http://{page.host.address}:{port}{page.path}"
            self._write(
                kind="page", page=page.number, host=page.host.address, url=url, alive=page.timeline.is_alive(0.0)
            )

    def catch_up(self, at: float) -> None:
        """Log all events of pages up to a time (seconds since the epoch)."""
        while self._n_written < len(self._events) and self._events[self._n_written][0] <= at:
            time, number, name, version = self._events[self._n_written]
            facts = {"told": self._site.pages[number].is_told(time)} if name == "change" else {}
            self._write(kind=name, time=round(self._epoch + time, 4), page=number, version=version, **facts)
            self._n_written += 1

    def request(self, arrived: float, at: float, **facts: Any) -> None:
        """Log a request that was answered, after all earlier events."""
        self.catch_up(at)
        self._write(kind="request", arrived=round(self._epoch + arrived, 4), time=round(self._epoch + at, 4), **facts)

    def visited(self, number: int, status: int, version: int, at: float) -> dict[str, Any]:
        """Return the facts about an answer for a page, and remember the client's version."""
        before = self._held.get(number)
        if status in (200, 304):
            self._fetched[number] = at
        if status == 200:
            self._held[number] = version
        return {"page": number, "version": version, "before": before, "held": self._held.get(number)}

    def announced(self, address: str, path: str, said: dict[int, float]) -> list[int]:
        """Return the pages whose lastmod differs from this sitemap's last one; first sight announces nothing.

        A date before the client's last fetch of the page announces nothing either.
        """
        told = self._told.setdefault((address, path), {})
        differing = [number for number, stamp in said.items() if told.get(number, stamp) != stamp]
        told.update(said)
        return [number for number in differing if said[number] > self._fetched.get(number, -inf)]

    def close(self) -> None:
        """End the log."""
        self._file.close()

    def _write(self, **line: Any) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
