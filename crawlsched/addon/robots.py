"""Reading robots.txt files again. Scrapy reads each file once in a crawl, and our crawls do not end."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.robotstxt import RobotParser
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import load_object

from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.visits import NOT_RETRIED
from crawlsched.scrapy_versions import ROBOTS_PARSED, download, put_robots, robots_facts
from crawlsched.slot_clock import DAY

__all__ = ["RobotsFiles"]

logger = logging.getLogger(__name__)

# A robots.txt is kept for as long as Cache-Control says, within these limits in seconds (RFC 9309, 2.4).
_SHORTEST, _LONGEST = 10.0, DAY
# A robots.txt that is younger than a day is read again only if its host has got this number of requests for each
# reading so far.
_REQUESTS_EACH = 100
_max_age = re.compile(r"max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE).search


@dataclass(slots=True)
class _Copy:
    """A host's robots.txt as it was read last, and the number of requests to the host since the first reading."""

    url: str
    read_at: float
    max_age: float
    hash: int
    n_requests: int = 0
    n_again: int = 0


class RobotsFiles:
    """Reads each robots.txt again in time, and replaces the rules that Scrapy has read."""

    def __init__(self, crawler: Crawler, refresher: Refresher) -> None:
        self._crawler = crawler
        self._refresher = refresher
        self._copies: dict[str, _Copy] = {}
        self._forbidding: set[str] = set()
        crawler.signals.connect(self.parsed, ROBOTS_PARSED)

    def fetched(self, request: Request, response: Response | None) -> None:
        """Note the first answer to a request for a robots.txt, after redirects; None: there was no answer."""
        url = request.meta.get("redirect_urls", [request.url])[0]
        body, seconds = (b"", _LONGEST) if response is None else (response.body, _seconds(response))
        self._copies[urlsplit(url).netloc] = _Copy(url, self._refresher.clock(), seconds, hash(body))

    def refused(self, request: Request) -> None:
        """Note that a page was not requested, since the robots.txt of its host forbids it."""
        self._forbidding.add(urlparse_cached(request).netloc)

    def due(self, request: Request) -> str | None:
        """Count a request to a host; return the host if its robots.txt must be read again before this request."""
        netloc = urlparse_cached(request).netloc
        if (copy := self._copies.get(netloc)) is None:
            return None
        copy.n_requests += 1
        return netloc if self._is_due(copy) else None

    def look(self) -> None:
        """Read the due robots.txt of hosts that forbid pages; such a host may get no request for `due` to count."""
        if not self._refresher.rate.rests:
            for netloc in self._forbidding & self._copies.keys():
                if self._is_due(self._copies[netloc]):
                    deferred_from_coro(self.read_again(netloc))

    def _is_due(self, copy: _Copy) -> bool:
        age = self._refresher.clock() - copy.read_at
        may = copy.n_requests >= _REQUESTS_EACH * (copy.n_again + 1)
        return age >= (copy.max_age if may else _LONGEST)

    async def read_again(self, netloc: str) -> None:
        """Read a robots.txt again. If the file cannot be reached, its earlier rules stay in force."""
        copy = self._copies[netloc]
        copy.read_at = self._refresher.clock()
        copy.n_again += 1
        # A failed request for a robots.txt is not retried, and is no error of the spider.
        meta = {"dont_obey_robotstxt": True, "dont_retry": NOT_RETRIED, "dont_cache": True, "crawlsched_robots": True}
        request = Request(copy.url, NO_CALLBACK, meta=meta)
        try:
            response = await download(self._crawler.engine, request)
        except Exception as error:  # handlers and middlewares may raise anything
            logger.info("%s cannot be read again, so its earlier rules stay in force: %s", copy.url, error)
            return
        if response.status == 429 or not (response.status < 300 or 400 <= response.status < 500):
            logger.info("%s answers with %d, so its earlier rules stay in force.", copy.url, response.status)
            return
        copy.max_age = _seconds(response)
        if (found := hash(response.body)) == copy.hash:
            return
        logger.info("%s has changed.", copy.url)
        copy.hash = found
        self._forbidding.discard(netloc)
        parser = load_object(self._crawler.settings["ROBOTSTXT_PARSER"]).from_crawler(self._crawler, response.body)
        put_robots(self._crawler, netloc, parser)
        self.parsed(parser, request)
        self._refresher.ask_again(urlparse_cached(request).hostname or "", self._refresher.clock())

    def parsed(self, robotparser: RobotParser, request: Request) -> None:
        """Take over the sitemaps and the Crawl-delay of a robots.txt."""
        if not self._refresher.is_open:
            return
        url = urlparse_cached(request)
        user_agent = self._crawler.settings["ROBOTSTXT_USER_AGENT"] or self._crawler.settings["USER_AGENT"]
        self._refresher.polls.robots_seen(
            f"{url.scheme}://{url.netloc}/robots.txt",
            url.hostname or "",
            *robots_facts(robotparser, user_agent),
            self._refresher.clock(),
        )


def _seconds(response: Response) -> float:
    """Return for how many seconds a robots.txt may be kept."""
    found = _max_age((response.headers.get("Cache-Control") or b"").decode("latin-1"))
    return min(max(float(found[1]), _SHORTEST), _LONGEST) if found else _LONGEST
