import asyncio
import hashlib
import time
from collections import Counter, deque
from urllib.parse import urldefrag, urlsplit

import scrapy
from scrapy import signals
from scrapy.exceptions import IgnoreRequest

from example.items import ChangedPage


class InTurnSpider(scrapy.Spider):
    """Crawl the same site in turn: the best that one can do without crawlsched.

    New pages go first; then the page whose last visit is longest ago. Each request takes a slot of the same absolute
    grid as in crawlsched, redirects and robots.txt included. Requests are conditional (ETag, Last-Modified). While a
    host is busy, has sent Retry-After or wants a delay, pages of other hosts are requested. The target of a redirect
    replaces the page that moved. Pages that robots.txt forbids are forgotten.

    ``scrapy crawl in_turn -s ADDONS={} -a site=http://127.0.0.11:8000/ -a rate=25``
    """

    name = "in_turn"
    handle_httpstatus_list = [301, 302, 304, 307, 308, 404, 410, 429, 503]
    custom_settings = {
        "CONCURRENT_REQUESTS": 1000,  # the default of 16 would leave slots unused
        "REDIRECT_ENABLED": False,  # the target waits for a slot of its own, see parse()
        # The wiki's Crawl-delay, which Scrapy does not read by itself.
        "DOWNLOAD_SLOTS": {"127.0.0.19": {"delay": 0.2, "randomize_delay": False}},
    }

    def __init__(self, site, rate, **arguments):
        super().__init__(**arguments)
        self.site, self.rate = site, float(rate)
        self.new, self.known = deque([site]), deque()  # URLs to visit first; URLs in the order of their last visits
        self.seen = {site}
        self.validators = {}  # URL -> headers for a conditional request
        self.digests = {}  # URL -> digest of its text
        self.resting = {}  # host -> time until which it rests
        self.delays = {host: slot["delay"] for host, slot in self.custom_settings["DOWNLOAD_SLOTS"].items()}
        self.active = Counter()  # host -> requests under way; while a host is busy, other hosts' pages go
        self.to_pay = 0  # requests without a slot (robots.txt), which take later slots

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.per_host = crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        crawler.signals.connect(spider.reached_downloader, signals.request_reached_downloader)
        return spider

    def reached_downloader(self, request):
        self.to_pay += "in_turn" not in request.meta

    async def start(self):
        loop = asyncio.get_running_loop()
        started, slot = loop.time(), 0
        while True:
            slot = max(slot + 1, int((loop.time() - started - 1.0) * self.rate))  # never more than a second of debt
            await asyncio.sleep(started + slot / self.rate - loop.time())
            if self.to_pay:
                self.to_pay -= 1
            elif (url := self.next_url()) is not None:
                self.active[urlsplit(url).hostname] += 1
                headers = self.validators.get(url)
                yield scrapy.Request(
                    url, headers=headers, meta={"in_turn": True}, errback=self.failed, dont_filter=True
                )

    def next_url(self):
        """Return the URL whose turn it is; None if no page may be requested."""
        for queue in (self.new, self.known):
            for place, url in enumerate(queue):
                host = urlsplit(url).hostname
                if self.active[host] < self.per_host and self.resting.get(host, 0.0) <= time.monotonic():
                    del queue[place]
                    if host in self.delays:
                        self.resting[host] = time.monotonic() + self.delays[host]
                    return url
        return None

    def parse(self, response):
        url, host = response.request.url, urlsplit(response.request.url).hostname
        self.active[host] -= 1
        if response.status == 200:
            yield from self.visit(url, response)
        if "Location" in response.headers:
            self.discover(response.urljoin(response.headers["Location"].decode()))
        else:
            self.known.append(url)  # its next turn comes after all others
        if "Retry-After" in response.headers:
            self.resting[host] = time.monotonic() + float(response.headers["Retry-After"])

    def visit(self, url, response):
        for name, header in (("If-None-Match", "ETag"), ("If-Modified-Since", "Last-Modified")):
            if header in response.headers:
                self.validators.setdefault(url, {})[name] = response.headers[header]
        text = "\n".join(response.css("article p::text").getall())
        digest = hashlib.blake2b(text.encode()).digest()
        if digest != self.digests.get(url):
            self.digests[url] = digest
            yield ChangedPage(url=url, title=response.css("h1::text").get(""), text=text, found_at=time.time())
        for href in response.css("a::attr(href)").getall():
            self.discover(response.urljoin(href))

    def discover(self, url):
        url = urldefrag(url).url
        if url not in self.seen:
            self.seen.add(url)
            self.new.append(url)

    def failed(self, failure):
        url = failure.request.url
        self.active[urlsplit(url).hostname] -= 1
        if not failure.check(IgnoreRequest):  # otherwise robots.txt forbids it, and it is forgotten
            self.known.append(url)
