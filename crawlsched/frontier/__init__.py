"""The frontier: a queue of the times at which pages' crawl values reach a level, and a queue of new pages.

It uses pages and the protocol of crawl values (`candidates`), but not the planner. Begin reading with
docs/explanation/frontier.md, then `frontier`.
"""

from crawlsched.frontier.candidates import CrawlValues
from crawlsched.frontier.frontier import Frontier, Pick
from crawlsched.frontier.new_pages import DiscoveryShare

__all__ = ["CrawlValues", "DiscoveryShare", "Frontier", "Pick"]
