"""ChangeSignals: announcements that a page may have changed, read from sitemaps, feeds and robots.txt.

The package reads bytes into facts. It fetches nothing, reads no clock and uses no database.
"""

from crawlsched.change_signals.announcements import FurtherRow, announces, attributed, newest_of_each
from crawlsched.change_signals.collected import Limits, SitemapEntries
from crawlsched.change_signals.hubs import Hubs, linked_hubs
from crawlsched.change_signals.lastmod import parse_lastmod, text_mark
from crawlsched.change_signals.locations import ascii_host, canonical, is_web_url, part_number, part_of_site
from crawlsched.change_signals.problems import PROBLEM_KINDS, Problem
from crawlsched.change_signals.robots import absolute_sitemaps, read_robots, robots_sitemaps
from crawlsched.change_signals.sitemap import SitemapDocument, read_sitemap

__all__ = [
    "PROBLEM_KINDS",
    "FurtherRow",
    "Hubs",
    "Limits",
    "Problem",
    "SitemapDocument",
    "SitemapEntries",
    "absolute_sitemaps",
    "announces",
    "ascii_host",
    "attributed",
    "canonical",
    "is_web_url",
    "linked_hubs",
    "newest_of_each",
    "parse_lastmod",
    "part_number",
    "part_of_site",
    "read_robots",
    "read_sitemap",
    "robots_sitemaps",
    "text_mark",
]
