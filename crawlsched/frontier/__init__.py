"""The frontier: a queue of crossing times, when each page's crawl value will reach a level, and one of new pages.

Knows pages and the protocol of crawl values (`candidates`), and no planner. Begin reading with
docs/explanation/frontier.md, then `frontier`.
"""

from crawlsched.frontier.candidates import CrawlValues
from crawlsched.frontier.frontier import Frontier, Pick
from crawlsched.frontier.new_pages import DiscoveryShare

__all__ = ["CrawlValues", "DiscoveryShare", "Frontier", "Pick"]
