"""Every ``CRAWLSCHED_*`` setting: what it means, what it is when nobody sets it, and what it may be.

There is one table, made of the fields of `Settings`; docs/reference/settings.md is generated from it. Values are
checked here and nowhere else, all of them at the start of a crawl, and everything below the Scrapy layer receives plain
values.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from crawlsched.estimators.learned_rates import POINT_ESTIMATORS, LearnedRates
from crawlsched.exceptions import SettingError
from crawlsched.settings.hours import Hours
from crawlsched.settings.page_rules import PageRule, read_host_shares, read_page_rules
from crawlsched.settings.values import (
    fits_no_url,
    is_loopback,
    read_address,
    read_bandwidth,
    read_count,
    read_database_url,
    read_function,
    read_hours,
    read_key,
    read_keys,
    read_names,
    read_networks,
    read_one_pass,
    read_optional,
    read_positive_count,
    read_positive_seconds,
    read_public_url,
    read_rounds,
    read_scheduler,
    read_seconds,
    read_selectors,
    read_share,
    read_table,
    read_text,
    read_token,
    read_truth,
    read_urls,
    read_webhook,
    read_withhold,
)
from crawlsched.sharing import LARGEST_NUMBER, is_number_of_shards

if TYPE_CHECKING:
    from crawlsched.change_detection import Recipe

__all__ = ["PREFIX", "SETTINGS", "Setting", "Settings", "of_earlier_versions"]

PREFIX = "CRAWLSCHED_"

# The arguments of a recipe, and the settings that they come from. What recipes are made of is loaded where one is: it
# takes longer than all settings.
_RECIPE = {
    "method": "fingerprint",
    "keep": "fingerprint_keep",
    "drop": "fingerprint_drop",
    "links": "fingerprint_links",
    "images": "fingerprint_images",
    "ignore_keys": "fingerprint_ignore_keys",
    "template_edits": "fingerprint_template_edits",
}


def _read_estimator(value: object) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Read an estimator: its name, or a dictionary (as it is or as JSON) with its name and parameters."""
    allowed = f"one of posterior, {', '.join(POINT_ESTIMATORS)}, or a dictionary with such a name and parameters"
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        name, parameters = value.strip(), {}
    else:
        try:
            parameters = dict(read_table(value))
        except ValueError:
            raise ValueError(allowed) from None
        name = parameters.pop("name", None)
    if name not in ("posterior", *POINT_ESTIMATORS):
        raise ValueError(allowed)
    if name != "posterior":
        try:
            LearnedRates(name, 1, 1.0, parameters)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{allowed} ({error})") from None
    elif parameters:
        raise ValueError(f"{allowed} (posterior takes no parameters)")
    return name, tuple(sorted(parameters.items()))


def _read_fingerprint(value: object) -> Any:
    if value == "blocks":
        return value
    from crawlsched.change_detection import RECIPE_NAMES

    return read_function(*RECIPE_NAMES)(value)


_CRAWL_VALUES = (
    *("posterior", "greedy", "greedy_cis", "greedy_cis_plus", "greedy_ncis"),
    *("lds", "poisson", "harmonic", "square_root", "proportional", "uniform", "round_robin"),
)


def _read_crawl_value(value: object) -> str:
    """Read a policy by its name; G-NCIS-APPROX-j may have any number of terms."""
    if value not in _CRAWL_VALUES and re.fullmatch(r"greedy_ncis_approx_[1-9][0-9]{0,5}", str(value)) is None:
        raise ValueError(f"one of {', '.join((*_CRAWL_VALUES, 'greedy_ncis_approx_1, _2 and so on'))}")
    return str(value)


def _read_shards(value: object) -> int:
    """Read into how many shards a collection is divided."""
    allowed = f"a power of two from 2 to {LARGEST_NUMBER}"
    try:
        n = read_count(value)
    except ValueError:
        raise ValueError(allowed) from None
    if not is_number_of_shards(n):
        raise ValueError(allowed)
    return n


