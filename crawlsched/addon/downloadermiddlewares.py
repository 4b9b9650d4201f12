"""The downloader middleware: it makes requests conditional, and reports how visits ended.

It is nearest to the engine. It sets the validators before any other middleware sees the request. It gets the decoded
body of the final response, after redirects and retries, and the requests that other middlewares refused. Scrapy 2.13
passes the spider to each method; no method needs it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from traceback import clear_frames
from typing import Any, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import DeferredLock
from twisted.python.failure import Failure

from crawlsched import scrapy_versions
from crawlsched.addon.robots import RobotsFiles
from crawlsched.addon.sending import PORTS, NotSent, PacedHandlers
from crawlsched.change_signals import linked_hubs
from crawlsched.content.reading import MOST_TEXT_BYTES, Body, Content
from crawlsched.content.verdict import DeliveryKind
from crawlsched.crawl.refresher import NotForTheSpider, Refresher
from crawlsched.crawl.shared.shared_crawl import refresher_of
from crawlsched.crawl.source_reading import read_source
from crawlsched.crawl.visits import NOT_RETRIED, ResponseFacts, Visit
from crawlsched.store import Outcome

__all__ = ["RefreshMiddleware", "VisitErrback"]

_WITH_CONTENT = range(200, 300)
# Flags that Scrapy sets with DOWNLOAD_FAIL_ON_DATALOSS = False, and after StopDownload(fail=False).
_CUT_SHORT = frozenset({"dataloss", "download_stopped"})
_VALIDATORS = ("If-None-Match", "If-Modified-Since")


class RefreshMiddleware:
    """Make requests conditional, and report to the refresher how each visit ended."""

    def __init__(self, crawler: Crawler, refresher: Refresher) -> None:
        self._crawler = crawler
        self._refresher = refresher
        self._visits = refresher.visits
        # Large bodies are read one at a time, since reading a body takes about fifteen times its size in memory.
        self._reading = DeferredLock()
        # A cached response says nothing about the page as it is now.
        self._bypass_cache = crawler.settings.getbool("HTTPCACHE_ENABLED")
        self._obeys_robots = crawler.settings.getbool("ROBOTSTXT_OBEY")
        self.robots = RobotsFiles(crawler, refresher)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware for a crawler."""
        return cls(crawler, refresher_of(crawler))

    def process_request(self, request: Request, spider: Spider | None = None) -> Awaitable[None] | None:
        """Make the request conditional, and refuse a private address that a site has named."""
        self._prepare(request)
        if request.meta.get("crawlsched_named_by_site"):
            return self._refuse_private(request)
        if self._is_scrapys_robots(request):
            self.robots.asked(request)
        elif not request.meta.get("dont_obey_robotstxt"):
            self.robots.requested(request)
        return None

    async def _refuse_private(self, request: Request) -> None:
        # The address is judged before Scrapy asks for the host's robots.txt, and once more when the request is sent.
        handlers = scrapy_versions.download_handlers(self._crawler)
        if isinstance(handlers, PacedHandlers) and urlparse_cached(request).scheme in PORTS:
            await handlers.judged_host(request)

    def _prepare(self, request: Request) -> None:
        visit = self._visits.get(request.meta.get("crawlsched_visit"))
        if visit is None or not visit.tracked:
            return
        if request.url != visit.url:
            # A redirected request has the headers of the first request. The first page's validators could bring a false
            # 304 for this page.
            if visit.validated:
                for name in _VALIDATORS:
                    request.headers.pop(name, None)
            if visit.page >= 0 and request.dont_filter and not self._refresher.dispatcher.is_asked_for(visit):
                # At the first visit the spider accepted any target of a redirect. Later the redirect may lead
                # elsewhere, so other components check the target.
                request.dont_filter = False
            if visit.source >= 0 and not request.dont_filter:
                # The site chooses the target of the redirect. It could be the address of an internal machine.
                request.meta["crawlsched_named_by_site"] = True
            return
        if self._bypass_cache:
            request.meta["dont_cache"] = True
        if self._refresher.settings.conditional_requests and not visit.validated:
            etag, last_modified = self._refresher.dispatcher.validators(visit)
            for name, value in zip(_VALIDATORS, (etag, last_modified), strict=True):
                if value and name not in request.headers:
                    request.headers[name] = value.encode("latin-1", "ignore")
                    visit.validated = True
            if visit.validated:
                visit.sent = (etag, last_modified)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response | Awaitable[Response]:
        """Resolve the visit, and drop a response that has nothing new for the spider."""
        visit = self._visits.get(request.meta.get("crawlsched_visit"))
        if visit is None:
            if self._is_scrapys_robots(request):
                response = self.robots.fetched(request, response)
                scrapy_versions.robots_downloaded(self._crawler, request, response)
            return response
        if not visit.tracked:
            self._visits.resolve(visit.token, Outcome.CHANGED)
            return response
        if visit.source >= 0:
            return self._source_fetched(visit, response)
        if response.status not in _WITH_CONTENT or _is_cut_short(response):
            return self._judged(visit, request, response, None)
        try:
            body = _body(response, MOST_TEXT_BYTES)
            read, is_quick = self._refresher.dispatcher.reading(visit, body, request.meta.get("crawlsched_recipe"))
            content = read() if is_quick else None
        except Exception as error:
            self._refresher.visit_ends.visit_error(visit, error, self._refresher.clock())
            return response
        if is_quick:
            return self._judged(visit, request, response, content)
        return self._judged_later(visit, request, response, read)

    def _is_scrapys_robots(self, request: Request) -> bool:
        is_exempt = self._obeys_robots and request.meta.get("dont_obey_robotstxt")
        return bool(is_exempt) and urlparse_cached(request).path == "/robots.txt"

    async def _judged_later(
        self, visit: Visit, request: Request, response: Response, read: Callable[[], Content]
    ) -> Response:
        try:
            reading = self._reading.run(lambda: deferred_from_coro(scrapy_versions.run_in_thread(read)))
            content = await maybe_deferred_to_future(reading)
        except Exception as error:  # the spider gets the response as without the add-on
            self._refresher.visit_ends.visit_error(visit, error, self._refresher.clock())
            return response
        if visit.outcome is not None:  # the visit ended while the body was read
            return response
        return self._judged(visit, request, response, content)

    def _judged(self, visit: Visit, request: Request, response: Response, content: Content | None) -> Response:
        now = self._refresher.clock()
        verdict = self._refresher.responses.crawled(visit, _fetched(request, response, content), now)
        if request.meta.get("dont_retry") == NOT_RETRIED:  # a request that the spider makes of this request is retried
            del request.meta["dont_retry"]
        if verdict.deliver is DeliveryKind.AS_SERVED and not visit.is_ours:  # gone, refused, error
            return response
        changed = verdict.deliver is DeliveryKind.CHANGED
        if changed and "html" in (_text(response, "Content-Type") or "html"):
            self._refresher.polls.page_names(visit, response.url, response.body, now)
        if verdict.is_delivered or self._wants_not_modified(visit, request, response):
            request.meta["crawlsched_changed"] = changed
            response.flags.append("crawlsched-changed" if changed else "crawlsched-unchanged")
            return response
        raise NotForTheSpider(f"{response.url} has nothing new for the spider.")

    def process_exception(
        self, request: Request, exception: Exception, spider: Spider | None = None
    ) -> Response | None:
        """Resolve the visit of a request that got no response."""
        visit = self._visits.get(request.meta.get("crawlsched_visit"))
        if scrapy_versions.is_forbidden_by_robots(exception):
            self.robots.refused(request)
            if visit is not None and visit.page >= 0:
                host = urlparse_cached(request).hostname or ""
                self._refresher.collection.withheld.note(host, "robots", request.url, self._refresher.clock())
        if request.meta.get("dont_retry") == NOT_RETRIED or isinstance(exception, NotSent):
            scrapy_versions.take_exception_back(self._crawler, exception)
        if visit is None:
            return self.robots.unanswered(request) if self._is_scrapys_robots(request) else None
        # At the end of the crawl, unsent requests are released with all open visits.
        if not isinstance(exception, NotForTheSpider | NotSent):
            outcome = Outcome.REFUSED if isinstance(exception, IgnoreRequest) else Outcome.ERROR
            self._refresher.visit_ends.resolve(visit, outcome, self._refresher.clock())
        return None

    async def _source_fetched(self, visit: Visit, response: Response) -> Response:
        if response.status != 200 or "cached" in response.flags:
            self._refresher.polls.source_fetched(visit, response.status, self._refresher.clock())
        else:
            read = await scrapy_versions.run_in_thread(
                read_source, self._refresher.collection, visit.source, response.url, response.body
            )
            headers = [value.decode("latin-1") for value in response.headers.getlist("Link")]
            if (linked := linked_hubs(headers, response.url)).url:
                read.document = replace(read.document, hubs=linked)
            validators = {"etag": _text(response, "ETag"), "last_modified": _text(response, "Last-Modified")}
            self._refresher.polls.source_fetched(visit, response.status, self._refresher.clock(), read, **validators)
        raise NotForTheSpider(f"{response.url} is a sitemap of crawlsched's own.")

    def _wants_not_modified(self, visit: Visit, request: Request, response: Response) -> bool:
        """Whether this is a 304 that the spider has asked for, or handles."""
        if response.status != 304 or visit.is_ours:
            return False
        asked_by_spider = not visit.validated and any(name in request.headers for name in _VALIDATORS)
        if asked_by_spider or request.meta.get("handle_httpstatus_all"):
            return True
        listed = request.meta.get("handle_httpstatus_list", getattr(self._crawler.spider, "handle_httpstatus_list", ()))
        return 304 in listed


