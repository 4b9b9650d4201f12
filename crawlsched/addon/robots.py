"""Reading robots.txt files again. Scrapy reads each file once in a crawl, and our crawls do not end."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.robotstxt import RobotParser
from scrapy.utils.httpobj import urlparse_cached

from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.visits import NOT_RETRIED
from crawlsched.scrapy_versions import ROBOTS_PARSED, forget_robots, robots_facts
from crawlsched.slot_clock import DAY

__all__ = ["RobotsFiles"]

logger = logging.getLogger(__name__)

# A robots.txt is kept for as long as Cache-Control says, within these limits in seconds (RFC 9309, 2.4).
_SHORTEST, _LONGEST = 10.0, DAY
# A robots.txt that is younger than a day is read again only after this number of requests to its host.
_REQUESTS_EACH = 100
_max_age = re.compile(r"max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE).search


@dataclass(slots=True)
class _Copy:
    """A host's robots.txt as it was read last, and the number of requests to the host since then."""

    read_at: float
    max_age: float = _LONGEST
    body: bytes = b""
    n_requests: int = 0


class RobotsFiles:
    """Makes Scrapy forget each old robots.txt, so that Scrapy reads the file again before the next request."""

    def __init__(self, crawler: Crawler, refresher: Refresher) -> None:
        self._crawler = crawler
        self._refresher = refresher
        self._copies: dict[str, _Copy] = {}
        self._forbidding: set[str] = set()
        crawler.signals.connect(self.parsed, ROBOTS_PARSED)

    def requested(self, request: Request) -> None:
        """Count a request to a host; if the host's robots.txt is due, Scrapy reads it before this request is sent."""
        netloc = urlparse_cached(request).netloc
        if (copy := self._copies.get(netloc)) is not None:
            copy.n_requests += 1
            if self._is_due(copy):
                copy.read_at, copy.n_requests = self._refresher.clock(), 0
                forget_robots(self._crawler, netloc)

    def refused(self, request: Request) -> None:
        """Note that a page was not requested, since the robots.txt of its host forbids it."""
        self._forbidding.add(urlparse_cached(request).netloc)

    def look(self) -> None:
        """Try a forbidden page of each host whose robots.txt is due, since the host may get no other request."""
        for netloc in self._forbidding & self._copies.keys():
            if self._is_due(self._copies[netloc]):
                self._ask_again(netloc, most=1)

    def _is_due(self, copy: _Copy) -> bool:
        age = self._refresher.clock() - copy.read_at
        return age >= (copy.max_age if copy.n_requests >= _REQUESTS_EACH else _LONGEST)

    def _ask_again(self, netloc: str, most: int | None = None) -> None:
        self._refresher.ask_again(urlsplit(f"//{netloc}").hostname or "", self._refresher.clock(), most)

    # -- Scrapy reads a robots.txt

    def asked(self, request: Request) -> None:
        """Prepare a request for a robots.txt: a file that was read before is requested without retries and cache."""
        if urlparse_cached(request).netloc in self._copies:
            request.meta.update(dont_retry=NOT_RETRIED, dont_cache=True)

    def unanswered(self, request: Request) -> Response | None:
        """A request for a robots.txt failed; if the file was read before, return an answer that keeps the rules."""
        if request.meta.get("dont_retry") == NOT_RETRIED:
            return Response(request.url, status=503)
        self._copies[_netloc(request)] = _Copy(self._refresher.clock())
        return None

    def fetched(self, request: Request, response: Response) -> Response:
        """Take in the answer to a request for a robots.txt; return the earlier content if the answer is useless."""
        netloc, status = _netloc(request), response.status
        before = self._copies.get(netloc)
        if before is not None and (status == 429 or not (status < 300 or 400 <= status < 500)):
            logger.info("%s answers with %d, so its earlier rules stay in force.", response.url, status)
            return Response(response.url, body=before.body)
        self._copies[netloc] = _Copy(self._refresher.clock(), _seconds(response), response.body)
        if before is not None and before.body != response.body:
            logger.info("%s has changed.", response.url)
            self._forbidding.discard(netloc)
            self._ask_again(netloc)
        return response

    def parsed(self, robotparser: RobotParser, request: Request) -> None:
        """Take over the sitemaps and the Crawl-delay of a robots.txt."""
        if not self._refresher.is_open:
            return
        url = urlparse_cached(request)
        user_agent = self._crawler.settings["ROBOTSTXT_USER_AGENT"] or self._crawler.settings["USER_AGENT"]
        address, now = f"{url.scheme}://{url.netloc}/robots.txt", self._refresher.clock()
        facts = robots_facts(robotparser, user_agent)
        self._refresher.polls.robots_seen(address, url.hostname or "", *facts, now)


def _netloc(request: Request) -> str:
    """Return the host and port whose robots.txt was asked for, before redirects."""
    redirected: list[str] = request.meta.get("redirect_urls", [])
    return urlsplit([*redirected, request.url][0]).netloc


def _seconds(response: Response) -> float:
    """Return for how many seconds a robots.txt may be kept."""
    found = _max_age((response.headers.get("Cache-Control") or b"").decode("latin-1"))
    return min(max(float(found[1]), _SHORTEST), _LONGEST) if found else _LONGEST
