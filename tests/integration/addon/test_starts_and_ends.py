"""Who goes first in a run, what a page waits for, and how a run ends: by real crawls that end by themselves."""

import signal

from aiohttp import web

from tests.crawling import Project, spider
from tests.site import html
from tests.waiting import wait_until

LOG_IN = 'yield scrapy.Request(self.start_urls[0], self.after_login, method="POST", body="x", dont_filter=True)'
ARTICLES = f"""
def after_login(self, response):
    yield from response.follow_all(css="a", callback=self.article)

def article(self, response):
    if response.css("form"):
        {LOG_IN}
        raise crawlsched.NotThePage("the session has ended")
    yield {{"url": response.url, "text": response.css("p::text").get()}}
"""


def test_a_start_request_logs_in_before_any_page_is_asked_for(site, tmp_path):
    """Known pages wait for the log-in at every start; a page that the callback refuses counts for nothing."""
    texts = {"/a": "one", "/b": "two"}
    is_open = {"door": True}

    def login(request):
        if request.method == "POST":
            answer = html("".join(f'<a href="{path}">x</a>' for path in texts))
            answer.set_cookie("sid", "1")
            return answer
        form = '<form method="post" action="/login"><input name="user"></form>'
        return f"<p>Log in</p>{form}"

    def article(request):
        if "sid" not in request.cookies or (request.path == "/b" and not is_open["door"]):
            return "<p>Please log in</p><form></form>"
        return f"<p>{texts[request.path]}</p>"

    for path in texts:
        site.page(path, article)
    text = spider([site.page("/login", login)], LOG_IN, before="import crawlsched", also=ARTICLES)
    project = Project(tmp_path, text, one_pass=True)
    assert sorted(item["text"] for item in project.run().items) == ["one", "two"]
    texts.update({"/a": "three", "/b": "four"})
    is_open["door"] = False
    site.requests.clear()
    crawl = project.run()
    assert [path for path, _ in site.requests][:2] == ["/login", "/login"]
    assert all("sid" in headers.get("cookie", "") for path, headers in site.requests if path != "/login")
    assert [item["text"] for item in crawl.items] == ["three"]
    assert crawl.stats["crawlsched/not_the_page"] == 1
    assert crawl.outcomes()[site.url("/b")][-1] == "wrong"
    is_open["door"] = True
    assert [item["text"] for item in project.run().items] == ["four"]


DETAILS = """
for number in range(8):
    given = {"method": "POST", "cb_kwargs": {"number": number}}
    yield scrapy.Request(f"{response.url}detail?{number}", self.parse_detail, **given)
"""
DETAIL = """
def parse_detail(self, response, number):
    yield {"number": number}
"""


def test_requests_that_are_no_pages_survive_a_stop(site, tmp_path):
    """A list counts as delivered when its details are; stopped before, it is delivered again, and once in each run."""
    site.page("/detail", "<p>detail</p>")
    project = Project(tmp_path, spider([site.page("/", "<p>list</p>")], DETAILS, also=DETAIL), bandwidth="10/s")
    process = project.start()
    wait_until(lambda: sum(path.startswith("/detail") for path, _ in site.requests) >= 3)
    process.send_signal(signal.SIGINT)
    assert 0 < len({item["number"] for item in project.finish(process).items}) < 8
    for _ in range(2):
        crawl = project.run(one_pass=True)
        assert sorted(item["number"] for item in crawl.items) == list(range(8))
        assert crawl.stats["crawlsched/delivered"] == 1


BEHIND = """
for number in (1, 1, 2):
    yield scrapy.http.JsonRequest(response.url + "api", self.answered, data={"number": number})
elsewhere = response.url.replace("127.0.0.1", "localhost")
yield scrapy.http.JsonRequest(elsewhere + "api", self.answered, data={})
"""
MORE = """
allowed_domains = ["127.0.0.1"]

def answered(self, response):
    yield scrapy.http.JsonRequest(response.urljoin("/more"), self.more, data=response.json())

def more(self, response):
    yield response.json()
    yield response.request  # again and again, which Scrapy's filter refuses
"""


def test_what_comes_by_post_behind_a_page_is_asked_for_again(site, tmp_path):
    """A GET page that stays the same leads to a price that does not: once in each run all behind it is new."""
    state = {"price": 1}

    async def api(request):
        number = (await request.json())["number"]
        return web.json_response({"number": number, "price": state["price"]})

    def more(request):
        state["price"] += len(site.visits("/more")) == 2  # after the first two
        return web.json_response({"price": state["price"]})

    site.page("/api", api)
    site.page("/more", more)
    text = spider([site.page("/", "<p>stays the same</p>")], BEHIND, also=MORE)
    project = Project(tmp_path, text, CLOSESPIDER_ITEMCOUNT=2)
    prices = []
    for _ in range(2):
        crawl = project.run()
        assert crawl.stats["finish_reason"] == "closespider_itemcount"
        prices += [item["price"] for item in crawl.items]
    assert (min(prices), max(prices)) == (1, 2)
    # Two of each kind in each run, and none elsewhere.
    assert len(site.visits("/api")) == len(site.visits("/more")) == 4
    assert all(headers["host"].startswith("127.0.0.1") for _, headers in site.requests)


