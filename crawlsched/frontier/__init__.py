"""The frontier: the page with the highest crawl value among all that may be crawled now, exactly, at every slot.

Knows pages and a protocol of crawl values (`values`), and no planner. Begin reading with
docs/explanation/frontier.md, then `frontier`.
"""

from crawlsched.frontier.frontier import Frontier, Pick
from crawlsched.frontier.membership import PICKS_PER_TICK
from crawlsched.frontier.state import Filed, file_anew, filed, put_back
from crawlsched.frontier.values import CrawlValues, PageValue, PageValues

__all__ = [
    "PICKS_PER_TICK",
    "CrawlValues",
    "Filed",
    "Frontier",
    "PageValue",
    "PageValues",
    "Pick",
    "file_anew",
    "filed",
    "put_back",
]
