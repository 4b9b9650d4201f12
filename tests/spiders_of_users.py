"""Spiders as users write them, all in one process: ``python -m tests.spiders_of_users SITE SETTINGS ITEMS``.

Each item is written down as a line of JSON, with the name of its spider. The site is that of `test_as_plain_scrapy`.
"""
# ruff: noqa: RUF012 (as Scrapy's documentation writes them)

import dataclasses
import json
import sys
from typing import Any

import attrs
import scrapy
from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.dupefilters import BaseDupeFilter
from scrapy.exceptions import DontCloseSpider
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider

from crawlsched.scrapy_versions import download

SITE = sys.argv[1] if __name__ == "__main__" else "http://127.0.0.1:9"


def _text(response: Any) -> Any:
    return response.css("p::text").get()


class Spider(scrapy.Spider):
    """What the callbacks of many do."""

    def found(self, response, **given):
        yield {"url": response.url, "text": _text(response), **given}


class Prices(scrapy.Spider):
    """A list hands a price to its details."""

    name = "prices"
    start_urls = [f"{SITE}/list"]

    def parse(self, response):
        for link in response.css("a"):
            yield response.follow(link, self.detail, meta={"price": link.attrib["data-price"]})

    def detail(self, response):
        yield {"url": response.url, "text": _text(response), "price": response.meta["price"]}


class Jars(scrapy.Spider):
    """One URL in several sessions."""

    name = "jars"

    async def start(self):
        for number, city in enumerate(("berlin", "paris", "rome")):
            url, meta = f"{SITE}/cookies", {"cookiejar": number}
            yield scrapy.Request(url, cookies={"city": city}, meta=meta, dont_filter=True)

    def parse(self, response):
        yield {"text": _text(response)}
        jar = {"cookiejar": response.meta["cookiejar"]}
        yield response.follow("/cookies/again", self.again, meta=jar, dont_filter=True)

    def again(self, response):
        yield {"again": _text(response)}


class Languages(scrapy.Spider):
    """One URL in several languages, from a callback."""

    name = "languages"
    start_urls = [f"{SITE}/item/lang"]

    def parse(self, response):
        for language in ("de", "fr", "it"):
            headers = {"Accept-Language": language}
            yield scrapy.Request(f"{SITE}/language", self.translated, headers=headers, dont_filter=True)

    def translated(self, response):
        yield {"text": _text(response)}


class Callbacks(scrapy.Spider):
    """One page for several callbacks, and asked for again by its own."""

    name = "callbacks"
    start_urls = [f"{SITE}/item/callbacks"]

    def parse(self, response):
        yield {"first": _text(response)}
        yield response.request.replace(callback=self.second, dont_filter=True)
        yield scrapy.Request(response.url, self.third, dont_filter=True, cb_kwargs={"number": 3})

    def second(self, response):
        yield {"second": _text(response)}

    def third(self, response, number):
        yield {"third": _text(response), "number": number}
        if number < 6:  # polls
            yield response.request.replace(cb_kwargs={"number": number + 1}, dont_filter=True)


class Article(scrapy.Item):
    """An item that is begun on a list."""

    name, text, shop = scrapy.Field(), scrapy.Field(), scrapy.Field()


@dataclasses.dataclass
class Shop:
    """Of dataclasses."""

    name: str


@attrs.define
class Owner:
    """Of attrs."""

    name: str


class Items(scrapy.Spider):
    """Items of several kinds go along with requests."""

    name = "items"
    start_urls = [f"{SITE}/list"]

    def parse(self, response):
        for link in response.css("a"):
            item = Article(name=link.css("::text").get(), shop=Shop("one"))
            yield response.follow(link, self.finish, meta={"item": item}, cb_kwargs={"owner": Owner("two")})

    def finish(self, response, owner):
        item = response.meta["item"]
        item["text"], item["shop"] = _text(response), item["shop"].name + owner.name
        yield item


