"""What counts as a change in a crawl: recipes by host and request, flapping, small changes, wrong pages, kept texts."""

import itertools
from collections import Counter
from collections.abc import Callable

from aiohttp import web

from tests.crawling import Crawl, Project, spider

CHANGED = 'yield {"changed": response.meta.get("crawlsched_changed")}'
WITH_META = """
async def start(self):
    for url in self.start_urls:
        yield scrapy.Request(url, meta={meta!r})
"""


def in_turn(texts: Callable[[int], str], content_type: str = "text/html") -> Callable[[web.Request], web.Response]:
    count = itertools.count()
    return lambda request: web.Response(text=texts(next(count)), content_type=content_type)


def outcomes_of(crawl: Crawl) -> dict[str, list[str]]:
    """Outcomes of each URL's visits, without those that the end of the crawl cut short."""
    return {url: [outcome for outcome in found if outcome != "dropped"] for url, found in crawl.outcomes().items()}


def article(number: int, edit: str = "water") -> str:
    return (
        f"<h1>Article {number}</h1><p>Number {number} tells of leaves and {edit}, of cups and all that is {number}.</p>"
    )


def test_recipes_are_chosen_by_pattern_host_and_request(site, tmp_path):
    """JSON without its time does not change, raw bytes do, and the request's own word goes before both."""
    stamped = site.page("/api/1", in_turn(lambda n: f'{{"a": 1, "now": {n}}}', "application/json"))
    plain = site.page("/raw", in_turn(lambda n: f"<p>Tea</p><!-- {n} -->"))
    chosen = {"*/api/*": {"method": "json", "ignore_keys": ["now"]}, "127.0.0.1": "raw_bytes"}
    outcomes = outcomes_of(Project(tmp_path, [stamped, plain], fingerprints=chosen, visits=10).run())
    assert set(outcomes[stamped][1:]) == {"unchanged"}
    assert set(outcomes[plain]) == {"changed"}
    other = site.page("/other", in_turn(lambda n: f"<p>Tea</p><!-- {n} -->"))
    meta = {"crawlsched_recipe": "visible_text"}
    asks = spider([other], also=WITH_META.format(meta=meta))
    crawl = Project(tmp_path, asks, fingerprints=chosen, visits=10, database_url=f"sqlite:///{tmp_path}/other.db").run()
    assert set(outcomes_of(crawl)[other][1:]) == {"unchanged"}
    # It is kept with the page: a crawl that finds the page in its database goes by it.
    assert crawl.pages()[other].template_data == {"meta": meta}


