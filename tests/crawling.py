"""Real crawls for tests: a spider in a process of its own, with the add-on installed by its one line."""

import json
import re
import signal
import subprocess
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from scrapy.settings.default_settings import EXTENSIONS_BASE

from crawlsched.store import ObservationRow, PageFacts, Store
from tests import children
from tests.commands import report, run_here, said
from tests.prepared import Prepared
from tests.waiting import wait_until

Read = TypeVar("Read")

#: What a callback does that follows all links of a page.
FOLLOWS = 'yield from response.follow_all(css="a")'
#: What a callback does that yields an item for each page.
YIELDS = 'yield {"url": response.url}'
#: Names of settings that most crawls of tests have. Any other name in small letters is a setting of ours.
SHORT = {"seconds": "CLOSESPIDER_TIMEOUT", "visits": "TEST_CLOSE_AFTER_RESOLVED"}

_SPIDER = """
import scrapy

{before}

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}

    def parse(self, response):
{parse}

{also}
"""

_CLOSER = '''
import json
from scrapy import signals
from crawlsched.scrapy_versions import call_later, close_spider

class _Closer:
    """Write the statistics down at the end, and end when so many visits are resolved."""

    @classmethod
    def from_crawler(cls, crawler):
        self = cls()
        self.crawler = crawler
        crawler.signals.connect(self.closed, signals.spider_closed)
        crawler.signals.connect(self.look, signals.spider_opened)
        return self

    def look(self):
        wanted = self.crawler.settings.getint("TEST_CLOSE_AFTER_RESOLVED")
        if wanted and self.crawler.stats.get_value("crawlsched/resolved", 0) >= wanted:
            close_spider(self.crawler.engine, "enough")
        else:
            call_later(0.02, self.look)

    def closed(self, reason):
        stats = {k: v for k, v in self.crawler.stats.get_stats().items() if isinstance(v, (int, float, str))}
        with open(self.crawler.settings["TEST_STATS_FILE"], "w") as file:
            json.dump(stats, file)
'''

# Without its remote control Scrapy does not load aiohttp, a tenth of the processor time of a short crawl.
_EXTENSIONS = {name: at for name, at in EXTENSIONS_BASE.items() if "remote_control" not in name}


def spider(urls: Sequence[str], parse: str = "pass", *, before: str = "", also: str = "") -> str:
    """Write a spider that begins with some URLs: its callback, what stands before its class, and what else in it."""
    parse, also = (textwrap.indent(textwrap.dedent(code), " " * n) for code, n in ((parse, 8), (also, 4)))
    return _SPIDER.format(urls=list(urls), parse=parse, before=textwrap.dedent(before), also=also)