class Lambdas(scrapy.Spider):
    """What cannot be written down."""

    name = "lambdas"
    start_urls = [f"{SITE}/list"]

    def parse(self, response):
        for link in response.css("a"):
            yield response.follow(link, lambda response: {"lambda": response.url[-2:], "text": _text(response)})


class Posts(Spider):
    """Data come by POST, behind a page that stays the same."""

    name = "posts"
    start_urls = [f"{SITE}/still"]

    def parse(self, response):
        for number in range(3):
            yield scrapy.http.JsonRequest(f"{SITE}/api", self.answered, data={"number": number})
        data = {"query": "tea"}
        yield scrapy.FormRequest(f"{SITE}/search", self.found, formdata=data, method="GET")

    def answered(self, response):
        yield response.json()
        yield response.follow(f"/item/post{response.json()['number']}", self.found)


class Login(Spider):
    """As in Scrapy's documentation; without a session all pages lead to the log-in page."""

    name = "login"
    start_urls = [f"{SITE}/login"]

    def parse(self, response):
        data = {"user": "john"}
        url = response.urljoin(response.css("form::attr(action)").get())
        yield scrapy.FormRequest(url, self.logged_in, formdata=data)

    def logged_in(self, response):
        yield from response.follow_all(css="a", callback=self.found)


class Rules(CrawlSpider):
    """Links by rules."""

    name = "rules"
    start_urls = [f"{SITE}/pages/1"]
    rules = (
        Rule(LinkExtractor(allow=r"/pages/\d"), follow=True),
        Rule(LinkExtractor(allow=r"/item/"), callback="parse_item", cb_kwargs={"by": "rule"}),
    )

    def parse_item(self, response, by):
        return {"url": response.url, "text": _text(response), "by": by, "link": response.meta["link_text"]}


class Paginated(scrapy.Spider):
    """Page after page, items on each."""

    name = "paginated"
    start_urls = [f"{SITE}/pages/1"]

    def parse(self, response):
        yield {"page": _text(response)}
        yield from response.follow_all(css="a.next", callback=self.parse)


class Mapped(SitemapSpider):
    """By sitemap."""

    name = "mapped"
    sitemap_urls = [f"{SITE}/sitemap.xml"]
    sitemap_rules = [("/item/", "parse_item")]

    def parse_item(self, response):
        yield {"url": response.url, "text": _text(response)}


class Failures(scrapy.Spider):
    """What fails has an errback, and some statuses are pages."""

    name = "failures"
    handle_httpstatus_list = [410]

    async def start(self):
        for path in ("/missing", "/gone", "/item/fine"):
            yield scrapy.Request(SITE + path, errback=self.failed, cb_kwargs={"path": path})

    def parse(self, response, path):
        yield {"path": path, "status": response.status}

    def failed(self, failure):
        yield {"failed": failure.request.url[-8:]}
        yield scrapy.Request(f"{SITE}/item/instead", self.parse, cb_kwargs={"path": "instead"})


class Retries(scrapy.Spider):
    """Asks again by itself, and gives up."""

    name = "retries"
    start_urls = [f"{SITE}/item/busy"]
    custom_settings = {"RETRY_TIMES": 2}

    def parse(self, response):
        again = get_retry_request(response.request, spider=self, reason="busy")
        yield again or {"gave up after": response.meta["retry_times"]}


class Inline(scrapy.Spider):
    """Awaits further responses in its callback."""

    name = "inline"
    start_urls = [f"{SITE}/still"]

    async def parse(self, response):
        for number in range(2):
            request = scrapy.Request(f"{SITE}/item/inline{number}")
            further = await download(self.crawler.engine, request)
            yield {"text": _text(further)}


class Idle(scrapy.Spider):
    """Feeds batches when it is idle."""

    name = "idle"
    start_urls = [f"{SITE}/item/batch0"]
    batch = 0

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        return spider

    def idle(self):
        self.batch += 1
        if self.batch < 4:
            self.crawler.engine.crawl(scrapy.Request(f"{SITE}/item/batch{self.batch}"))
            raise DontCloseSpider

    def parse(self, response):
        yield {"url": response.url, "text": _text(response)}


