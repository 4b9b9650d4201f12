"""Scrapy's per-host slots: may a host be asked now?"""

from __future__ import annotations

from scrapy.crawler import Crawler

from crawlsched.crawl.refresher import Refresher
from crawlsched.scrapy_versions import download_slot

__all__ = ["DownloaderSlots"]

# A busy host is asked again after this many seconds at the latest; the end of a visit to it is announced at once.
_BUSY_HOST_WAIT = 0.25
# So long before a delay is over the next request may go to Scrapy, which lets it go at its end, whatever slots come.
_WAITS_FOR_A_DELAY = 0.5


class DownloaderSlots:
    """May this host be asked now? By Scrapy's per-host download slots, our own count of visits, and what hosts said."""

    def __init__(self, crawler: Crawler, refresher: Refresher) -> None:
        self._crawler = crawler
        self._refresher = refresher
        self._hosts = refresher.hosts
        self._visits = refresher.visits
        self._concurrency = crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self.turned_away = False

    def free_at(self, host: int, now: float, own: bool = False) -> float:
        """Return the earliest time at which the host may be asked: `now` if it may be asked now.

        `own` says that one of the open visits to the host is the asker itself (a redirect or retry).
        """
        free = self._hosts.free_at(host, now, has_begun=own)
        if free <= now:
            free = self._downloader_free_at(self._hosts.names[host], self._visits.open_on(host) - own, now)
        if free > now:
            self.turned_away = True
        return free

    def _downloader_free_at(self, name: str, open_visits: int, now: float) -> float:
        slot = download_slot(self._crawler, name)
        concurrency = self._concurrency if slot is None else slot.concurrency
        if 0 < concurrency <= open_visits:
            return now + _BUSY_HOST_WAIT
        if slot is None:
            return now
        # What will be free before another slot comes is asked at this one, and Scrapy keeps the rest of the delay.
        seconds_left = slot.seconds_left - max(_WAITS_FOR_A_DELAY, 1.0 / self._refresher.rate.slots.rate)
        if seconds_left > 0:
            return now + seconds_left
        return now + _BUSY_HOST_WAIT if slot.is_full else now
