"""Withheld: what does not reach the spider, counted by host and reason. Logged once for each host and reason."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from crawlsched.change_detection.limits import REMEMBERED

__all__ = ["REASONS", "Withheld"]

logger = logging.getLogger(__name__)

#: Why something may not reach the spider, and what that means.
REASONS: dict[str, str] = {
    "wrong_page": "look like a page that the host serves in the place of others",
    "template": "were changed only as all pages of their site were",
    "flapping": "go back and forth between contents that were delivered",
    "noise": "were changed only where pages of their kind are noisy",
    "minimum_change": "were changed by less than CRAWLSCHED_MIN_CHANGE",
    "recipe": "are read by another recipe than before",
    "forgotten": "were forgotten on purpose (crawlsched forget)",
    "max_pages": "are more than CRAWLSCHED_PAGES or CRAWLSCHED_MAX_PAGES lets in",
    "known": "are known and were asked for again; they are visited when that is worth it",
    "truncated": "were cut short after an earlier body had been delivered, and are asked for again",
    "robots": "are forbidden by the robots.txt of their host (ROBOTSTXT_OBEY), which is read again in time",
    "not_data": "cannot be written down, and are crawled once",
    "credentials": "carried credentials that were struck out of the database, so the spider has to ask for them",
    "not_the_page": "are not the page they should be, as the spider's callback said",
}
_SAID = "Pages of %s %s, so they are not delivered (%d so far, such as %s; `crawlsched withheld` has all)%s."


class Withheld:
    """Counts what did not reach the spider, for the `allowed` reasons of CRAWLSCHED_WITHHOLD.

    Examples
    --------
    >>> withheld = Withheld({"wrong_page"})
    >>> withheld.may("flapping"), withheld.may("wrong_page")
    (False, True)
    >>> withheld.note("example.com", "wrong_page", "https://example.com/a", now=7.0)
    >>> withheld.of("example.com")["wrong_page"]["n"]
    1
    """

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = allowed
        self._hosts: dict[str, dict[str, dict[str, Any]]] = {}
        self._said: set[tuple[str, str]] = set()
        self._not_written: set[str] = set()
        #: How often something was withheld since this crawl began; requests for known pages do not count.
        self.n_noted = 0

    def may(self, reason: str) -> bool:
        """Whether this reason may hold a delivery back."""
        return reason in self._allowed

    def load(self, host: str, kept: Mapping[str, Any]) -> None:
        """Take over what an earlier crawl has counted."""
        self._hosts[host] = {reason: dict(row) for reason, row in kept.items() if reason in REASONS}

    def note(self, host: str, reason: str, url: str, now: float) -> None:
        """Note a response that does not reach the spider; `reason` is a key of `REASONS`."""
        row = self._hosts.setdefault(host, {}).setdefault(reason, {"n": 0, "since": now, "last_at": now, "urls": []})
        row["n"] += 1
        self.n_noted += reason != "known"
        row["last_at"] = now
        row["urls"] = [[url, now], *(pair for pair in row["urls"] if pair[0] != url)][:REMEMBERED]
        self._not_written.add(host)
        if (host, reason) not in self._said:
            self._said.add((host, reason))
            level = logging.DEBUG if reason == "known" else logging.INFO
            off = f"; CRAWLSCHED_WITHHOLD = {{{reason!r}: False}} turns that off" if self.may(reason) else ""
            logger.log(level, _SAID, host, REASONS[reason], row["n"], url, off)

    def of(self, host: str) -> dict[str, dict[str, Any]]:
        """Return what is known of a host, as `load` takes it."""
        return self._hosts.get(host, {})

    def take_unwritten(self) -> set[str]:
        """Return the hosts with unwritten counts, and take these counts as written."""
        hosts, self._not_written = self._not_written, set()
        return hosts