class OneForMany(Spider):
    """One detail for several items of a list."""

    name = "one_for_many"
    start_urls = [f"{SITE}/still"]

    def parse(self, response):
        for number in range(4):
            yield response.follow("/item/vendor", self.found, dont_filter=True, cb_kwargs={"number": number})


class Shell(scrapy.Spider):
    """Every URL answers with one shell, and the data are in a script."""

    name = "shell"
    start_urls = [f"{SITE}/shell/0"]

    def parse(self, response):
        yield json.loads(response.css("#data::text").get())
        yield from response.follow_all(css="a", callback=self.parse)


class Redirected(scrapy.Spider):
    """Start pages that lead elsewhere, in all ways."""

    name = "redirected"
    start_urls = [f"{SITE}/to/{status}/moved{status}" for status in (301, 302, 307, 200)]

    def parse(self, response):
        yield {"url": response.url, "text": _text(response), "from": response.meta.get("redirect_urls")}


class Recovers:
    """A spider middleware that asks again when a callback raises."""

    def process_spider_exception(self, response, exception, spider=None):
        if "tried" not in response.meta:
            yield response.request.replace(dont_filter=True, meta={"tried": True})


class Recovering(scrapy.Spider):
    """Its callback raises at first."""

    name = "recovering"
    start_urls = [f"{SITE}/item/recovered"]
    custom_settings = {"SPIDER_MIDDLEWARES": {Recovers: 100}}

    def parse(self, response):
        if "tried" not in response.meta:
            raise ValueError("the first time")
        yield {"text": _text(response)}


class Turns:
    """A downloader middleware that makes something else of a response, and answers some requests itself."""

    def process_request(self, request, spider=None):
        if request.url.endswith("/answered"):
            return scrapy.http.HtmlResponse(request.url, body=b"<p>by the middleware</p>")
        return None

    def process_response(self, request, response, spider=None):
        if request.url.endswith("/item/captcha") and "solved" not in request.meta:
            return request.replace(url=f"{SITE}/item/solved", meta={"solved": True}, dont_filter=True)
        if request.url.endswith("/item/instead-of"):
            return scrapy.Request(f"{SITE}/item/fresh", request.callback)
        return response


class Turned(scrapy.Spider):
    """With that middleware."""

    name = "turned"
    start_urls = [f"{SITE}/item/captcha", f"{SITE}/answered", f"{SITE}/item/instead-of"]
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Turns: 560}}

    def parse(self, response):
        yield {"url": response.url, "text": _text(response)}


class Drops:
    """A pipeline of several minds."""

    def process_item(self, item, spider=None):
        if "drop" in item["url"]:
            raise scrapy.exceptions.DropItem("not wanted")
        if "raise" in item["url"]:
            raise ValueError("broken")
        return item


class Piped(scrapy.Spider):
    """With that pipeline."""

    name = "piped"
    start_urls = [f"{SITE}/item/drop", f"{SITE}/item/raise", f"{SITE}/item/pass"]
    custom_settings = {"ITEM_PIPELINES": {Drops: 1}}

    def parse(self, response):
        yield {"url": response.url, "text": _text(response)}


class Chained(Spider):
    """Pages behind requests that are no pages behind pages, and items and requests of start()."""

    name = "chained"

    async def start(self):
        yield {"of": "start"}
        yield scrapy.Request(f"{SITE}/api", self.token, method="POST", body=b'{"number": 7}')
        yield scrapy.Request(f"{SITE}/item/low", self.found, priority=-5)
        yield scrapy.Request(f"{SITE}/item/high", self.found, priority=5)

    def token(self, response):
        yield scrapy.Request(f"{SITE}/still", self.behind, cb_kwargs={"token": response.json()["value"]})

    def behind(self, response, token):
        yield {"token": token}
        yield scrapy.Request(f"{SITE}/item/once", self.found, meta={"crawlsched_track": False})