def named(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return settings by their full names, as texts that Scrapy reads."""
    return {
        SHORT.get(name, name if name.isupper() else f"CRAWLSCHED_{name.upper()}"): json.dumps(value)
        if isinstance(value, (dict, list))
        else str(value)
        for name, value in settings.items()
    }


@dataclass
class Crawl:
    """What is left of a crawl that has ended."""

    stats: dict[str, Any]
    log: str
    returncode: int
    database_url: str
    collection: str = "test"
    items: list[dict[str, Any]] = field(default_factory=list)

    def read(self, ask: Callable[[Store], Read]) -> Read:
        """Return what the crawl's collection answers."""
        with closing(Store.open(self.database_url, self.collection, read_only=True)) as store:
            return ask(store)

    def visits(self, page: int = 0) -> list[ObservationRow]:
        """Return the visits of a page, oldest first."""
        return self.read(lambda store: store.reader.observations_of(page, limit=10_000))[::-1]

    def pages(self) -> dict[str, PageFacts]:
        """Return what is known of each URL."""

        def facts(store: Store) -> list[PageFacts | None]:
            return [facts for block in store.load() for facts in store.reader.facts(block["page"])]

        return {page.url: page for page in self.read(facts) if page is not None}

    def outcomes(self) -> dict[str, list[str]]:
        """Return the outcomes of each URL's visits, oldest first."""
        pages = self.pages()

        def ends(store: Store, page: int) -> list[str]:
            return [row.outcome for row in store.reader.observations_of(page, limit=10_000)][::-1]

        return self.read(lambda store: {url: ends(store, page.page) for url, page in pages.items()})

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command about the crawl's database."""
        return run_here(Path.cwd(), *arguments, "--database", self.database_url)

    def said(self, *arguments: str) -> str:
        """Return what a command says of the crawl."""
        return said(*arguments, "--database", self.database_url)

    def report(self, *arguments: str) -> Any:
        """Return the JSON of a command about the crawl."""
        return report(*arguments, "--database", self.database_url)


class Project:
    """A spider in a file, with settings, that can be run and stopped.

    Parameters
    ----------
    folder : Path
        Where it lies and runs.
    spider : str or sequence of str
        Its text; or URLs, which it visits.
    python : Path, optional
        Another Python, which has an installation of its own and does not see this tree.
    **settings
        Of Scrapy in capitals; in small letters ours without their prefix, or one of `SHORT`.
    """

    def __init__(
        self, folder: Path, spider: str | Sequence[str], *, python: Path | None = None, **settings: Any
    ) -> None:
        self.folder = folder
        self.python = python  # None: `tests.prepared` starts it
        given = named({"database_url": f"sqlite:///{folder / 'crawl.db'}", **settings})
        self.database_url = given["CRAWLSCHED_DATABASE_URL"]
        self.file = folder / "spider_under_test.py"
        self.rewrite(spider)
        self.settings: dict[str, Any] = {
            "ADDONS": json.dumps({"crawlsched.Addon": 500}),
            "EXTENSIONS": json.dumps({"spider_under_test._Closer": 1}),
            "FEEDS": json.dumps({str(folder / "items.jl"): {"format": "jsonlines"}}),
            "CRAWLSCHED_BANDWIDTH": "50/s",
            "TELNETCONSOLE_ENABLED": "False",
            **({} if python else {"EXTENSIONS_BASE": json.dumps(_EXTENSIONS)}),  # another Python has another Scrapy
            "DOWNLOAD_DELAY": "0",
            # The sites of tests are on loopback.
            "CRAWLSCHED_PRIVATE_ADDRESSES": "127.0.0.0/8",
            # These make requests of their own, or choose at random: only tests that are about them have them.
            "CRAWLSCHED_FIND_SOURCES": "False",
            "CRAWLSCHED_PROBES": "False",
            "CRAWLSCHED_WITHHOLD": '{"wrong_page": false}',
            "CRAWLSCHED_CONDITIONAL_REQUESTS": "always",
            "LOG_LEVEL": "INFO",
            "TEST_STATS_FILE": str(folder / "stats.json"),
            "CLOSESPIDER_TIMEOUT": "20",
            **given,
        }

    def rewrite(self, given: str | Sequence[str]) -> None:
        """Give it another spider."""
        text = given if isinstance(given, str) else spider(given)
        self.file.write_text(_CLOSER + textwrap.dedent(text))

    def start(self, **settings: Any) -> subprocess.Popen[str] | Prepared:
        """Start the crawl and return its process."""
        (self.folder / "items.jl").unlink(missing_ok=True)
        options = [f"-s{name}={value}" for name, value in {**self.settings, **named(settings)}.items()]
        arguments = ["runspider", self.file.name, *options]
        log = self.folder / "crawl.log"
        if self.python is None:
            log.write_text("")
            return Prepared(arguments, self.folder, log)
        with log.open("w") as file:
            return children.start(
                *(self.python, "-W", "error", "-m", "scrapy", *arguments),
                cwd=self.folder,
                environment={"PYTHONPATH": str(self.folder)},
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def finish(self, process: subprocess.Popen[str] | Prepared, timeout: float = 40.0) -> Crawl:
        """Wait for the end of a crawl."""
        try:
            returncode = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the crawl did not end:\n{self.log()[-3000:]}") from None
        stats_file, feed = self.folder / "stats.json", self.folder / "items.jl"
        stats = json.loads(stats_file.read_text()) if stats_file.exists() else {}
        stats_file.unlink(missing_ok=True)
        items = [json.loads(line) for line in self.lines("items.jl")] if feed.exists() and returncode >= 0 else []
        return Crawl(stats, self.log(), returncode, self.database_url, items=items)

    def so_far(self) -> Crawl:
        """Return what a crawl that goes on has stored up to now."""
        return Crawl({}, self.log(), 0, self.database_url)

    def run(self, timeout: float = 40.0, **settings: Any) -> Crawl:
        """Run the crawl to its end."""
        return self.finish(self.start(**settings), timeout)

    def run_until(self, is_so: Callable[[], object], timeout: float = 90.0, **settings: Any) -> Crawl:
        """Run the crawl until something is so, and end it then as a person would."""
        process = self.start(**{"seconds": 0, **settings})
        wait_until(is_so, timeout, lambda: self.log()[-3000:])
        return self.end(process)

    def end(self, process: subprocess.Popen[str] | Prepared, number: int = signal.SIGTERM) -> Crawl:
        """End a crawl as a person would, and wait for it."""
        process.send_signal(number)
        return self.finish(process)

    def kill(self, process: subprocess.Popen[str] | Prepared) -> Crawl:
        """End a crawl in the middle of whatever it does."""
        return self.end(process, signal.SIGKILL)

    def log(self) -> str:
        """Return what the crawl has logged."""
        return (self.folder / "crawl.log").read_text()

    def lines(self, name: str) -> list[str]:
        """Return the whole lines of a file of its folder, which may be written meanwhile; none, if it is not there."""
        file = self.folder / name
        return file.read_text().rpartition("\n")[0].splitlines() if file.exists() else []

    def wait_for_log(self, text: str, timeout: float = 20.0) -> None:
        """Wait until the crawl has logged something."""
        wait_until(lambda: text in self.log(), timeout, lambda: f"Never logged {text!r}:\n{self.log()[-3000:]}")

    def receiver_address(self) -> tuple[str, int]:
        """Wait until pings are received, and return where."""
        self.wait_for_log("Pings are received at")
        found = re.search(r"Pings are received at http://([\d.]+):(\d+)", self.log())
        return found[1], int(found[2])
