"""Settings that there were before 0.2: what says the same now, and what of it is taken over as it stands."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from crawlsched.settings.page_rules import read_page_rules
from crawlsched.settings.values import read_truth

__all__ = ["NAMES", "refused", "said_of_gone", "taken_over"]

_PREFIX = "CRAWLSCHED_"
# What each says now: a setting, and the key in its dictionary; what such a dictionary calls a value that stands alone.
_MOVED = {
    "MAX_CRAWL_INTERVAL": ("PAGES", "max_interval"),
    "MIN_CRAWL_INTERVAL": ("PAGES", "min_interval"),
    "RECEIVER_KEY": ("RECEIVER", "key"),
    "RECEIVER_URL": ("RECEIVER", "url"),
    "SITEMAP_INTERVAL": ("SOURCE_INTERVAL", ""),
    "SITEMAP_URLS": ("SOURCE_URLS", ""),
    "SITEMAPS_FROM_ROBOTS": ("FIND_SOURCES", ""),
    "SOURCES_FROM_PAGES": ("FIND_SOURCES", ""),
    "WEB_TOKEN": ("WEB", "token"),
    "WEBHOOK_KEY": ("WEBHOOK", "key"),
    "WRONG_PAGES": ("WITHHOLD", "wrong_page"),
}
_ALONE = {"RECEIVER": "address", "WEB": "address", "WEBHOOK": "url"}
# What is left out of a project without harm; `Addon` does what ENABLED = False said.
_TO_LEAVE_OUT = {
    "DATABASE_UPGRADE": "`crawlsched db upgrade` for the tables of an older version on PostgreSQL",
    "DISCOVERY_HORIZON": "CRAWLSCHED_DISCOVERY_SHARE = 0.6 for how much goes to new pages",
    "ENABLED": "ADDONS = {} to crawl without crawlsched",
    "VALIDATOR_TRIALS": "CRAWLSCHED_CONDITIONAL_REQUESTS = 'always' for no trials",
    "VISIT_TIMEOUT": "DOWNLOAD_TIMEOUT, Scrapy's own; three times that is waited for a visit",
    "WEBSUB": "CRAWLSCHED_RECEIVER = {'address': 8025, 'key': '...', 'url': 'https://...'}",
} | dict.fromkeys(
    (
        *("EXPLORATION_ROUNDS", "FALLBACK_SCHEDULER", "FLUSH_INTERVAL", "GONE_INTERVAL", "JOBS", "KEPT_TEXTS_BYTES"),
        *("MAX_CRAWL_ROUNDS", "MAX_TEXT_BYTES", "OBJECTIVE", "RECEIVER_RATE", "REPLAN_INTERVAL", "SIGNAL_DELAY"),
        *("SITEMAP_MAX_BYTES", "SITEMAP_MAX_ENTRIES", "SNAPSHOT", "UNTRACKED_INTERVAL", "WEB_ACTIONS"),
    ),
    "nothing in its place",
)
# What a crawl without it would do otherwise than was wished.
_REFUSED = {
    "FINGERPRINT_IGNORE_KEYS": "CRAWLSCHED_FINGERPRINTS = {'*': {'method': 'json', 'ignore_keys': [...]}}",
    "FINGERPRINT_IMAGES": "CRAWLSCHED_FINGERPRINTS = {'*': {'images': True}}",
    "FINGERPRINT_LINKS": "CRAWLSCHED_FINGERPRINTS = {'*': {'links': True}}",
    "FINGERPRINT_TEMPLATE_EDITS": "CRAWLSCHED_WITHHOLD = {'template': False}",
    "HOURS": "CRAWLSCHED_BANDWIDTH = {'22:00-06:00': '20/s', 'else': '1/s'}",
    "SHARD": "CRAWLSCHED_SHARDS = 16, the same for all processes, which divide the collection among themselves",
    "SITEMAP_PRIORITY": "CRAWLSCHED_IMPORTANCE or CRAWLSCHED_PAGES for what pages are worth",
}
#: All that are gone, without the prefix.
NAMES = frozenset({*_MOVED, *_TO_LEAVE_OUT, *_REFUSED})


def taken_over(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what settings that are gone say in the settings of today, by their names.

    Examples
    --------
    >>> taken_over({"CRAWLSCHED_WRONG_PAGES": "False", "CRAWLSCHED_WITHHOLD": {"noise": False}})
    {'CRAWLSCHED_WITHHOLD': {'noise': False, 'wrong_page': 'False'}}
    """
    found: dict[str, Any] = {}
    for old, (new, key) in _MOVED.items():
        value, name = settings.get(_PREFIX + old), _PREFIX + new
        given = found.get(name, settings.get(name))
        if value is None or (given is None and new in _ALONE) or (given is not None and not key):
            continue
        try:
            found[name] = _with(given, new, key, value) if key else value
        except (TypeError, ValueError):
            continue  # who reads the setting of today says what is wrong with it
    return found


def _with(given: Any, new: str, key: str, value: Any) -> Any:
    """Return what a setting of today is given, and a key of its dictionary beside that."""
    if isinstance(given, str) and given.lstrip().startswith(("{", "[")):
        given = json.loads(given)
    if new == "PAGES":
        return _on_all_pages(given.items() if isinstance(given, Mapping) else given or (), key, value)
    if new == "WITHHOLD" and given is not None and not isinstance(given, Mapping):
        return {key: value} if read_truth(given) else given
    if given is not None and not isinstance(given, Mapping):
        given = {_ALONE[new]: given}
    return {**(given or {}), key: value}


def _on_all_pages(rules: Iterable[tuple[str, Any]], key: str, value: Any) -> list[tuple[str, Any]]:
    """Add an interval to each rule, as a page has one rule only; one that says it or its contrary itself stays."""
    found = []
    for where, rule in rules:
        both = (where, {key: value} | dict(rule))
        found.append(both if _is_read(both) or not _is_read(("*", {key: value})) else (where, rule))
    return found if any(where == "*" for where, _ in found) else [*found, ("*", {key: value})]


def _is_read(rule: tuple[str, Any]) -> bool:
    try:
        read_page_rules([rule])
    except ValueError:
        return False
    return True


def said_of_gone(settings: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each setting that is gone and that no crawl is refused for."""
    said = {old: f"CRAWLSCHED_{new}" + f" = {{'{key}': ...}}" * bool(key) for old, (new, key) in _MOVED.items()}
    for old in ("MAX_CRAWL_INTERVAL", "MIN_CRAWL_INTERVAL"):
        said[old] = f"CRAWLSCHED_PAGES = [('*', {{'{_MOVED[old][1]}': ...}})]"
    return _sentences(settings, said | _TO_LEAVE_OUT)


def refused(settings: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each setting that is gone and that a crawl is refused for."""
    return _sentences(settings, _REFUSED)


def _sentences(settings: Mapping[str, Any], instead: dict[str, str]) -> list[str]:
    return [
        f"{_PREFIX}{name} is gone: write {instead[name]}."
        for name in sorted(instead)
        if settings.get(_PREFIX + name) is not None
    ]