class Statuses(scrapy.Spider):
    """Gets what others never see: errors, redirects, and an answer at the second try."""

    name = "statuses"
    start_urls = [f"{SITE}/{path}" for path in ("missing", "broken", "to/301/a", "flaky", "empty", "item/ok")]
    custom_settings = {"HTTPERROR_ALLOW_ALL": True, "REDIRECT_ENABLED": False, "RETRY_HTTP_CODES": [503]}

    def parse(self, response):
        return {"url": response.url, "status": response.status, "length": len(response.body)}


class Limited(scrapy.Spider):
    """Goes one link deep, on one host, by links that stand on every page, and ends by itself."""

    name = "limited"
    start_urls = [f"{SITE}/pages/1"]
    allowed_domains = ["127.0.0.1"]
    custom_settings = {"DEPTH_LIMIT": 1, "AUTOTHROTTLE_ENABLED": True, "HTTPCACHE_ENABLED": True}

    def parse(self, response):
        yield {"url": response.url, "text": _text(response)}
        yield None
        for link in (*response.css("a::attr(href)").getall(), "http://elsewhere.invalid/", "#top", "/item/a#b"):
            yield response.follow(link, self.parse)


class Unfiltered(Spider):
    """Wants each request, however often it is made."""

    name = "unfiltered"
    start_urls = [f"{SITE}/still"]
    custom_settings = {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}

    def parse(self, response):
        for number in range(3):
            yield response.follow("/item/each", self.found, cb_kwargs={"number": number})


class KeyFilter(BaseDupeFilter):
    """By the URL without its session, and a key."""

    def __init__(self):
        self.seen = set()

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    def request_seen(self, request):
        name = request.url.partition("&session")[0], request.meta.get("key")
        is_known = name in self.seen
        self.seen.add(name)
        return is_known

    def log(self, request, spider):
        pass


class OwnFilter(scrapy.Spider):
    """With a filter to which other requests are the same than to Scrapy."""

    name = "own_filter"
    start_urls = [f"{SITE}/still"]
    custom_settings = {"DUPEFILTER_CLASS": KeyFilter}

    def parse(self, response):
        for query in ("a?x=1&y=2", "a?y=2&x=1", "b#one", "b#two", "b#two", "c?x=1", "c?x=1&session=2"):
            yield response.follow(f"/item/{query}", self.found)
        for key in "klk":
            yield response.follow("/item/d", self.found, meta={"key": key})

    def found(self, response):
        yield {"url": response.request.url, "key": response.meta.get("key"), "text": _text(response)}


class Filed(scrapy.Spider):
    """Downloads files, and asks a name that nobody has."""

    name = "filed"
    custom_settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": f"{sys.argv[-1]}.files",
        "RETRY_ENABLED": False,
    }

    async def start(self):
        yield scrapy.Request(f"{SITE}/item/files")
        yield scrapy.Request("http://nowhere.invalid/", errback=self.failed)

    def parse(self, response):
        yield {"file_urls": [response.urljoin("/item/file1"), response.urljoin("/missing")], "text": _text(response)}

    def failed(self, failure):
        yield {"file_urls": [f"{SITE}/item/file2"], "failed": failure.request.url}


SPIDERS: tuple[type[scrapy.Spider], ...] = (
    *(Prices, Jars, Languages, Callbacks, Items, Lambdas, Posts, Login, Rules, Paginated, Mapped, Failures),
    *(Retries, Inline, Idle, OneForMany, Shell, Redirected, Recovering, Turned, Piped, Chained),
    *(Statuses, Limited, Unfiltered, OwnFilter, Filed),
)


def main() -> None:
    """Run them all."""
    settings = {
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "LOG_LEVEL": "INFO",
        "RETRY_ENABLED": True,
        **json.loads(sys.argv[2]),
    }
    process = CrawlerProcess(settings)
    with open(sys.argv[3], "w") as file:
        for spider in SPIDERS:
            crawler = process.create_crawler(spider)

            def write(item, spider) -> None:
                print(json.dumps({"spider": spider.name, **ItemAdapter(item).asdict()}, default=str), file=file)

            crawler.signals.connect(write, signals.item_scraped, weak=False)
            process.crawl(crawler)
        process.start()


if __name__ == "__main__":
    main()
