"""A line of the log after the first minute of a crawl: how it goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["FIRST_MINUTE", "minute"]

#: Seconds after which the line comes.
FIRST_MINUTE = 60.0
# Outcomes of visits that found no page.
_FAILED = ("error", "refused", "gone", "wrong", "dropped")
# Of the slots; less than this is not worth a word.
_WORTH_TELLING = 0.05


def minute(stats: Mapping[str, Any], n_pages: int, n_copies: int, n_withheld: int) -> str:
    """Say what the first minute was spent on, and what keeps the rest of the bandwidth from being used.

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
    if n_withheld:
        words.append(f"{n_withheld:,} deliveries were withheld: `crawlsched withheld` lists them.")
    if busy > _WORTH_TELLING * slots:
        words.append(
            f"In {busy:,} slots no host was free: DOWNLOAD_DELAY, CONCURRENT_REQUESTS_PER_DOMAIN, Crawl-delay or "
            "Retry-After limit this crawl."
        )
    failed, visits = sum(count(f"resolved/{outcome}") for outcome in _FAILED), count("resolved")
    if failed > visits / 2:
        words.append(f"{failed:,} of {visits:,} visits found no page: `crawlsched status` says which hosts fail.")
    elif idle > _WORTH_TELLING * slots:
        words.append(f"In {idle:,} slots there was nothing to ask for: CRAWLSCHED_BANDWIDTH is more than it needs.")
    return " ".join(words)
