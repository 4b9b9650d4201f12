"""The beginning in the log: where a crawl begins, in one line."""

from __future__ import annotations

from crawlsched.settings import format_bandwidth

__all__ = ["beginning"]


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
