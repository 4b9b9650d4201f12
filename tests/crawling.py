"""Real crawls for tests: a spider in a process of its own, with the add-on installed by its one line."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy.settings.default_settings import EXTENSIONS_BASE

from crawlsched.store import Store
from tests import children
from tests.prepared import Prepared

#: A spider that visits some URLs, and does nothing else.
VISITING_SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}

    def parse(self, response):
        pass
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
        crawler.signals.connect(self.opened, signals.spider_opened)
        return self

    def opened(self):
        self.look()

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


@dataclass
class Crawl:
    """What is left of a crawl that has ended."""

    stats: dict[str, Any]
    log: str
    returncode: int
    database_url: str
    collection: str = "test"

    def store(self) -> Store:
        """Open the crawl's collection to look at it."""
        return Store.open(self.database_url, self.collection, read_only=True)

    def outcomes(self) -> dict[str, list[str]]:
        """Return the outcomes of each URL's visits, oldest first."""
        store = self.store()
        try:
            found: dict[str, list[str]] = {}
            for block in store.load():
                for facts in store.reader.facts(block["page"]):
                    assert facts is not None
                    rows = store.reader.observations_of(facts.page, limit=10_000)
                    found[facts.url] = [row.outcome for row in reversed(rows)]
            return found
        finally:
            store.close()


class Project:
    """A spider in a file, with settings, that can be run and stopped."""

    def __init__(self, folder: Path, spider: str, *, python: Path | None = None, **settings: Any) -> None:
        self.folder = folder
        # Another Python has an installation of its own, and does not see this tree; None: `tests.prepared` starts it.
        self.python = python
        self.database_url = f"sqlite:///{folder / 'crawl.db'}"
        self.file = folder / "spider_under_test.py"
        self.file.write_text(_CLOSER + textwrap.dedent(spider))
        self.settings: dict[str, Any] = {
            "ADDONS": json.dumps({"crawlsched.Addon": 500}),
            "EXTENSIONS": json.dumps({"spider_under_test._Closer": 1}),
            "CRAWLSCHED_DATABASE_URL": self.database_url,
            "CRAWLSCHED_BANDWIDTH": "50/s",
            "TELNETCONSOLE_ENABLED": "False",
            **({} if python else {"EXTENSIONS_BASE": json.dumps(_EXTENSIONS)}),  # another Python has another Scrapy
            "DOWNLOAD_DELAY": "0",
            # The sites of tests are on loopback, and name their sitemaps.
            "CRAWLSCHED_PRIVATE_ADDRESSES": "127.0.0.0/8",
            # These make requests of their own, or choose at random: only tests that are about them have them.
            "CRAWLSCHED_PROBES": "False",
            "CRAWLSCHED_WITHHOLD": '{"wrong_page": false}',
            "CRAWLSCHED_CONDITIONAL_REQUESTS": "always",
            "LOG_LEVEL": "INFO",
            "TEST_STATS_FILE": str(folder / "stats.json"),
            "CLOSESPIDER_TIMEOUT": "20",
            **settings,
        }

    def start(self, **settings: Any) -> subprocess.Popen[str] | Prepared:
        """Start the crawl and return its process."""
        options = [f"-s{name}={value}" for name, value in {**self.settings, **settings}.items()]
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
        stats_file = self.folder / "stats.json"
        stats = json.loads(stats_file.read_text()) if stats_file.exists() else {}
        stats_file.unlink(missing_ok=True)
        return Crawl(stats, self.log(), returncode, self.database_url)

    def so_far(self) -> Crawl:
        """Return what a crawl that goes on has stored up to now."""
        return Crawl({}, self.log(), 0, self.database_url)

    def run(self, timeout: float = 40.0, **settings: Any) -> Crawl:
        """Run the crawl to its end."""
        return self.finish(self.start(**settings), timeout)

    def log(self) -> str:
        """Return what the crawl has logged."""
        return (self.folder / "crawl.log").read_text()

    def wait_for_log(self, text: str, timeout: float = 20.0) -> None:
        """Wait until the crawl has logged something."""
        until = time.monotonic() + timeout
        while text not in self.log():
            assert time.monotonic() < until, f"never logged {text!r}:\n{self.log()[-3000:]}"
            time.sleep(0.05)

    def receiver_address(self) -> tuple[str, int]:
        """Wait until pings are received, and return where."""
        self.wait_for_log("Pings are received at")
        found = re.search(r"Pings are received at http://([\d.]+):(\d+)", self.log())
        assert found is not None
        return found[1], int(found[2])
