"""Keep a collection of web pages fresh on a fixed crawl budget, as a Scrapy add-on."""

from typing import Any

from crawlsched.exceptions import NotThePage

__all__ = ["Addon", "NotThePage", "__version__"]

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    # `ADDONS = {"crawlsched.Addon": 500}` has to work, but `import crawlsched` must load neither Scrapy nor SQL.
    if name == "Addon":
        from crawlsched.addon import Addon

        return Addon
    raise AttributeError(f"module 'crawlsched' has no attribute {name!r}")