def _setting(default: object, read: Callable[[object], Any], meaning: str, *, secret: bool = False) -> Any:
    """Return a field of `Settings` which carries its row of the table; a secret one is never shown."""
    row = {"default": default, "read": read, "meaning": meaning, "secret": secret}
    return field(default=read(default), repr=not secret, metadata=row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one crawl, read and checked; durations in seconds, the bandwidth in crawls per second.

    Examples
    --------
    >>> settings = Settings.from_scrapy({"CRAWLSCHED_BANDWIDTH": "300/h", "BOT_NAME": "news"}, spider_name="articles")
    >>> settings.bandwidth, settings.collection
    (0.0833, 'articles')
    >>> Settings.from_scrapy({"CRAWLSCHED_BANDWITH": "300/h"}, spider_name="articles")
    Traceback (most recent call last):
    crawlsched.exceptions.SettingError: CRAWLSCHED_BANDWITH is not a setting; did you mean CRAWLSCHED_BANDWIDTH?
    """

    enabled: bool = _setting(True, read_truth, "`False`: the crawl runs as if crawlsched were not installed.")
    bandwidth: float = _setting(
        "1/s",
        read_bandwidth,
        "How many requests go out: `5` or `5/s`, `300/min`, `300/h`, `20000/d`. One number for all.",
    )
    hours: Hours | None = _setting(
        None,
        read_optional(read_hours),
        "Other bandwidths at some hours of the day: `{'22:00-06:00 Europe/Berlin': '20/s', 'else': '1/s'}`; `0`: none. "
        "Without `else` it is `CRAWLSCHED_BANDWIDTH`. Without a zone hours are UTC.",
    )
    database_url: str = _setting(
        "sqlite:///crawlsched.db",
        read_database_url,
        "Where everything is kept: an SQLAlchemy URL. SQLite (a relative path counts from where `scrapy.cfg` is), or "
        "PostgreSQL with `crawlsched[postgresql]`.",
        secret=True,
    )
    database_upgrade: bool | None = _setting(
        None, read_optional(read_truth), "Upgrade the database's tables at start. `None`: on SQLite only."
    )
    collection: str | None = _setting(
        None,
        read_optional(read_text),
        "The name under which the pages are kept; the spider's name and arguments may stand in it: `'{name}-{tag}'`. "
        "`None`: the spider's name.",
    )
    shards: int | None = _setting(
        None,
        read_optional(_read_shards),
        "Several processes share the collection: a new one is divided into so many shards, a power of two from 2 to "
        "4096. The same command, started as often as you like, is then one crawl at one `CRAWLSCHED_BANDWIDTH`. "
        "PostgreSQL only. `None`: one process owns it.",
    )
    standby: bool = _setting(
        False,
        read_truth,
        "Where another process crawls the collection already, wait until it ends or dies, and then go on in its place. "
        "`False`: refuse to start. Not with `CRAWLSCHED_SHARDS`, where a further process joins.",
    )
    crawl_value: str = _setting(
        "posterior",
        _read_crawl_value,
        "What a crawl is worth: `posterior` (expected over all change rates still possible); one of the papers' rules "
        "with the mean rate: `greedy`, `greedy_cis`, `greedy_cis_plus`, `greedy_ncis`, `greedy_ncis_approx_1` (or any "
        "other number of terms); or a plan, made anew with each `CRAWLSCHED_REPLAN_INTERVAL`, by which each page has "
        "its rate: `lds`, `poisson`, `harmonic`, `square_root`, `proportional`, `uniform`, `round_robin`.",
    )
    estimator: tuple[str, tuple[tuple[str, Any], ...]] = _setting(
        "posterior",
        _read_estimator,
        "What learns how often pages change: `posterior`, or an estimator of the papers, which gives each page one "
        "number: `naive`, `bias_reduced`, `uniform_prior`, `maximum_likelihood`, `moment_matching`, `last_modified`, "
        "`law_of_large_numbers`, `stochastic_approximation`, `momentum`, `frequency_classes`, `gamma_posterior`; with "
        "parameters `{'name': 'momentum', 'beta': 0.75}`. With one number the crawl value `posterior` is that of "
        "`greedy_ncis`.",
    )
    min_crawl_interval: float = _setting(
        0.0, read_seconds, "No page is crawled sooner than this after its last crawl, whatever it is worth."
    )
    max_crawl_interval: float | None = _setting(
        None,
        read_optional(read_positive_seconds),
        "A page is crawled at least this often, before anything of value.",
    )
    max_crawl_rounds: float | None = _setting(
        4.0,
        read_optional(read_rounds),
        "A page of any importance waits for hardly more rounds than these, even if it is not worth a crawl. A round is "
        "the time that one crawl of every page takes. `None`: it may wait forever.",
    )
    discovery_share: float = _setting(
        0.6,
        read_share,
        "While pages that have a copy are due, at most this share of the slots goes to pages that were never crawled. "
        "What either side leaves goes to the other. New pages go by the priority of their requests; of one priority "
        "hosts take turns, and in each the directories of its site. With `CRAWLSCHED_ONE_PASS` it is 1.",
    )
    importance: Callable[..., float] | None = _setting(
        None,
        read_optional(read_function()),
        "`f(url, meta)`, or its import path: how much a fresh copy of the page is worth, 1 being usual. At each start "
        "it is asked about all pages whose importance nobody stated.",
    )
    pages: tuple[PageRule, ...] = _setting(
        [],
        read_page_rules,
        "Rules for some hosts or URL patterns, the first that fits: `[('*/news/*', {'importance': 3, 'max_interval': "
        "'1h'}), ('shop.example', {'min_interval': '1d'}), ('*/calendar/*', {'max_pages': 500})]`. An importance that "
        "a request, a file or a sitemap states goes before a rule's, and a rule's before that of "
        "`CRAWLSCHED_IMPORTANCE`. Of what a rule with `max_pages` fits at most so many URLs are taken as pages.",
    )
    max_pages: int = _setting(
        10_000_000,
        read_count,
        "At most so many URLs are taken as pages, of each shard. What is not taken is listed by `crawlsched withheld`.",
    )
    ignore_parameters: tuple[str, ...] = _setting(
        [],
        read_names,
        "URLs that differ only in these parameters are one page, which is asked for by the URL found last: "
        "`['sid', 'utm_*']`.",
    )
    host_shares: tuple[tuple[str, float], ...] = _setting(
        {},
        read_host_shares,
        "At most this share of the bandwidth goes to a host: `{'shop.example': 0.25, '*': 0.5}`; `*` is each host that "
        "is not named.",
    )
    sitemap_priority: bool = _setting(False, read_truth, "Take a page's importance from the sitemap's `<priority>`.")
    fingerprint: str | Callable[..., Any] = _setting(
        "blocks",
        _read_fingerprint,
        "What counts as a change: `blocks` (what readers and programs read, without what is noise on the site's "
        "pages, which is learned), "
        "`visible_text`, `main_text` (with `crawlsched[extract]`), `json`, `raw_bytes`, or a function (or its import "
        "path).",
    )
    fingerprint_keep: tuple[str, ...] = _setting(
        [], read_selectors, "CSS selectors (or XPaths) of the parts of a page that count. Empty: the whole page."
    )
    fingerprint_drop: tuple[str, ...] = _setting(
        [], read_selectors, "CSS selectors of parts that do not count: clocks, counters, lists of related pages."
    )
    fingerprint_links: bool = _setting(
        False, read_truth, "Whether the targets of links count: a page whose download link has moved has changed."
    )
    fingerprint_images: bool = _setting(False, read_truth, "Whether the sources of images count.")
    fingerprint_ignore_keys: tuple[str, ...] = _setting(
        [], read_keys, "Keys that do not count where a page is JSON, such as `generated_at`."
    )
    fingerprint_template_edits: bool = _setting(
        False,
        read_truth,
        "Whether what a site changes on all of its pages alike (a release number, a banner, its navigation) counts as "
        "a change of each of them; it is delivered of the first page either way. With `blocks`.",
    )
    fingerprints: tuple[tuple[str, Any], ...] = _setting(
        {},
        read_table,
        "Other recipes for some hosts or URL patterns, the first that fits: "
        "`{'shop.example': 'visible_text', '*/api/*': {'method': 'json', 'ignore_keys': ['now']}}`. A request's "
        "`meta['crawlsched_recipe']` goes before it.",
    )
    max_text_bytes: int = _setting(
        4_000_000,
        read_positive_count,
        "So much of a page's text is read to see whether it has changed, in bytes, unpacked; your callback gets all of "
        "it. What is no text is compared whole.",
    )
    probes: bool = _setting(
        True,
        read_truth,
        "Fetch a page a second time at once where that may show what is noise on the site's pages, or has to tell "
        "whether it changed; each takes a slot.",
    )
    min_change: float = _setting(
        0.0,
        read_share,
        "A change of less than this share of a page's three-word phrases counts as none, and is not delivered; small "
        "ones add up. `0.05`: five in a hundred.",
    )
    kept_text_bytes: int = _setting(
        0,
        read_count,
        "Keep the texts of a page's last two changes for `crawlsched diff`, compressed to at most so many bytes each, "
        "such as `20000`. `0`: none.",
    )
    kept_texts_bytes: int = _setting(
        1_000_000_000, read_positive_count, "How many bytes all kept texts may have; the oldest go."
    )
    wrong_pages: bool = _setting(
        True,
        read_truth,
        "Recognise log-in walls, error pages with status 200 and parking pages that are served in the place of pages "
        "that were delivered before: by asking for one that cannot exist, and by fetching twice.",
    )
    conditional_requests: bool = _setting(
        True,
        read_truth,
        "Send `If-None-Match` and `If-Modified-Since` where they have not proved wrong; a 304 counts as unchanged.",
    )
    validator_trials: float = _setting(
        0.1,
        read_share,
        "The share of visits without these headers, to see whether they move when the page does (half of the visits to "
        "hosts that are not known yet). `0`: none, and 304s are never quite believed.",
    )
    callback_on_unchanged: bool = _setting(
        False, read_truth, "Call the spider's callback for pages that did not change, too."
    )
    source_urls: tuple[str, ...] = _setting(
        [], read_urls, "Sitemaps and feeds to read beside those that robots.txt and pages name."
    )
    sitemaps_from_robots: bool = _setting(True, read_truth, "Read the sitemaps that the sites' robots.txt files name.")
    sources_from_pages: bool = _setting(
        True,
        read_truth,
        "Read the feed that a page names by `<link rel=alternate>`, and the sitemaps it names by `rel=sitemap`.",
    )
    source_interval: float = _setting(
        3600.0,
        read_positive_seconds,
        "How often a sitemap or feed is read again at least, until it has shown what its announcements are worth; "
        "sooner where three rounds of the crawl take less, and all such reading a twentieth of the bandwidth at most.",
    )
    sitemap_discovery: bool = _setting(True, read_truth, "Make pages of the unknown URLs that a sitemap lists.")
    sitemap_max_bytes: int = _setting(52428800, read_positive_count, "A sitemap is read up to this size, unpacked.")
    sitemap_max_entries: int = _setting(50000, read_positive_count, "A sitemap is read up to this many entries.")
    signal_delay: float = _setting(
        0.0, read_seconds, "Announcements this soon after a crawl are dropped: they are about what was just seen."
    )
    receiver: tuple[str, int] | None = _setting(
        None,
        read_optional(read_address),
        "Where pings are received (IndexNow and WebSub over HTTP): a port, or `host:port`; a port alone is that of "
        "127.0.0.1. `None`: nowhere.",
    )
    receiver_key: str | None = _setting(
        None, read_optional(read_key), "What senders of pings have to know. There is no receiver without.", secret=True
    )
    receiver_rate: float = _setting(
        "10/s", read_bandwidth, "How many URLs of pings are taken; 10,000 may come at once after a quiet time."
    )
    receiver_url: str | None = _setting(
        None,
        read_optional(read_public_url),
        "Where others reach the receiver, such as `https://crawler.example.com/`; hubs of WebSub are given it.",
    )
    websub: bool = _setting(
        False,
        read_truth,
        "Whether to subscribe to the hubs that feeds name (WebSub), and to renew that in time. It needs "
        "`CRAWLSCHED_RECEIVER` and `CRAWLSCHED_RECEIVER_URL`.",
    )
    web: tuple[str, int] | None = _setting(
        None,
        read_optional(read_address),
        "Where the page about the crawl is served, with `/metrics`, `/healthz` and the change feed: a port, or "
        "`host:port`; a port alone is that of 127.0.0.1. `None`: nowhere.",
    )
    web_token: str | bool = _setting(
        True,
        read_token,
        "What has to be known to see the page. `True`: one that is made at each start and stands in the log. `False`: "
        "nothing, which only 127.0.0.1 may have.",
        secret=True,
    )
    web_actions: bool = _setting(
        False, read_truth, "Whether the page may also do something: recrawl, pause, resume, change the bandwidth."
    )
    webhook: str | None = _setting(
        None,
        read_optional(read_webhook),
        "Where delivered changes are posted as JSON, in batches, again and again until they have arrived: an http or "
        "https URL. `None`: nowhere.",
        secret=True,
    )
    webhook_key: str | None = _setting(
        None,
        read_optional(read_key),
        "Signs what is posted: `X-Crawlsched-Signature` is `sha256=` and the HMAC-SHA256 of the body. `None`: it goes "
        "unsigned.",
        secret=True,
    )
    replan_interval: float = _setting(
        300.0,
        read_positive_seconds,
        "How often the population's rates and the sources' precision are learned anew, as a plan. Where it takes "
        "minutes until all pages go by it, as among millions, the next one comes after five times as long "
        "at the soonest.",
    )
    flush_interval: float = _setting(
        0.3, read_positive_seconds, "How often what happened is written down; a crash forgets at most this and 0.2 s."
    )
    observation_retention: float = _setting("90d", read_positive_seconds, "How long single visits are kept.")
    gone_interval: float = _setting(
        86400.0,
        read_positive_seconds,
        "When a page that was never there, or has moved, is looked for again; then twice as long, up to 30 days. One "
        "that was there is tried first after `CRAWLSCHED_ERROR_INTERVAL`.",
    )
    error_interval: float = _setting(
        60.0,
        read_positive_seconds,
        "When a page is tried again that failed; then twice as long, up to a day. "
        "While most visits to a host fail, it is asked for one page at a time, with pauses of a 16th of that while.",
    )
    visit_timeout: float = _setting(
        600.0, read_positive_seconds, "A request that nothing was heard of for so long counts as dropped."
    )
    private_addresses: tuple[str, ...] = _setting(
        [],
        read_networks,
        "Ranges such as `10.0.0.0/8` that may be asked although a site named them: sitemaps, and where they redirect "
        "to. All other loopback, private and link-local addresses are refused, but never to requests of the spider.",
    )
    keep_credentials: bool = _setting(
        True,
        read_truth,
        "Write cookies and Authorization headers of requests into the database, so that their pages can be visited "
        "after a restart. `False`: such pages wait then until the spider asks for them again.",
    )
    jobs: bool = _setting(True, read_truth, "Run the jobs inside the crawl. `False`: `crawlsched jobs` does.")
    starts_first: int = _setting(
        100,
        read_count,
        "At every start known pages wait for so many start requests and the requests that are no pages which these "
        "lead to, such as log-ins; for 100 slots or 60 s at most, whichever is longer. `0`: they do not wait.",
    )
    untracked_interval: float = _setting(
        "1d",
        read_positive_seconds,
        "A page may yield requests that are no pages, such as POSTs. It is delivered at its first visit of each run, "
        "and again once in this time, so that they are made again.",
    )
    one_pass: bool | int = _setting(
        False,
        read_one_pass,
        "`True`: the run ends by itself when every page was tried once. A number: after so many visits, best first.",
    )
    withhold: frozenset[str] = _setting(
        True,
        read_withhold,
        "`False`: nothing that came from a page is held back. `{'flapping': False}`: nothing for that reason "
        "(`wrong_page`, `template`, `flapping`, `noise`, `minimum_change`, `recipe`).",
    )
    fallback_scheduler: str | type | None = _setting(
        None, read_optional(read_scheduler), "The scheduler for requests that are no pages. Set by the add-on."
    )

    def recipe(self) -> "Recipe":
        """Return the recipe of all pages for which there is no other."""
        from crawlsched.change_detection import recipe

        return recipe(**{name: getattr(self, setting) for name, setting in _RECIPE.items()})

    @classmethod
    def from_scrapy(cls, settings: Mapping[str, Any], spider_name: str | None = None) -> "Settings":
        """Read the ``CRAWLSCHED_*`` settings out of all others.

        Parameters
        ----------
        settings : mapping
            Scrapy's settings, or a dictionary.
        spider_name : str, optional
            The name of the collection where the settings give none.

        Raises
        ------
        SettingError
            If a value is not allowed or a name is unknown: one sentence for each mistake, each on a line.
        """
        if not _read_enabled(settings):
            return cls(enabled=False, collection=spider_name)
        values, mistakes = _read_all(settings)
        mistakes += _unknown_names(settings)
        mistakes += _contradictions(values)
        if mistakes:
            raise SettingError("\n".join(mistakes))
        if values["collection"] is None:
            values["collection"] = spider_name
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table of settings.

    Attributes
    ----------
    name : str
        As it stands in a project's ``settings.py``.
    default : object
        As a person would write it there.
    meaning : str
        One or two sentences.
    read : callable
        Takes the value as set and returns the checked one, or raises ValueError with what is allowed.
    secret : bool
        Whether the value is never shown: it is a password or a key, or holds one.
    """

    name: str
    default: object
    meaning: str
    read: Callable[[object], Any]
    secret: bool = False


SETTINGS: tuple[Setting, ...] = tuple(Setting(PREFIX + f.name.upper(), **f.metadata) for f in fields(Settings))


def _read_enabled(settings: Mapping[str, Any]) -> bool:
    """Tell whether anything is to be read at all: when switched off, not even wrong settings matter."""
    try:
        return read_truth(settings.get("CRAWLSCHED_ENABLED", True))
    except ValueError:
        return True


def _read_all(settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    values, mistakes = {}, []
    for row in SETTINGS:
        old = _OLD_NAMES.get(row.name.removeprefix(PREFIX))
        given = row.name if old is None or settings.get(row.name) is not None else PREFIX + old
        value = settings.get(given, row.default)
        try:
            values[row.name.removeprefix(PREFIX).lower()] = row.read(value)
        except ValueError as error:
            got = "another value, which is not shown" if row.secret else repr(value)
            mistakes.append(f"{row.name} must be {error}, got {got}.")
    return values, mistakes


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    """Find what is wrong with settings together, each being allowed by itself."""
    mistakes = []
    shortest, longest = values.get("min_crawl_interval", 0.0), values.get("max_crawl_interval")
    if longest is not None and longest < shortest:
        mistakes.append(
            "CRAWLSCHED_MAX_CRAWL_INTERVAL must be None or at least CRAWLSCHED_MIN_CRAWL_INTERVAL "
            f"({shortest:g} s), got {longest:g} s."
        )
    hours = values.get("hours")
    if hours is not None and not any([hours.otherwise, *(span.rate for span in hours.spans)]):
        mistakes.append("CRAWLSCHED_HOURS must let something go out at some hour of the day, got 0 for all of them.")
    if values.get("receiver") is not None and values.get("receiver_key") is None:
        mistakes.append(
            "CRAWLSCHED_RECEIVER_KEY must be 8 to 128 letters, digits and dashes where CRAWLSCHED_RECEIVER is set, "
            "got None."
        )
    if values.get("web") is not None and values.get("web_token") is False and not is_loopback(values["web"][0]):
        mistakes.append(
            "CRAWLSCHED_WEB_TOKEN must be True, or 16 to 128 letters, digits and dashes, where CRAWLSCHED_WEB is no "
            "address of this machine itself, got False."
        )
    if values.get("websub") and (values.get("receiver") is None or values.get("receiver_url") is None):
        mistakes.append(
            "CRAWLSCHED_WEBSUB needs CRAWLSCHED_RECEIVER, where notices are received, and CRAWLSCHED_RECEIVER_URL, "
            "where hubs reach it; at least one of them is None."
        )
    mistakes += _not_with_shards(values)
    defaults = {field.name: field.default for field in fields(Settings)}
    if set(_RECIPE.values()) <= values.keys() and any(values[name] != defaults[name] for name in _RECIPE.values()):
        from crawlsched.change_detection import recipe

        try:
            recipe(**{name: values[setting] for name, setting in _RECIPE.items()})
        except ValueError as error:
            # It speaks of keep[0], the first of the selectors, or of all of them.
            named = re.sub(r"^(keep|drop)\[", lambda start: f"CRAWLSCHED_FINGERPRINT_{start[1].upper()}[", str(error))
            mistakes.append(named if named != str(error) else f"CRAWLSCHED_FINGERPRINT: {error}")
    for where, written in values.get("fingerprints", ()):
        if fits_no_url(where):
            mistakes.append(
                f"CRAWLSCHED_FINGERPRINTS[{where!r}] fits no URL; it is a host without port, or a pattern of URLs, "
                "such as 'https://shop.example/*' or '*/api/*'."
            )
        from crawlsched.change_detection import recipe_from

        try:
            recipe_from(written)
        except (ValueError, TypeError) as error:
            mistakes.append(f"CRAWLSCHED_FINGERPRINTS[{where!r}]: {error}")
    return mistakes


def _not_with_shards(values: Mapping[str, Any]) -> list[str]:
    """Find what one process alone can have."""
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


#: Settings of earlier versions for what is not done any more, and what to do: projects that have them start as before.
_WITHOUT_EFFECT = {
    "EXPLORATION_ROUNDS": "leave it out.",
    "DISCOVERY_HORIZON": "leave it out, or say by CRAWLSCHED_DISCOVERY_SHARE how much goes to new pages.",
}


#: Settings that were called otherwise: they are read by their old names where the new ones are not given.
_OLD_NAMES = {"SOURCE_URLS": "SITEMAP_URLS", "SOURCE_INTERVAL": "SITEMAP_INTERVAL"}


def of_earlier_versions(settings: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each setting that stands in a project and does nothing any more, or has another name."""
    said = {
        name: f"is a setting of an earlier version and does nothing any more; {what}"
        for name, what in _WITHOUT_EFFECT.items()
    }
    said |= {old: f"is called {PREFIX}{new} now; give it that name." for new, old in _OLD_NAMES.items()}
    return [f"{PREFIX}{name} {said[name]}" for name in sorted(said) if settings.get(PREFIX + name) is not None]


def _unknown_names(settings: Mapping[str, Any]) -> list[str]:
    known = [row.name.removeprefix(PREFIX) for row in SETTINGS]
    ours = [str(name).removeprefix(PREFIX) for name in settings if str(name).startswith(PREFIX)]
    mistakes = []
    for name in sorted(set(ours).difference(known, _WITHOUT_EFFECT, _OLD_NAMES.values())):
        if name == "SHARD":
            mistakes.append(
                f"{PREFIX}SHARD is no setting any more; with {PREFIX}SHARDS = 16, the same for all processes, they "
                "divide the collection among themselves."
            )
            continue
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else "all of them stand in docs/reference/settings.md."
        mistakes.append(f"{PREFIX}{name} is not a setting; {hint}")
    return mistakes
