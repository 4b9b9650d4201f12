"""The add-on: one line in a project's settings installs everything.

::

    ADDONS = {"crawlsched.Addon": 500}
"""

from __future__ import annotations

import logging
from typing import Self

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings
from scrapy.utils.misc import load_object
from scrapy.utils.spider import DefaultSpider

from crawlsched.addon.downloadermiddlewares import RefreshMiddleware
from crawlsched.addon.extensions import Refresh
from crawlsched.addon.scheduler import FALLBACK_SCHEDULER, Scheduler
from crawlsched.addon.spidermiddlewares import DeliveryMiddleware
from crawlsched.crawl.project import named_collection
from crawlsched.crawl.side_thread import share_one_heap
from crawlsched.exceptions import SettingError, require_posix
from crawlsched.scrapy_versions import running_command
from crawlsched.settings import Settings, said_of_gone

__all__ = ["Addon"]

logger = logging.getLogger(__name__)

# Nearest to the engine, the middleware gets decoded bodies after redirects and retries, and the requests that other
# middlewares refused.
_NEAREST = 25
_SCRAPYS_OWN = (
    # With Scrapy's limit of 16, one slow host would leave slots unused. The limit of 1,000 bounds the memory.
    ("CONCURRENT_REQUESTS", 1000, "CRAWLSCHED_BANDWIDTH limits the rate, and each host has its own limits"),
    # Scrapy's default starts 100 tasks for every response. They cost more than all other work on the response.
    ("CONCURRENT_ITEMS", 4, "fewer tasks for each response"),
)
# Only these commands run a spider (None: a script). Other commands fetch one URL at most.
_CRAWLING_COMMANDS = frozenset({"scrapy.commands.crawl", "scrapy.commands.runspider", None})


class Addon:
    """Install the scheduler, the middlewares and the extension.

    Settings are set with the priority "addon", so a project's own settings have precedence. If the project names a
    SCHEDULER of its own, nothing is installed, and one line in the log says why. The add-on is active in ``scrapy
    crawl``, ``scrapy runspider`` and scripts; all other commands behave as without it.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the add-on for a crawler."""
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the add-on's components to the settings."""
        spider = self._crawler.spider
        # Scrapy's test helpers apply the settings before there is a spider.
        name = getattr(spider or self._crawler.spidercls, "name", None) or "default"
        try:
            checked = Settings.from_scrapy(settings, name)
        except SettingError as error:
            if running_command() is None:  # in a script, which may catch the error
                raise
            for sentence in str(error).splitlines():
                logger.error("crawlsched cannot start: %s", sentence)
            raise SystemExit(1) from None
        for sentence in said_of_gone(settings):
            logger.warning("%s", sentence)
        if not settings.getbool("CRAWLSCHED_ENABLED", True):
            raise NotConfigured("CRAWLSCHED_ENABLED is False, so this crawl goes on without crawlsched.")
        require_posix()
        if running_command() not in _CRAWLING_COMMANDS:
            command = str(running_command()).rpartition(".")[2]
            raise NotConfigured(f"scrapy {command} is no crawl, so the spider's pages are left alone.")
        if issubclass(self._crawler.spidercls, DefaultSpider):
            raise NotConfigured("there is no spider, so no pages are kept.")
        if spider is not None and checked.collection is not None:
            named_collection(checked.collection, spider.name, vars(spider))  # raises if an argument is missing
        share_one_heap()
        self._install_scheduler(settings)
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", RefreshMiddleware, _NEAREST)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", DeliveryMiddleware, _NEAREST)
        settings.setdefault_in_component_priority_dict("EXTENSIONS", Refresh, 0)
        _set_unless_the_project_does(settings)
        _say_what_slows(settings, checked)

    def _install_scheduler(self, settings: BaseSettings) -> None:
        priority = settings.getpriority("SCHEDULER") or 0
        configured = settings["SCHEDULER"]
        if priority > SETTINGS_PRIORITIES["addon"]:
            # Not issubclass(): for Scrapy everything with a scheduler's methods is a subclass of every scheduler.
            if Scheduler in getattr(load_object(configured), "__mro__", ()):
                settings.set(FALLBACK_SCHEDULER, default_settings.SCHEDULER, "addon")
                return
            raise NotConfigured(
                f"SCHEDULER is set to {configured!r} by the project or the command line, and crawlsched is a "
                "scheduler itself, so this crawl goes on without it. To have it, remove SCHEDULER."
            )
        settings.set(FALLBACK_SCHEDULER, configured, "addon")
        settings.set("SCHEDULER", Scheduler, "addon")


def _set_unless_the_project_does(settings: BaseSettings) -> None:
    """Set two of Scrapy's own settings unless the project has set them, and log each with its reason."""
    changed = []
    for name, value, reason in _SCRAPYS_OWN:
        if (settings.getpriority(name) or 0) < SETTINGS_PRIORITIES["addon"]:
            settings.set(name, value, "addon")
            changed.append(f"{name} = {value} ({reason})")
    if changed:
        logger.info("crawlsched has set what the project leaves open: %s.", "; ".join(changed))


def _say_what_slows(settings: BaseSettings, checked: Settings) -> None:
    """Log one line when the project's own limits keep the crawl below its bandwidth."""
    delay = settings.getfloat("DOWNLOAD_DELAY")
    if delay > 0 and checked.bandwidth * delay >= 1:
        n_hosts = int(checked.bandwidth * delay)
        logger.warning(
            "DOWNLOAD_DELAY = %g lets each host be asked %.3g times a second at most, so with %s or fewer the crawl "
            "stays below the %.3g a second of CRAWLSCHED_BANDWIDTH; that limits the rate already, so set "
            "DOWNLOAD_DELAY = 0 (scrapy startproject writes 1) if the hosts can bear it.",
            delay,
            1 / delay,
            "1 host" if n_hosts == 1 else f"{n_hosts} hosts",
            checked.bandwidth,
        )