def _body(response: Response, most: int) -> Body:
    """Return a response's body, as recipes take it."""
    # Without a declared encoding Scrapy decodes the whole body to guess the encoding. The beginning of the body is
    # enough.
    begin = response.replace(body=response.body[:most]) if len(response.body) > most else response
    return Body(response.body, _text(response, "Content-Type"), getattr(begin, "encoding", None), response.url)


def _fetched(request: Request, response: Response, content: Content | None) -> ResponseFacts:
    hops: list[Any] = request.meta.get("redirect_reasons", [])
    moved = bool(hops) and all(reason in (301, 308) for reason in hops)
    last_modified = _text(response, "Last-Modified")
    return ResponseFacts(
        status=response.status,
        content=content,
        etag=_text(response, "ETag"),
        last_modified=last_modified,
        size=len(response.body),
        moved_to=request if moved else None,
        date=_text(response, "Date") if last_modified else None,
        location=response.urljoin(to) if content is None and (to := _text(response, "Location")) else None,
        is_cut_short=_is_cut_short(response),
    )


def _is_cut_short(response: Response) -> bool:
    """Whether a body is incomplete, since the connection broke or a component of the project stopped the download."""
    return response.status in _WITH_CONTENT and not _CUT_SHORT.isdisjoint(response.flags)