SLOW = """
import asyncio


class Slow:
    async def process_item(self, item, spider=None):
        await asyncio.sleep(2.5)
        return item
"""
RAISES = """
if "broken" in response.url:
    raise ValueError("always")
yield {"url": response.url}
"""


def test_what_is_on_its_way_is_not_sent_again_and_what_always_fails_ever_more_rarely(site, tmp_path):
    """A pipeline slower than the next visit gets an item once; a callback that raises is named by the status."""
    urls = [site.page(f"/{name}", f"<p>{name}</p>") for name in ("fine", "broken")]
    pipelines = {"spider_under_test.Slow": 1}
    text = spider(urls, RAISES, before=SLOW)
    settings = {"error_interval": 1000, "ITEM_PIPELINES": pipelines}
    crawl = Project(tmp_path, text, bandwidth="20/s", seconds=5, **settings).run()
    assert crawl.stats["item_scraped_count"] == 1
    assert crawl.stats["crawlsched/deliveries/under_way"] >= 2
    n_failures = crawl.stats["spider_exceptions/ValueError"]
    assert len(site.visits("/broken")) == n_failures <= 3  # of fifty visits that there would be
    owner = crawl.read(lambda store: store.owner())
    assert owner.status["failing_callbacks"] == {"parse": n_failures}


def test_one_pass_tries_every_page_once_and_recrawl_delivers_what_has_not_changed(site, tmp_path):
    """Gone pages count after one try; a number ends the run after so many visits; recrawl takes a pattern."""
    urls = [site.page(f"/{number}", f"<p>{number}</p>", etag=f'"{number}"') for number in (1, 2, 3)]
    text = spider([*urls, site.url("/gone")], 'yield {"url": response.url[-1]}')
    project = Project(tmp_path, text, one_pass=True)

    def delivered(**settings):
        return "".join(sorted(item["url"] for item in project.run(**settings).items))

    crawl = project.run()
    assert (len(crawl.items), crawl.stats["finish_reason"], crawl.stats["crawlsched/resolved"]) == (3, "finished", 4)
    project.rewrite(text.replace("start_urls", "not_start_urls"))
    crawl = project.run()
    assert (crawl.items, crawl.stats["crawlsched/resolved"], len(site.visits("/gone"))) == ([], 4, 2)
    crawl = project.run(one_pass=2)
    assert (crawl.items, crawl.stats["crawlsched/resolved"]) == ([], 2)
    said = crawl.said("recrawl", "--pattern", "*/1")
    assert "1 page will be crawled and delivered first when a crawl starts" in said
    crawl.said("recrawl", urls[1])
    assert [delivered(), delivered()] == ["12", ""]
    crawl.said("recrawl", "--all")
    assert delivered() == "123"
    project.rewrite(text)
    assert delivered() == "123"  # start requests are called back at every start
    assert "127.0.0.1  known  4 times" in crawl.said("withheld", "--reason", "known")


CLOSES = """
with open("seen.txt", "a") as file:
    print(response.url, file=file)
yield from response.follow_all(css="a")
if response.url.endswith("/2"):
    raise scrapy.exceptions.CloseSpider("enough")
"""


def test_a_callback_that_closes_the_spider_has_finished_with_its_page(site, tmp_path):
    """CloseSpider is the spider's word: the next run goes on behind that page, and does not begin with it again."""
    urls = [site.page(f"/{number}", f"<a href='/{number + 1}'>{number}</a>" * (number < 5)) for number in range(6)]
    project = Project(tmp_path, spider(urls[:1], CLOSES), one_pass=True, CONCURRENT_REQUESTS=1)
    for _ in range(3):
        project.run()
    seen = project.lines("seen.txt")
    assert set(seen) == set(urls)
    assert seen.count(urls[2]) == 1, seen


FED = """
@classmethod
def from_crawler(cls, crawler, *args, **kwargs):
    spider = super().from_crawler(crawler, *args, **kwargs)
    crawler.signals.connect(spider.idle, scrapy.signals.spider_idle)
    return spider

def idle(self):
    self.n_idle += 1
    if self.n_idle > 1:
        self.crawler.engine.crawl(scrapy.Request(f"{self.start_urls[0]}fed{self.n_idle}"))
    if self.n_idle == 1:
        raise scrapy.exceptions.DontCloseSpider

n_idle = 0
"""


def test_a_spider_that_is_fed_when_it_is_idle_is_asked_again(site, tmp_path):
    """Its queue was empty the first time, and later there is something each time."""
    site.default = lambda request: f"<p>{request.path}</p>"
    fed = spider([site.url("/")], before="import scrapy.signals", also=FED)
    Project(tmp_path, fed).run_until(lambda: site.visits("/fed4"))


def test_a_crawl_by_post_that_is_stopped_again_and_again_goes_on(site, tmp_path):
    """What JOBDIR has kept goes before what the start page makes again, and what was not sent is kept."""
    site.default = lambda request: f"<p>{request.path}</p>"
    settings = {"JOBDIR": tmp_path / "job", "CONCURRENT_REQUESTS": 1, "CLOSESPIDER_ITEMCOUNT": 3, "one_pass": True}
    project = Project(tmp_path, spider([site.url("/")], DETAILS, also=DETAIL), bandwidth="20/s", **settings)
    found = set()
    for n in (3, 6, 8):  # a busy machine ends a crawl some items later
        found |= {item["number"] for item in project.run().items}
        assert n <= len(found) <= 8
