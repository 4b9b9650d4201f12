"""Settings that there were before 0.2, and what to write in their place."""

from collections.abc import Mapping
from typing import Any

__all__ = ["NAMES", "refused", "said_of_gone"]

_PREFIX = "CRAWLSCHED_"
# What a crawl without it would do otherwise than was wished: it is refused.
_REFUSED = {
    "FINGERPRINT_IGNORE_KEYS": "CRAWLSCHED_FINGERPRINTS = {'*': {'method': 'json', 'ignore_keys': [...]}}",
    "FINGERPRINT_IMAGES": "CRAWLSCHED_FINGERPRINT_KEEP = ['html', 'img::attr(src)']",
    "FINGERPRINT_LINKS": "CRAWLSCHED_FINGERPRINT_KEEP = ['html', 'a::attr(href)']",
    "FINGERPRINT_TEMPLATE_EDITS": "CRAWLSCHED_WITHHOLD = {'template': False}",
    "HOURS": "CRAWLSCHED_BANDWIDTH = {'22:00-06:00': '20/s', 'else': '1/s'}",
    "MAX_CRAWL_INTERVAL": "CRAWLSCHED_PAGES = [('*', {'max_interval': '7d'})]",
    "MIN_CRAWL_INTERVAL": "CRAWLSCHED_PAGES = [('*', {'min_interval': '1h'})]",
    "RECEIVER_KEY": "CRAWLSCHED_RECEIVER = {'address': 8025, 'key': '...'}",
    "RECEIVER_URL": "CRAWLSCHED_RECEIVER = {'address': 8025, 'key': '...', 'url': 'https://...'}",
    "SHARD": "CRAWLSCHED_SHARDS = 16, the same for all processes, which divide the collection among themselves",
    "SITEMAP_INTERVAL": "CRAWLSCHED_SOURCE_INTERVAL = '1h'",
    "SITEMAP_PRIORITY": "CRAWLSCHED_IMPORTANCE or CRAWLSCHED_PAGES for what pages are worth",
    "SITEMAP_URLS": "CRAWLSCHED_SOURCE_URLS = ['https://...']",
    "SITEMAPS_FROM_ROBOTS": "CRAWLSCHED_FIND_SOURCES = True or False",
    "SOURCES_FROM_PAGES": "CRAWLSCHED_FIND_SOURCES = True or False",
    "WEB_TOKEN": "CRAWLSCHED_WEB = {'address': 8765, 'token': '...'}",
    "WEBHOOK_KEY": "CRAWLSCHED_WEBHOOK = {'url': 'https://...', 'key': '...'}",
}
# What is left out without harm; `Addon` still obeys ENABLED = False.
_LEFT_OUT = {
    "DATABASE_UPGRADE": "`crawlsched db upgrade` for the tables of an older version on PostgreSQL",
    "DISCOVERY_HORIZON": "CRAWLSCHED_DISCOVERY_SHARE = 0.5 for how much goes to new pages",
    "ENABLED": "ADDONS = {} to crawl without crawlsched",
    "VALIDATOR_TRIALS": "CRAWLSCHED_CONDITIONAL_REQUESTS = 'always' for no trials",
    "VISIT_TIMEOUT": "DOWNLOAD_TIMEOUT, Scrapy's own; a visit may take three times that",
    "WEBSUB": "CRAWLSCHED_RECEIVER = {'address': 8025, 'key': '...', 'url': 'https://...'}",
    "WRONG_PAGES": "CRAWLSCHED_WITHHOLD = {'wrong_page': False}",
} | dict.fromkeys(
    (
        *("EXPLORATION_ROUNDS", "FALLBACK_SCHEDULER", "FLUSH_INTERVAL", "GONE_INTERVAL", "JOBS", "KEPT_TEXTS_BYTES"),
        *("MAX_CRAWL_ROUNDS", "MAX_TEXT_BYTES", "OBJECTIVE", "RECEIVER_RATE", "REPLAN_INTERVAL", "SIGNAL_DELAY"),
        *("SITEMAP_MAX_BYTES", "SITEMAP_MAX_ENTRIES", "SNAPSHOT", "UNTRACKED_INTERVAL", "WEB_ACTIONS"),
    ),
    "nothing in its place",
)
#: All that are gone, without the prefix.
NAMES = frozenset({*_REFUSED, *_LEFT_OUT})


def said_of_gone(settings: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each setting that is gone and that no crawl is refused for."""
    return _sentences(settings, _LEFT_OUT)


def refused(settings: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each setting that is gone and that a crawl is refused for."""
    return _sentences(settings, _REFUSED)


def _sentences(settings: Mapping[str, Any], instead: dict[str, str]) -> list[str]:
    return [
        f"{_PREFIX}{name} is gone: write {what}."
        for name, what in sorted(instead.items())
        if settings.get(_PREFIX + name) is not None
    ]
