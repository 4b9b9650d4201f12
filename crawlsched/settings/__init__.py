"""Settings: every ``CRAWLSCHED_*`` setting is read and checked once, at the start of a crawl.

The package imports the types of the settings' values, but neither Scrapy nor SQL. Begin reading with `settings`.
"""

from crawlsched.settings.settings import PREFIX, SETTINGS, Setting, Settings, recipe_from, said_of_gone
from crawlsched.settings.values import SECONDS_PER, format_bandwidth, parse_bandwidth, parse_duration

__all__ = [
    "PREFIX",
    "SECONDS_PER",
    "SETTINGS",
    "Setting",
    "Settings",
    "format_bandwidth",
    "parse_bandwidth",
    "parse_duration",
    "recipe_from",
    "said_of_gone",
]
