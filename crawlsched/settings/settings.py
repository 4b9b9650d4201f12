"""Every ``CRAWLSCHED_*`` setting: its default, and its allowed values.

docs/reference/settings.md says what each setting means. All values are checked here, at the start of a crawl, and
nowhere else. Code below the Scrapy layer receives plain values.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Any

from crawlsched.estimators.learned_rates import POINT_ESTIMATORS, LearnedRates
from crawlsched.exceptions import SettingError
from crawlsched.settings.addresses import (
    ReceiverAddress,
    WebAddress,
    is_loopback,
    read_receiver,
    read_web,
    read_webhook,
)
from crawlsched.settings.hours import Hours
from crawlsched.settings.page_rules import PageRule, read_host_shares, read_page_rules
from crawlsched.settings.values import (
    allowing,
    fits_no_url,
    read_bandwidth_or_hours,
    read_conditional,
    read_count,
    read_database_url,
    read_function,
    read_names,
    read_networks,
    read_one_pass,
    read_optional,
    read_positive_seconds,
    read_selectors,
    read_share,
    read_table,
    read_text,
    read_truth,
    read_urls,
    read_withhold,
)
from crawlsched.sharing import LARGEST_NUMBER, is_number_of_shards

if TYPE_CHECKING:
    from crawlsched.change_detection import Recipe

__all__ = [
    "GONE",
    "PREFIX",
    "SETTINGS",
    "Setting",
    "Settings",
    "recipe_from",
    "refused",
    "said_of_gone",
]

PREFIX = "CRAWLSCHED_"

_TIMEOUTS = 3.0

# The arguments of a recipe, and the settings from which they are read. The modules of recipes are imported only when a
# recipe is made, since this takes longer than the import of all settings.
_RECIPE = {
    "method": "fingerprint",
    "keep": "fingerprint_keep",
    "drop": "fingerprint_drop",
}


_ESTIMATORS = f"one of posterior, {', '.join(POINT_ESTIMATORS)}, or a dictionary with such a name and parameters"


def _read_estimator(value: object) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Read an estimator: its name, or a dictionary (also as JSON) with its name and parameters."""
    is_name = isinstance(value, str) and not value.lstrip().startswith("{")
    parameters = {"name": str(value).strip()} if is_name else dict(allowing(_ESTIMATORS)(read_table)(value))
    name = parameters.pop("name", None)
    if name not in ("posterior", *POINT_ESTIMATORS):
        raise ValueError(_ESTIMATORS)
    try:
        if name != "posterior":
            LearnedRates(name, 1, 1.0, parameters)
        elif parameters:
            raise ValueError("posterior takes no parameters")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{_ESTIMATORS} ({error})") from None
    return name, tuple(sorted(parameters.items()))


def _read_fingerprint(value: object) -> Any:
    if value == "blocks":
        return value
    from crawlsched.change_detection.recipes import RECIPE_NAMES

    return read_function(*RECIPE_NAMES)(value)


def recipe_from(written: object) -> "Recipe":
    """Return the recipe for a value of a setting: a method, a function, its import path, or a mapping with options.

    >>> recipe_from("json").id, recipe_from({"method": "visible_text"}).id
    ('json/3', 'visible_text/5')
    """
    from crawlsched.change_detection import Recipe
    from crawlsched.change_detection.recipes import RECIPE_OPTIONS

    options: dict[str, Any] = dict(written) if isinstance(written, Mapping) else {"method": written}
    if unknown := [name for name in options if name not in ("method", *RECIPE_OPTIONS)]:
        raise ValueError(f"{unknown[0]!r} is no option of a recipe; options are method, {', '.join(RECIPE_OPTIONS)}.")
    try:
        method = _read_fingerprint(options.pop("method", "blocks"))
    except ValueError as error:
        raise ValueError(f"a recipe is {error}; got {written!r}.") from None
    return Recipe(method, **options)


_CRAWL_VALUES = (
    *("posterior", "greedy", "greedy_cis", "greedy_cis_plus", "greedy_ncis"),
    *("lds", "poisson", "harmonic", "square_root", "proportional", "uniform", "round_robin"),
)


@allowing(f"one of {', '.join((*_CRAWL_VALUES, 'greedy_ncis_approx_1, _2 and so on'))}")
def _read_crawl_value(value: object) -> str:
    # G-NCIS-APPROX-j may have any number of terms.
    if value not in _CRAWL_VALUES and re.fullmatch(r"greedy_ncis_approx_[1-9][0-9]{0,5}", str(value)) is None:
        raise ValueError
    return str(value)


@allowing(f"a power of two from 2 to {LARGEST_NUMBER}")
def _read_shards(value: object) -> int:
    n = read_count(value)
    if not is_number_of_shards(n):
        raise ValueError
    return n


