"""One line installs everything, and where it does not, one line in the log says why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import children
from tests.crawling import Project
from tests.site import Site

SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = [{url!r}]

    def parse(self, response):
        yield {{"url": response.url, "changed": response.meta.get("crawlsched_changed")}}
"""


@pytest.fixture
def site():  # type: ignore[no-untyped-def]
    with Site() as site:
        site.page("/", "<p>hello</p>")
        yield site


@pytest.mark.quick
def test_one_line_in_the_settings_is_enough(site: Site, tmp_path: Path) -> None:
    """The page is visited again and again, and the store knows it."""
    crawl = Project(tmp_path, SPIDER.format(url=site.url("/")), TEST_CLOSE_AFTER_RESOLVED="5").run()
    assert crawl.stats["crawlsched/resolved/changed"] == 1
    assert crawl.stats["crawlsched/resolved/unchanged"] >= 4
    assert crawl.stats["item_scraped_count"] == 1
    assert list(crawl.outcomes()) == [site.url("/")]


def test_a_scheduler_of_the_projects_own_is_left_in_its_place(site: Site, tmp_path: Path) -> None:
    """Nothing of ours is half there, and one line says how to have crawlsched."""
    project = Project(tmp_path, SPIDER.format(url=site.url("/")), SCHEDULER="scrapy.core.scheduler.Scheduler")
    crawl = project.run()
    assert crawl.stats["finish_reason"] == "finished"
    assert not any(name.startswith("crawlsched/") for name in crawl.stats)
    lines = [line for line in crawl.log.splitlines() if "remove SCHEDULER" in line]
    assert len(lines) == 1
    assert "SCHEDULER is set to 'scrapy.core.scheduler.Scheduler'" in lines[0]


def test_a_download_delay_that_limits_the_rate_is_said_once(site: Site, tmp_path: Path) -> None:
    """The startproject template writes DOWNLOAD_DELAY = 1; one line says what follows."""
    project = Project(tmp_path, SPIDER.format(url=site.url("/")), DOWNLOAD_DELAY="1", TEST_CLOSE_AFTER_RESOLVED="1")
    lines = [line for line in project.run().log.splitlines() if "DOWNLOAD_DELAY = 1" in line]
    assert len(lines) == 1
    assert "with 50 hosts or fewer the crawl stays below the 50 a second" in lines[0]


def test_wrong_settings_stop_the_start_with_a_sentence_each(site: Site, tmp_path: Path) -> None:
    """The crawl does not start, nothing is fetched, and each mistake has its sentence."""
    project = Project(
        tmp_path, SPIDER.format(url=site.url("/")), CRAWLSCHED_BANDWIDTH="-3", CRAWLSCHED_SOURCE_INTERVALL="5"
    )
    crawl = project.run()
    assert crawl.returncode == 1
    assert "ERROR: crawlsched cannot start: CRAWLSCHED_BANDWIDTH must be " in crawl.log
    assert "Traceback" not in crawl.log
    assert "CRAWLSCHED_SOURCE_INTERVALL is not a setting; did you mean CRAWLSCHED_SOURCE_INTERVAL?" in crawl.log
    assert site.requests == []


def _run_in_a_project(folder: Path, site: Site, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Scrapy's in a project that has the add-on and a spider."""
    package = folder / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "settings.py").write_text(
        "BOT_NAME = 'shop'\nSPIDER_MODULES = ['shop.spiders']\nADDONS = {'crawlsched.Addon': 500}\n"
        "TELNETCONSOLE_ENABLED = False\nREMOTE_CONTROL_ENABLED = False\n"
    )
    (package / "spiders.py").write_text(SPIDER.format(url=site.url("/")))
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    return children.run(sys.executable, "-m", "scrapy", *arguments, cwd=folder, timeout=30)


@pytest.mark.parametrize("command", ["fetch", "parse"])
def test_commands_for_single_urls_end_as_without_us(site: Site, tmp_path: Path, command: str) -> None:
    """`scrapy fetch` and `scrapy parse` with a spider of the project fetch one URL and end."""
    ran = _run_in_a_project(tmp_path, site, command, "--spider", "test", site.url("/"))
    assert ran.returncode == 0
    assert "hello" in ran.stdout or "'url'" in ran.stdout
    assert len(site.visits("/")) == 1
    assert not (tmp_path / "crawlsched.db").exists()


def test_shell_is_a_shell(site: Site, tmp_path: Path) -> None:
    """`scrapy shell` fetches what it is told and nothing else."""
    ran = _run_in_a_project(tmp_path, site, "shell", "--spider", "test", "-c", "response.text", site.url("/"))
    assert "hello" in ran.stdout
    assert len(site.visits("/")) == 1


def test_other_commands_are_none_of_ours(site: Site, tmp_path: Path) -> None:
    """`scrapy check` ends as without us, and makes no database."""
    ran = _run_in_a_project(tmp_path, site, "check")
    assert ran.returncode == 0
    assert "OK" in ran.stderr
    assert not (tmp_path / "crawlsched.db").exists()