def _text(response: Response, name: str) -> str | None:
    value = response.headers.get(name)
    return value.decode("latin-1") if value else None


@dataclass(slots=True, eq=False)
class VisitErrback:
    """Resolve a visit whose end the downloader middleware has not seen, then call the spider's errback."""

    refresher: Refresher
    token: int
    spiders_own: Any
    is_ours: bool = False
    not_sent: Callable[[Request], None] | None = None

    def __del__(self) -> None:
        # No request carries this errback any more. `__del__` may run in any thread.
        if self.refresher.visits.get(self.token) is not None:
            self.refresher.visit_ends.lost.append(self.token)

    def __call__(self, failure: Failure) -> Any:
        """End the visit, and pass on the failure of a request that the spider has made."""
        if isinstance(failure.value, NotForTheSpider | NotSent):
            # Twisted's frames and the failure refer to each other. Each visit would leave 90 objects to the garbage
            # collector.
            if isinstance(failure.value, NotSent) and self.not_sent is not None:
                self.not_sent(failure.request)  # type: ignore[attr-defined]
            clear_frames(failure.tb)
            failure.tb = failure.value.__traceback__ = None
            return None
        if (visit := self.refresher.visits.get(self.token)) is not None:
            # The middleware has handled requests that were refused before they were sent. A failed response (endless
            # redirects, a decompression bomb, another middleware's exception) is handled here.
            self.refresher.visit_ends.resolve(visit, Outcome.ERROR, self.refresher.clock())
        self.refresher.book.failed(self.token, self.refresher.clock())
        if self.is_ours:  # the spider has not asked for this request
            return None
        return failure if self.spiders_own is None else self.spiders_own(failure)