def _setting(default: object, read: Callable[[object], Any], *, secret: bool = False) -> Any:
    """Return a field of `Settings`, with its row of the table as metadata; a secret value is never shown."""
    row = {"default": default, "read": read, "secret": secret}
    return field(default=read(default), repr=not secret, metadata=row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings of one crawl. Durations are in seconds, and the bandwidth is in crawls per second.

    Examples
    --------
    >>> settings = Settings.from_scrapy({"CRAWLSCHED_BANDWIDTH": "300/h", "BOT_NAME": "news"}, spider_name="articles")
    >>> settings.bandwidth, settings.collection
    (0.0833, 'articles')
    >>> Settings.from_scrapy({"CRAWLSCHED_BANDWITH": "300/h"}, spider_name="articles")
    Traceback (most recent call last):
    crawlsched.exceptions.SettingError: CRAWLSCHED_BANDWITH is not a setting; did you mean CRAWLSCHED_BANDWIDTH?
    """

    bandwidth: float = _setting("1/s", read_bandwidth_or_hours)
    database_url: str = _setting("sqlite:///crawlsched.db", read_database_url, secret=True)
    collection: str | None = _setting(None, read_optional(read_text))
    shards: int | None = _setting(None, read_optional(_read_shards))
    standby: bool = _setting(False, read_truth)
    crawl_value: str = _setting("posterior", _read_crawl_value)
    estimator: tuple[str, tuple[tuple[str, Any], ...]] = _setting("posterior", _read_estimator)
    discovery_share: float = _setting(0.5, read_share)
    importance: Callable[..., float] | None = _setting(None, read_optional(read_function()))
    pages: tuple[PageRule, ...] = _setting([], read_page_rules)
    max_pages: int = _setting(10_000_000, read_count)
    ignore_parameters: tuple[str, ...] = _setting([], read_names)
    host_shares: tuple[tuple[str, float], ...] = _setting({}, read_host_shares)
    fingerprint: str | Callable[..., Any] = _setting("blocks", _read_fingerprint)
    fingerprint_keep: tuple[str, ...] = _setting([], read_selectors)
    fingerprint_drop: tuple[str, ...] = _setting([], read_selectors)
    fingerprints: tuple[tuple[str, Any], ...] = _setting({}, read_table)
    probes: bool = _setting(True, read_truth)
    min_change: float = _setting(0.0, read_share)
    kept_text_bytes: int = _setting(0, read_count)
    conditional_requests: bool | str = _setting(True, read_conditional)
    callback_on_unchanged: bool = _setting(False, read_truth)
    source_urls: tuple[str, ...] = _setting([], read_urls)
    find_sources: bool = _setting(True, read_truth)
    source_interval: float = _setting(3600.0, read_positive_seconds)
    sitemap_discovery: bool = _setting(True, read_truth)
    receiver: ReceiverAddress | None = _setting(None, read_optional(read_receiver), secret=True)
    web: WebAddress | None = _setting(None, read_optional(read_web), secret=True)
    webhook: tuple[str, str | None] | None = _setting(None, read_optional(read_webhook), secret=True)
    observation_retention: float = _setting("90d", read_positive_seconds)
    error_interval: float = _setting(60.0, read_positive_seconds)
    private_addresses: tuple[IPv4Network | IPv6Network, ...] = _setting([], read_networks)
    keep_credentials: bool = _setting(True, read_truth)
    starts_first: int = _setting(100, read_count)
    one_pass: bool | int = _setting(False, read_one_pass)
    withhold: frozenset[str] = _setting(True, read_withhold)

    #: The bandwidths by the hour of the day, if `CRAWLSCHED_BANDWIDTH` has several.
    hours: Hours | None = None
    #: Seconds after which a visit without an answer counts as dropped: three times Scrapy's `DOWNLOAD_TIMEOUT`.
    visit_timeout: float = 540.0

    def recipe(self) -> "Recipe":
        """Return the recipe of all pages for which no other recipe is set."""
        from crawlsched.change_detection import Recipe

        return Recipe(**{name: getattr(self, setting) for name, setting in _RECIPE.items()})

    @property
    def share_of_first_copies(self) -> float:
        """The discovery share, or 1 with `CRAWLSCHED_ONE_PASS`."""
        return 1.0 if self.one_pass else self.discovery_share

    @classmethod
    def from_scrapy(cls, settings: Mapping[str, Any], spider_name: str | None = None) -> "Settings":
        """Read the ``CRAWLSCHED_*`` settings from Scrapy's; a `SettingError` has a line for each mistake.

        `spider_name` is the name of the collection if the settings name no collection.
        """
        values, mistakes = _read_all(settings)
        mistakes += _unknown_names(settings)
        mistakes += _contradictions(values)
        if mistakes:
            raise SettingError("\n".join(mistakes))
        if values["collection"] is None:
            values["collection"] = spider_name
        if isinstance(hours := values["bandwidth"], Hours):
            values |= {"bandwidth": hours.largest(), "hours": hours}
        if timeout := float(settings.get("DOWNLOAD_TIMEOUT") or 0.0):
            values["visit_timeout"] = _TIMEOUTS * timeout
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table of settings."""

    name: str  # the name in a project's ``settings.py``
    default: object  # the value as a person would write it there
    # The reader takes the value that is set. It returns the checked value, or raises a ValueError that says what is
    # allowed.
    read: Callable[[object], Any]
    secret: bool = False  # whether the value is never shown, because it contains a password or a key


SETTINGS: tuple[Setting, ...] = tuple(
    Setting(PREFIX + f.name.upper(), **f.metadata) for f in fields(Settings) if f.metadata
)


def _read_all(settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    values, mistakes = {}, []
    for row in SETTINGS:
        value = settings.get(row.name, row.default)
        try:
            values[row.name.removeprefix(PREFIX).lower()] = row.read(value)
        except ValueError as error:
            got = "another value, which is not shown" if row.secret else repr(value)
            mistakes.append(f"{row.name} must be {error}, got {got}.")
    return values, mistakes


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    """Find settings that contradict each other, although each of them is allowed alone."""
    mistakes = []
    web = values.get("web")
    if web is not None and web.token is False and not is_loopback(web.host):
        mistakes.append(
            "CRAWLSCHED_WEB must have a 'token' of True, or of 16 to 128 letters, digits and dashes, unless its "
            "address is a loopback address, got False."
        )
    mistakes += _not_with_shards(values)
    defaults = {field.name: field.default for field in fields(Settings)}
    if set(_RECIPE.values()) <= values.keys() and any(values[name] != defaults[name] for name in _RECIPE.values()):
        from crawlsched.change_detection import Recipe

        try:
            Recipe(**{name: values[setting] for name, setting in _RECIPE.items()})
        except ValueError as error:
            # The error names a selector, such as keep[0], or all selectors, such as keep.
            named = re.sub(r"^(keep|drop)\[", lambda start: f"CRAWLSCHED_FINGERPRINT_{start[1].upper()}[", str(error))
            mistakes.append(named if named != str(error) else f"CRAWLSCHED_FINGERPRINT: {error}")
    for where, written in values.get("fingerprints", ()):
        if fits_no_url(where):
            mistakes.append(
                f"CRAWLSCHED_FINGERPRINTS[{where!r}] fits no URL; write a host without port, or a pattern of URLs, "
                "such as 'https://shop.example/*' or '*/api/*'."
            )
        try:
            recipe_from(written)
        except (ValueError, TypeError) as error:
            mistakes.append(f"CRAWLSCHED_FINGERPRINTS[{where!r}]: {error}")
    return mistakes


def _not_with_shards(values: Mapping[str, Any]) -> list[str]:
    """Find settings that are not allowed with several processes."""
    if values.get("shards") is None:
        return []
    mistakes = []
    if str(values.get("database_url", "")).startswith("sqlite"):
        mistakes.append(
            "CRAWLSCHED_SHARDS needs PostgreSQL, for several processes cannot share an SQLite file; name a server with "
            "CRAWLSCHED_DATABASE_URL, or set CRAWLSCHED_SHARDS = None."
        )
    if values.get("standby"):
        mistakes.append(
            "CRAWLSCHED_STANDBY needs CRAWLSCHED_SHARDS = None: where several processes share a collection, one more "
            "joins them at once."
        )
    mistakes += [
        f"CRAWLSCHED_{name.upper()} needs CRAWLSCHED_SHARDS = None: several processes that share a collection cannot "
        "have it yet."
        for name in ("receiver", "web", "webhook")
        if values.get(name)
    ]
    if type(values.get("one_pass")) is int:
        mistakes.append(
            "CRAWLSCHED_ONE_PASS = a number of visits needs CRAWLSCHED_SHARDS = None; several processes that share a "
            "collection can have True, and end when each of its pages was tried once."
        )
    return mistakes


def _unknown_names(settings: Mapping[str, Any]) -> list[str]:
    known = [row.name.removeprefix(PREFIX) for row in SETTINGS]
    ours = [str(name).removeprefix(PREFIX) for name in settings if str(name).startswith(PREFIX)]
    mistakes = refused(settings)
    for name in sorted(set(ours).difference(known, GONE)):
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else "all of them stand in docs/reference/settings.md."
        mistakes.append(f"{PREFIX}{name} is not a setting; {hint}")
    return mistakes


_PREFIX = "CRAWLSCHED_"
# Former settings that are refused, since a crawl that ignores them would not do its job.
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
# Former settings that are ignored, since that does no harm. `Addon` still obeys ENABLED=False.
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
#: The names of all former settings, without the prefix.
GONE = frozenset({*_REFUSED, *_LEFT_OUT})


def said_of_gone(settings: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each former setting that does not stop the crawl."""
    return _sentences(settings, _LEFT_OUT)


def refused(settings: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each former setting that stops the crawl."""
    return _sentences(settings, _REFUSED)


def _sentences(settings: Mapping[str, Any], instead: dict[str, str]) -> list[str]:
    return [
        f"{_PREFIX}{name} is gone: write {what}."
        for name, what in sorted(instead.items())
        if settings.get(_PREFIX + name) is not None
    ]