def test_a_page_that_rotates_stops_being_changed_and_one_that_returns_does_not(site, tmp_path):
    """Two variants at each fetch: soon nothing is delivered. Sold out and to be had again, then it is news."""
    rotates = site.page("/rotates", in_turn(lambda n: article(1, "ab"[n % 2])))
    returns = site.page("/returns", in_turn(lambda n: article(2, "ab"[n // 6 % 2])))
    crawl = Project(
        tmp_path, spider([rotates, returns], CHANGED), probes=True, crawl_value="round_robin", visits=60
    ).run()
    outcomes = outcomes_of(crawl)
    assert set(outcomes[rotates][10:]) <= {"flapping", "unchanged", "probed"}
    assert sum(row.changed is True for row in crawl.visits(crawl.pages()[rotates].page)) <= 4
    assert "flapping" not in outcomes[returns]
    assert outcomes[returns].count("changed") >= 4


def test_small_changes_are_not_delivered_below_the_threshold(site, tmp_path):
    """Of a hundred words one changes at each visit: with a threshold of a third only every tenth visit or so counts."""

    def text(n):
        return f"<p>{' '.join(f'word{k}' if k > 2 * n else f'edit{k}' for k in range(100))}</p>"

    url = site.page("/", in_turn(text))
    crawl = Project(tmp_path, [url], min_change=0.33, visits=25).run()
    rows = crawl.visits()
    changed = [row.changed for row in rows[:25]]
    assert changed[:3] == [None, False, False]
    assert 1 <= changed.count(True) <= 6
    assert all(row.similarity is not None and row.similarity < 0.67 for row in rows if row.changed)
    assert all(row.changed_share == 1.0 for row in rows if row.changed)


def test_a_log_in_wall_is_neither_a_change_nor_delivered(site, tmp_path):
    """While the wall stands its pages back off; when it is gone they are as they were; in the end it stands again."""
    wall = "<h1>Please log in</h1><p>To read on you need an account, which costs nothing at all.</p>"
    asked = itertools.count()

    def walled(text):
        def answer(request):
            n = next(asked)
            return wall if 25 <= n < 50 or n >= 70 else text

        return answer

    urls = [site.page(f"/paid/{n}", walled(article(n))) for n in range(6)]
    site.default = lambda request: wall
    # Backing off doubles it at each visit: from 0.2 s on, a busy machine did not come to the last wall in time.
    settings = {"withhold": True, "error_interval": 0.02}
    crawl = Project(tmp_path, spider(urls, CHANGED), visits=100, seconds=60, **settings).run(timeout=90)
    assert crawl.stats["finish_reason"] == "enough", crawl.log
    assert crawl.stats["crawlsched/resolved/wrong"] >= 6
    assert "crawlsched/changes_found" not in crawl.stats
    assert len(crawl.items) == 6
    assert sum(path.startswith("/paid/no-such-page-") for path, _ in site.requests) >= 1
    (url, *_) = [url for url, outcomes in crawl.outcomes().items() if outcomes[-1] == "wrong"]
    assert "was served in its place" in crawl.command("why", url).stdout
    status = crawl.report("status")
    assert status["last_hour"]["outcomes"]["wrong"] == crawl.stats["crawlsched/resolved/wrong"]
    (host,) = status["hosts"]
    assert (host["host"], host["wrong_pages"]) == ("127.0.0.1", 1)


def test_kept_texts_show_what_changed_and_stay_within_bounds(site, tmp_path):
    """`crawlsched why --diff` shows the line that went and the one that came; without texts it says how to get them."""
    url = site.page("/", in_turn(lambda n: article(1, "water" if n < 3 else "milk") + "<p>The same.</p>"))
    crawl = Project(tmp_path, [url], visits=6, kept_text_bytes=2000).run()
    answer = crawl.command("why", url, "--diff")
    assert "-Number 1 tells of leaves and water, of cups and all that is 1." in answer.stdout, answer
    assert "+Number 1 tells of leaves and milk, of cups and all that is 1." in answer.stdout
    assert 0 < crawl.read(lambda store: store.reader.bytes_of_texts()) <= 4000
    refused = crawl.command("why", site.url("/none"), "--diff")
    assert refused.returncode == 1
    site.page("/new", article(2))
    crawl = Project(tmp_path, [site.url("/new")], visits=4).run()
    refused = crawl.command("why", site.url("/new"), "--diff")
    assert refused.stderr.startswith(f"No text of {site.url('/new')} is kept; texts are kept of changes that are found")


STOPS = """
@classmethod
def from_crawler(cls, crawler):
    spider = super().from_crawler(crawler)
    crawler.signals.connect(spider.stop_after_the_headers, scrapy.signals.headers_received)
    return spider

def stop_after_the_headers(self, request):
    if request.url.endswith("/stopped"):
        raise scrapy.exceptions.StopDownload(fail=False)
"""
PARSE = 'yield {"path": response.url[-6:], "is_cut": bool({"dataloss", "download_stopped"} & set(response.flags))}'
# Which answers of each page are cut short, by their numbers.
CUT = {"/first": {0, 1}, "/later": {1, 2, 4}, "/every": set(range(1000)), "/stopped": set()}


def test_what_is_cut_short_is_delivered_once_and_counts_as_nothing(site, tmp_path):
    """Where nothing was delivered before, as by plain Scrapy; the whole body follows, and nothing has changed."""
    asked = Counter()

    async def answer(request):
        body = "".join(f"<p>paragraph {number} of {request.path}</p>" for number in range(60)).encode()
        is_cut = asked[request.path] in CUT[request.path]
        asked[request.path] += 1
        response = web.StreamResponse(headers={"Content-Type": "text/html", "Content-Length": str(len(body))})
        await response.prepare(request)
        await response.write(body[: len(body) // (2 if is_cut else 1)])
        if is_cut:
            request.transport.close()
        return response

    urls = [site.page(path, answer) for path in CUT]
    project = Project(tmp_path, spider(urls, PARSE, also=STOPS), bandwidth="5/s", seconds=16)
    crawl = project.run(DOWNLOAD_FAIL_ON_DATALOSS=False, CRAWLSCHED_ERROR_INTERVAL=2)
    items = Counter((item["path"], item["is_cut"]) for item in crawl.items)
    first, other = {("/first", True): 1, ("/first", False): 1}, {("/later", False): 1}
    assert items == {**first, **other, ("/every", True): 1, ("topped", True): 1}
    assert "crawlsched/changes_found" not in crawl.stats
    assert crawl.stats["crawlsched/truncated"] >= 8
    assert crawl.log.count(" were cut short after an earlier body had been delivered") == 1
    for path in ("/every", "/stopped"):
        assert 3 <= asked[path] <= 6  # soon, and ever more rarely
