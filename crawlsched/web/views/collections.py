"""Collections: one line for each, where a database holds several or processes share one; each leads to its views."""

from __future__ import annotations

from collections.abc import Sequence

from crawlsched.store import Store
from crawlsched.store.records import samples_since
from crawlsched.web import words
from crawlsched.web.html import Html, Node, tag
from crawlsched.web.views.context import section, table
from crawlsched.web.vitals import checks, of_pages, slots_of, vitals

__all__ = ["collections"]


def collections(watched: Sequence[tuple[str, str, Store]]) -> Html:
    """Return the middle of the page, from name, path of the views, and store of each."""
    rows = [_row(name, path, store) for name, path, store in watched]
    note = tag("p", "Budget and changes are those of the last hour.", class_="faint")
    headings = [("collection", ""), ("expected to be fresh", ""), ("pages", "r"), ("bandwidth", "r w")]
    headings += [("budget used", "r"), ("changes found", "r"), ("not delivered", "r w"), ("hosts resting", "r w")]
    return tag("main", section("Collections", note, table(headings, rows)))


def _row(name: str, path: str, store: Store) -> list[Node]:
    seen = vitals(store)
    ill = [check.sentence for check in checks(seen) if not check.is_well]
    hour = samples_since(store, seen.time - 3600.0)
    used, slots = sum(row["used"] or 0 for row in hour), sum(map(slots_of, hour))
    share = seen.sample.get("expected_freshness")
    bandwidth = seen.status.get("bandwidth")
    return [
        [
            tag("a", tag("b", name), href=f"{path}/"),
            tag("div", "; ".join(ill) or "crawling", class_=f"standing {'ill' if ill else 'well'}"),
        ],
        f"{words.share(share)}{of_pages(seen.sample)}",
        words.short(seen.status.get("pages")),
        f"{words.short(bandwidth)}/s" if bandwidth else "–",
        words.share(used / slots if slots else None),
        words.number(sum(row["changes"] or 0 for row in hour)),
        words.number(seen.undelivered),
        words.number(len(seen.resting)),
    ]
