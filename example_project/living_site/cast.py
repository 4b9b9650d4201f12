"""The cast: ten hosts, each like a kind of site that every crawler meets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ETag = Literal["honest", "missing", "constant", "random"]
LastModified = Literal["honest", "missing", "now"]
Sitemap = Literal["none", "absent file", "honest", "late", "partial", "stamped now"]


@dataclass(frozen=True)
class Host:
    """One host and its habits; times are seconds at the demo's scale, where a second stands for an hour."""

    number: int  # the last part of its address; hosts are addresses, since Scrapy ignores ports when it compares hosts
    subject: str
    n_sections: int = 5
    articles_per_section: int = 10
    change_interval: float = 60.0  # median over the pages which change at all
    spread: float = 1.0  # standard deviation of ln(interval) over pages: 1.0 is a factor of 2.7
    never: float = 0.2  # share of pages which never change
    burst: float = 1.0  # mean size of bursts of changes, a second apart; 1: no bursts
    mass_edit_interval: float | None = None  # mean time between edits of a whole section at once
    etag: ETag = "honest"
    last_modified: LastModified = "honest"
    sitemap: Sitemap = "honest"
    sitemap_form: Literal["plain", "gzip", "index"] = "plain"
    response_time: float = 0.005
    crawl_delay: float | None = None
    visible_noise: bool = False  # a visible visitor counter, which is no change
    private: bool = False  # a part that robots.txt forbids, although pages link to it
    gone: float = 0.0  # share of articles that vanish; half of them return
    moved: float = 0.0  # share of articles that move to another path
    unavailable_interval: float | None = None  # mean time between spells of 503
    too_many_interval: float | None = None  # mean time between spells of 429 with Retry-After

    @property
    def address(self) -> str:
        """Loopback address of the host."""
        return f"127.0.0.{self.number}"


# Change intervals of all hosts together span a factor of 10,000. Headers and sitemaps can be believed on some hosts
# only.
CAST: tuple[Host, ...] = (
    Host(11, "portal", change_interval=20.0, sitemap_form="index"),
    Host(
        12,
        "news",
        change_interval=12.0,
        spread=1.2,
        etag="missing",
        last_modified="missing",
        sitemap_form="gzip",
    ),
    Host(13, "prices", change_interval=8.0, burst=3.0, etag="missing", sitemap="late"),
    Host(14, "archive", change_interval=3000.0, spread=1.5, never=0.9, sitemap="none"),
    Host(15, "law", change_interval=100.0, never=0.5, mass_edit_interval=25.0, etag="missing"),
    Host(
        16,
        "blog",
        change_interval=40.0,
        etag="random",
        last_modified="now",
        sitemap="stamped now",
        visible_noise=True,
    ),
    Host(
        17,
        "shop",
        n_sections=2,
        change_interval=40.0,
        etag="constant",
        last_modified="missing",
        sitemap="absent file",
    ),
    Host(18, "museum", change_interval=40.0, never=0.4, response_time=1.2),
    Host(19, "wiki", change_interval=20.0, spread=1.3, sitemap="partial", crawl_delay=0.2, private=True),
    Host(
        20,
        "forum",
        n_sections=4,
        change_interval=4.0,
        spread=1.2,
        never=0.3,
        etag="missing",
        last_modified="missing",
        sitemap="none",
        gone=0.2,
        moved=0.2,
        unavailable_interval=16.0,
        too_many_interval=20.0,
    ),
)

LATE_REBUILD = 8.0  # seconds between two rebuilds of a late sitemap by a job
PARTIAL_RECALL = 0.5  # a partial sitemap announces this share of the changes
FALSE_STAMP_INTERVAL = 120.0  # ... and stamps every page without a change, at this mean interval in seconds
FASTEST = 2.0  # no page changes more often than this, on average
SPELL = 4.0  # a spell of 503 or 429 lasts so long


def by_address(cast: tuple[Host, ...] = CAST) -> dict[str, Host]:
    """Return the hosts by their addresses."""
    return {host.address: host for host in cast}