SCRIPT = """
import gc
import sys
import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.test import get_crawler

class First(scrapy.Spider):
    name = "first"
    start_urls = [{url!r}]
    got = []

    def parse(self, response):
        self.got.append((self.name, getattr(self, "tag", None)))

class Second(First):
    name = "second"

settings = {{
    "ADDONS": {{"crawlsched.Addon": 500}},
    "CRAWLSCHED_COLLECTION": "{{name}}-{{tag}}",
    "CRAWLSCHED_ONE_PASS": 6,
    "CRAWLSCHED_BANDWIDTH": "20/s",
    "CRAWLSCHED_PROBES": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "LOG_LEVEL": "WARNING",
}}
gc.disable()
process = AsyncCrawlerProcess(settings)
before = sys.getswitchinterval(), gc.get_threshold()
for spider, tag in ((First, "a"), (First, "b"), (Second, "a")):
    process.crawl(spider, tag=tag)
process.start()
print(sorted(First.got), (sys.getswitchinterval(), gc.get_threshold()) == before, process.bootstrap_failed)
gc.set_debug(gc.DEBUG_SAVEALL)
gc.collect()
print(sum(type(found).__name__ in ("NotForTheSpider", "HtmlResponse", "TextResponse") for found in gc.garbage))
crawler = get_crawler(First, settings)
print(crawler.settings["SCHEDULER"].__module__)
"""


def test_several_crawls_in_one_script(site: Site, tmp_path: Path) -> None:
    """One spider twice with other arguments, another beside it: each its collection, and nothing is left behind.

    Nor does a visit that finds nothing new leave anything to the garbage collector.
    """
    (tmp_path / "script.py").write_text(SCRIPT.format(url=site.url("/")))
    ran = children.run(sys.executable, "-W", "error", "script.py", cwd=tmp_path, timeout=60)
    assert ran.stdout.splitlines() == [
        "[('first', 'a'), ('first', 'b'), ('second', 'a')] True False",
        "0",
        "crawlsched.addon.scheduler",
    ], ran.stderr[-3000:]
    assert "WARNING" not in ran.stderr


TWICE = """
import sys
import scrapy
from scrapy.crawler import {process}

class Spider(scrapy.Spider):
    name = "test"
    start_urls = [{url!r}]

process = {process}({{
    "ADDONS": {{"crawlsched.Addon": 500}},
    "CRAWLSCHED_ONE_PASS": True,
    "CRAWLSCHED_BANDWIDTH": "20/s",
    "CRAWLSCHED_PROBES": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
}})
crawlers = [process.create_crawler(Spider) for _ in range(2)]
for crawler in crawlers:
    process.crawl(crawler)
process.start()
print([crawler.stats.get_value("finish_reason") for crawler in crawlers])
"""


@pytest.mark.parametrize("process", ["CrawlerProcess", "AsyncCrawlerProcess"])
def test_a_second_crawl_of_a_collection_in_one_script_ends_at_once(site: Site, tmp_path: Path, process: str) -> None:
    """The first goes on to its end; a sentence and the finish reason say why the second did not begin."""
    (tmp_path / "script.py").write_text(TWICE.format(process=process, url=site.url("/")))
    ran = children.run(sys.executable, "script.py", cwd=tmp_path, timeout=60)
    assert "ERROR: crawlsched cannot start: The collection 'test' is owned by another running" in ran.stderr
    assert ran.stdout == "['finished', 'crawlsched_cannot_start']\n"


IN_TURN = """
import asyncio
import scrapy
from scrapy.utils.reactor import install_reactor
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from scrapy.crawler import CrawlerRunner
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.task import react

class Spider(scrapy.Spider):
    name = "test"
    start_urls = [{url!r}]

    def parse(self, response):
        print("delivered")

async def main(reactor):
    settings = {{
        "ADDONS": {{"crawlsched.Addon": 500}},
        "CRAWLSCHED_ONE_PASS": True,
        "CRAWLSCHED_BANDWIDTH": "20/s",
        "CRAWLSCHED_PROBES": False,
    }}
    runner = CrawlerRunner(settings)
    for _ in range(2):
        await maybe_deferred_to_future(runner.crawl(Spider))

react(lambda reactor: deferred_from_coro(main(reactor)))
"""


def test_crawls_of_a_collection_in_one_script_follow_one_another(site: Site, tmp_path: Path) -> None:
    """What one has crawled the next goes on with."""
    (tmp_path / "script.py").write_text(IN_TURN.format(url=site.url("/")))
    ran = children.run(sys.executable, "script.py", cwd=tmp_path, timeout=60)
    assert (ran.returncode, ran.stdout.splitlines()) == (0, ["delivered", "delivered"]), ran.stderr[-3000:]


def test_one_database_from_wherever_the_project_is_started(site: Site, tmp_path: Path) -> None:
    """The path counts from where scrapy.cfg is; other arguments than those of the last crawl are said."""
    options = ["-s", "CRAWLSCHED_ONE_PASS=True", "-s", "CRAWLSCHED_PROBES=False", "-s", "CRAWLSCHED_BANDWIDTH=20/s"]
    first = _run_in_a_project(tmp_path, site, "crawl", "test", "-a", "tag=love", *options)
    assert first.returncode == 0, first.stderr[-2000:]
    command = [sys.executable, "-m", "scrapy", "crawl", "test", "-a", "tag=humor", *options]
    second = children.run(*command, cwd=tmp_path / "shop", timeout=60)
    assert [path.name for path in tmp_path.glob("**/crawlsched.db")] == ["crawlsched.db"]
    assert "The collection 'test' was last crawled with another 'tag'" in second.stderr
    assert "CRAWLSCHED_COLLECTION = '{name}-{tag}' keeps them apart" in second.stderr
