"""One line installs everything, and where it does not, one line in the log says why."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import children
from tests.crawling import Project, spider
from tests.site import Site

ITEM = 'yield {"url": response.url, "changed": response.meta.get("crawlsched_changed")}'


@pytest.fixture
def site(site):
    site.page("/", "<p>hello</p>")
    return site


@pytest.mark.quick
def test_one_line_in_the_settings_is_enough(site, tmp_path):
    """The page is visited again and again, and the store knows it."""
    crawl = Project(tmp_path, spider([site.url("/")], ITEM), visits=5).run()
    assert crawl.stats["crawlsched/resolved/changed"] == 1
    assert crawl.stats["crawlsched/resolved/unchanged"] >= 4
    assert crawl.stats["item_scraped_count"] == 1
    assert list(crawl.outcomes()) == [site.url("/")]


def test_a_scheduler_of_the_projects_own_is_left_in_its_place(site, tmp_path):
    """Nothing of ours is half there, and one line says how to have crawlsched."""
    crawl = Project(tmp_path, [site.url("/")], SCHEDULER="scrapy.core.scheduler.Scheduler").run()
    assert crawl.stats["finish_reason"] == "finished"
    assert not any(name.startswith("crawlsched/") for name in crawl.stats)
    (line,) = [line for line in crawl.log.splitlines() if "remove SCHEDULER" in line]
    assert "SCHEDULER is set to 'scrapy.core.scheduler.Scheduler'" in line


def test_our_own_scheduler_may_be_named_by_the_project(site, tmp_path):
    """The add-on is whole then, too."""
    crawl = Project(tmp_path, [site.url("/")], SCHEDULER="crawlsched.addon.scheduler.Scheduler", visits=3).run()
    assert "remove SCHEDULER" not in crawl.log
    assert crawl.stats["crawlsched/resolved"] >= 3


def test_a_download_delay_that_limits_the_rate_is_said_once(site, tmp_path):
    """The startproject template writes DOWNLOAD_DELAY = 1; one line says what follows."""
    crawl = Project(tmp_path, [site.url("/")], DOWNLOAD_DELAY=1, visits=1).run()
    (line,) = [line for line in crawl.log.splitlines() if "DOWNLOAD_DELAY = 1" in line]
    assert "with 50 hosts or fewer the crawl stays below the 50 a second" in line


def test_wrong_settings_stop_the_start_with_a_sentence_each(site, tmp_path):
    """The crawl does not start, nothing is fetched, and each mistake has its sentence."""
    crawl = Project(tmp_path, [site.url("/")], bandwidth="-3", source_intervall=5).run()
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
    (package / "spiders.py").write_text(spider([site.url("/")], ITEM))
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    return children.run(sys.executable, "-m", "scrapy", *arguments, cwd=folder, timeout=30)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fetch", "--spider", "test", "URL"], "hello"),
        (["parse", "--spider", "test", "URL"], "'url'"),
        (["shell", "--spider", "test", "-c", "response.text", "URL"], "hello"),
        (["check"], "OK"),
    ],
    ids=["fetch", "parse", "shell", "check"],
)
def test_commands_for_single_urls_end_as_without_us(site, tmp_path, arguments, said):
    """They fetch the one URL that they are told, if any, and make no database."""
    ran = _run_in_a_project(tmp_path, site, *(argument.replace("URL", site.url("/")) for argument in arguments))
    assert ran.returncode == 0
    assert said in ran.stdout + ran.stderr
    assert len(site.visits("/")) == ("URL" in arguments)
    assert not (tmp_path / "crawlsched.db").exists()


def test_one_database_from_wherever_the_project_is_started(site, tmp_path):
    """The path counts from where scrapy.cfg is."""
    options = [f"-sCRAWLSCHED_{setting}" for setting in ("ONE_PASS=True", "PROBES=False", "BANDWIDTH=20/s")]
    first = _run_in_a_project(tmp_path, site, "crawl", "test", "-a", "tag=love", *options)
    assert first.returncode == 0, first.stderr[-2000:]
    command = [sys.executable, "-m", "scrapy", "crawl", "test", "-a", "tag=humor", *options]
    second = children.run(*command, cwd=tmp_path / "shop", timeout=60)
    assert [path.name for path in tmp_path.glob("**/crawlsched.db")] == ["crawlsched.db"]
    assert second.returncode == 0, second.stderr[-2000:]


# What all scripts below begin with.
SPIDER = """
import gc, sys
import scrapy
from scrapy.utils.reactor import install_reactor

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
    "CRAWLSCHED_ONE_PASS": True,
    "CRAWLSCHED_BANDWIDTH": "20/s",
    "CRAWLSCHED_PROBES": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "LOG_LEVEL": "WARNING",
}}
"""


def _run_script(folder: Path, site: Site, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(SPIDER.format(url=site.url("/")) + script)
    return children.run(sys.executable, *options, "script.py", cwd=folder, timeout=60)


BESIDE = """
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.test import get_crawler

settings |= {"CRAWLSCHED_COLLECTION": "{name}-{tag}", "CRAWLSCHED_ONE_PASS": 6}
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


def test_several_crawls_in_one_script(site, tmp_path):
    """One spider twice with other arguments, another beside it: each its collection, and nothing is left behind.

    Nor does a visit that finds nothing new leave anything to the garbage collector.
    """
    ran = _run_script(tmp_path, site, BESIDE, "-W", "error")
    assert ran.stdout.splitlines() == [
        "[('first', 'a'), ('first', 'b'), ('second', 'a')] True False",
        "0",
        "crawlsched.addon.scheduler",
    ], ran.stderr[-3000:]
    assert "WARNING" not in ran.stderr


TWICE = """
from scrapy.crawler import PROCESS

process = PROCESS(settings)
crawlers = [process.create_crawler(First) for _ in range(2)]
for crawler in crawlers:
    process.crawl(crawler)
process.start()
print([crawler.stats.get_value("finish_reason") for crawler in crawlers])
"""


@pytest.mark.parametrize("process", ["CrawlerProcess", "AsyncCrawlerProcess"])
def test_a_second_crawl_of_a_collection_in_one_script_ends_at_once(site, tmp_path, process):
    """The first goes on to its end; a sentence and the finish reason say why the second did not begin."""
    ran = _run_script(tmp_path, site, TWICE.replace("PROCESS", process))
    assert "ERROR: crawlsched cannot start: The collection 'first' is owned by another running" in ran.stderr
    assert ran.stdout == "['finished', 'crawlsched_cannot_start']\n"


IN_TURN = """
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from scrapy.crawler import CrawlerRunner
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.task import react

async def main(reactor):
    runner = CrawlerRunner(settings)
    for _ in range(2):
        await maybe_deferred_to_future(runner.crawl(First))
    print(len(First.got))

react(lambda reactor: deferred_from_coro(main(reactor)))
"""


def test_crawls_of_a_collection_in_one_script_follow_one_another(site, tmp_path):
    """What one has crawled the next goes on with."""
    ran = _run_script(tmp_path, site, IN_TURN)
    assert (ran.returncode, ran.stdout) == (0, "2\n"), ran.stderr[-3000:]
