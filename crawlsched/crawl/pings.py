"""Pings: senders announce that pages have changed, and the planner takes these announcements over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.shard import Shard
from crawlsched.crawl.side_thread import STEP

__all__ = ["announce", "known_pages", "pinged", "signal"]


def known_pages(
    refresher: Refresher, urls: Iterable[str], shard: Shard | None = None
) -> tuple[NDArray[np.intp], list[str]]:
    """Return the pages with these URLs (if `shard` is given, only its pages), and the URLs without such a page."""
    of_page = refresher.collection.shards.of_page
    found = {url: _page_of(refresher, url) for url in urls}
    known = {url: page for url, page in found.items() if page >= 0 and shard in (None, of_page(page))}
    return np.array(sorted(set(known.values())), np.intp), [url for url in found if url not in known]


def _page_of(refresher: Refresher, url: str) -> int:
    try:
        return refresher.collection.index.page(refresher.request_fingerprint(url))
    except ValueError:  # no request can be made of the URL, so it is no page
        return -1


def announce(refresher: Refresher, pages: NDArray[np.intp], sender: str, now: float) -> int:
    """Announce that pages may have changed; return how many announcements count.

    A second announcement of a page by the same sender before its next crawl is no new evidence, and does not count.
    """
    if not pages.size:
        return 0
    source = refresher.admission.source_of("ping", sender, now).source
    planner = refresher.planner
    planner.covered(pages, source, now)
    fresh = np.array([page for page in pages.tolist() if not planner.announced_by(page, source)], np.intp)
    refresher.count("crawlsched/change_signals/received", int(pages.size))
    refresher.count("crawlsched/change_signals/repeated", int(pages.size - fresh.size))
    if not fresh.size:
        return 0
    taken = planner.signalled(fresh, source, now)
    refresher.count("crawlsched/change_signals/taken", taken)
    refresher.collection.unsaved.pages(fresh, now)
    return taken


def signal(refresher: Refresher, urls: Sequence[str], sender: str, now: float) -> int:
    """Announce that pages of any process may have changed; return how many announcements count in this process."""
    if refresher.sharing is not None:
        return refresher.sharing.signal(urls, sender, now)
    pages, _ = known_pages(refresher, urls)
    return announce(refresher, pages, sender, now)


def pinged(refresher: Refresher, urls: tuple[str, ...], sender: str) -> Iterator[None]:
    """Take a ping over, some URLs at a time."""
    for start in range(0, len(urls), STEP):
        pages, unknown = known_pages(refresher, urls[start : start + STEP])
        refresher.count("crawlsched/change_signals/unknown_url", len(unknown))
        announce(refresher, pages, sender, refresher.clock())
        yield
