"""The first minute in the log: a line says where a crawl begins, and another line, after a minute, how it goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crawlsched.settings import format_bandwidth

__all__ = ["FIRST_MINUTE", "beginning", "minute"]

#: Seconds after which the second line is logged.
FIRST_MINUTE = 60.0
# Outcomes of visits that found no page.
_FAILED = ("error", "refused", "gone", "wrong", "dropped")
# The line mentions a cause only if it took at least this share of the slots.
_WORTH_TELLING = 0.05


def beginning(
    collection: str, database: str, n_pages: int, n_copies: int, bandwidth: float, one_pass: bool | int
) -> str:
    """Say where a crawl begins, how fast it goes, how to look inside, and how it ends.

    >>> print(beginning("news", "sqlite:///news.db", 1200, 1000, 5.0, False))
    Collection 'news' in sqlite:///news.db: 1,200 pages are known, 1,000 with a copy. It is kept fresh at 5/s
    until you stop it; `crawlsched status` shows how it goes.
    """
    known = f"{n_pages:,} pages are known, {n_copies:,} with a copy" if n_pages else "no page is known yet"
    if one_pass is True:
        end = "until every page was tried once"
    elif one_pass:
        end = f"for {one_pass:,} visits"
    else:
        end = "until you stop it"
    return (
        f"Collection {collection!r} in {database}: {known}. It is kept fresh at {format_bandwidth(bandwidth)} {end}; "
        "`crawlsched status` shows how it goes."
    )


def minute(stats: Mapping[str, Any], n_pages: int, n_copies: int, n_withheld: int, n_missing: float = 0.0) -> str:
    """Say what the first minute was spent on, and what leaves bandwidth unused.

    `n_missing` is the number of crawls a second by which CRAWLSCHED_PAGES exceeds the bandwidth.

    >>> slots = {"used": 280, "no_free_host": 20}
    >>> print(minute({f"crawlsched/slots/{name}": n for name, n in slots.items()}, 900, 250, 0))
    The first minute: 280 of 300 slots used, 900 pages known, 250 with a copy, 0 changes found. In 20
    slots no host was free: DOWNLOAD_DELAY, CONCURRENT_REQUESTS_PER_DOMAIN, Crawl-delay or Retry-After limit this crawl.
    """

    def count(name: str) -> int:
        return int(stats.get(f"crawlsched/{name}", 0))

    used, idle, busy = count("slots/used"), count("slots/idle"), count("slots/no_free_host")
    slots = used + idle + busy
    words = [
        f"The first minute: {used:,} of {slots:,} slots used, {n_pages:,} pages known, {n_copies:,} with a copy, "
        f"{count('changes_found'):,} changes found."
    ]
    if not n_pages:
        words.append("The crawl waits for a page: give the spider start_urls, or name a page with a command or a ping.")
    if n_withheld:
        words.append(f"{n_withheld:,} deliveries were withheld: `crawlsched withheld` lists them.")
    if busy > _WORTH_TELLING * slots:
        words.append(
            f"In {busy:,} slots no host was free: DOWNLOAD_DELAY, CONCURRENT_REQUESTS_PER_DOMAIN, Crawl-delay or "
            "Retry-After limit this crawl."
        )
    if n_missing > 0.0:
        words.append(
            f"CRAWLSCHED_PAGES asks for {n_missing:.3g} crawls a second more than CRAWLSCHED_BANDWIDTH has: pages will "
            "be overdue, and the oldest go first."
        )
    failed, visits = sum(count(f"resolved/{outcome}") for outcome in _FAILED), count("resolved")
    if failed > visits / 2:
        words.append(f"{failed:,} of {visits:,} visits found no page: `crawlsched status` says which hosts fail.")
    elif idle > _WORTH_TELLING * slots:
        words.append(f"In {idle:,} slots there was nothing to ask for: CRAWLSCHED_BANDWIDTH is more than it needs.")
    return " ".join(words)
