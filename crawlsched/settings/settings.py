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
from crawlsched.settings.addresses import (
    Receiver,
    WebAddress,
    Webhook,
    is_loopback,
    read_receiver,
    read_web,
    read_webhook,
)
from crawlsched.settings.gone import NAMES, refused, taken_over
from crawlsched.settings.hours import Hours
from crawlsched.settings.page_rules import PageRule, read_host_shares, read_page_rules
from crawlsched.settings.values import (
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

__all__ = ["PREFIX", "SETTINGS", "Setting", "Settings", "recipe_from"]

PREFIX = "CRAWLSCHED_"

_TIMEOUTS = 3.0

# The arguments of a recipe, and the settings that they come from. What recipes are made of is loaded where one is: it
# takes longer than all settings.
_RECIPE = {
    "method": "fingerprint",
    "keep": "fingerprint_keep",
    "drop": "fingerprint_drop",
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


def recipe_from(written: object) -> "Recipe":
    """Return the recipe that somebody wrote down.

    Parameters
    ----------
    written : str, callable or mapping
        The name of a method; a function or its import path; or a mapping of ``method`` (one of the former, "blocks" by
        default) and options of a `Recipe`.

    Raises
    ------
    ValueError
        If it says no recipe.

    Examples
    --------
    >>> recipe_from("json").id, recipe_from({"method": "visible_text", "links": True}).id
    ('json/2', 'visible_text/4+links')
    """
    from crawlsched.change_detection import RECIPE_OPTIONS, Recipe

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

    bandwidth: float = _setting(
        "1/s",
        read_bandwidth_or_hours,
        "How many requests go out, to all hosts together: `5` or `5/s`, `300/min`, `300/h`, `20000/d`; or by the hour "
        "of the day: `{'22:00-06:00 Europe/Berlin': '20/s', 'else': '1/s'}`, where `0` is none. Without a zone hours "
        "are UTC.",
    )
    database_url: str = _setting(
        "sqlite:///crawlsched.db",
        read_database_url,
        "Where everything is kept: an SQLAlchemy URL. SQLite (a relative path counts from where `scrapy.cfg` is), or "
        "PostgreSQL with `crawlsched[postgresql]`.",
        secret=True,
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
        "other number of terms); or a plan, made anew every few minutes, by which each page has its rate:"
        " `lds`, `poisson`, `harmonic`, `square_root`, `proportional`, `uniform`, `round_robin`.",
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
        "a request or a file states goes before a rule's, and a rule's before that of `CRAWLSCHED_IMPORTANCE`. Of what "
        "a rule with `max_pages` fits at most so many URLs are taken as pages.",
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
    fingerprints: tuple[tuple[str, Any], ...] = _setting(
        {},
        read_table,
        "Other recipes for some hosts or URL patterns, the first that fits: "
        "`{'shop.example': 'visible_text', '*/api/*': {'method': 'json', 'ignore_keys': ['now']}}`. A recipe may have "
        "`method`, `keep`, `drop`, `links`, `images` and `ignore_keys`. A request's "
        "`meta['crawlsched_recipe']` goes before it.",
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
        "Keep the texts of a page's last two changes for `crawlsched why --diff`, compressed to at most so many bytes "
        "each, such as `20000`. `0`: none.",
    )
    conditional_requests: bool | str = _setting(
        True,
        read_conditional,
        "Send `If-None-Match` and `If-Modified-Since` where they have not proved wrong; a 304 counts as unchanged. One "
        "visit in ten goes without them, to see whether they move when the page does. `'always'`: none does.",
    )
    callback_on_unchanged: bool = _setting(
        False, read_truth, "Call the spider's callback for pages that did not change, too."
    )
    source_urls: tuple[str, ...] = _setting(
        [], read_urls, "Sitemaps and feeds to read beside those that robots.txt and pages name."
    )
    find_sources: bool = _setting(
        True, read_truth, "Read the sitemaps that robots.txt files name, and the sitemaps and feeds that pages name."
    )
    source_interval: float = _setting(
        3600.0,
        read_positive_seconds,
        "How often a sitemap or feed is read again at least, until it has shown what its announcements are worth; "
        "sooner where three rounds of the crawl take less, and all such reading a twentieth of the bandwidth at most.",
    )
    sitemap_discovery: bool = _setting(True, read_truth, "Make pages of the unknown URLs that a sitemap lists.")
    receiver: Receiver | None = _setting(
        None,
        read_optional(read_receiver),
        "Where pings are received (IndexNow and WebSub over HTTP): `{'address': 8025, 'key': '4f8c1d20'}`. The address "
        "is a port of 127.0.0.1, or `host:port`. With `'url': 'https://crawler.example.com/'`, where others reach it, "
        "feeds are subscribed to at the hubs that they name (WebSub). `None`: nowhere.",
        secret=True,
    )
    web: WebAddress | None = _setting(
        None,
        read_optional(read_web),
        "Where the page about the crawl is served, with `/metrics`, `/healthz` and the change feed: a port of "
        "127.0.0.1, or `host:port`. Who sees it has to know a token that is made at each start and stands in the log; "
        "`{'address': 8765, 'token': ...}` is one of your own, or `False` for none, which only 127.0.0.1 may have.",
        secret=True,
    )
    webhook: Webhook | None = _setting(
        None,
        read_optional(read_webhook),
        "Where delivered changes are posted as JSON, in batches, again and again until they have arrived: an http or "
        "https URL. With `{'url': ..., 'key': ...}` they are signed: `X-Crawlsched-Signature` is `sha256=` and the "
        "HMAC-SHA256 of the body. `None`: nowhere.",
        secret=True,
    )
    observation_retention: float = _setting("90d", read_positive_seconds, "How long single visits are kept.")
    error_interval: float = _setting(
        60.0,
        read_positive_seconds,
        "When a page is tried again that failed; then twice as long, up to a day. "
        "While most visits to a host fail, it is asked for one page at a time, with pauses of a 16th of that while.",
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
    starts_first: int = _setting(
        100,
        read_count,
        "At every start known pages wait for so many start requests and the requests that are no pages which these "
        "lead to, such as log-ins; for 100 slots or 60 s at most, whichever is longer. `0`: they do not wait.",
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

    #: The bandwidths by the hour of the day, if `CRAWLSCHED_BANDWIDTH` is that.
    hours: Hours | None = None
    #: Seconds after which a visit without an answer counts as dropped: three times Scrapy's `DOWNLOAD_TIMEOUT`.
    visit_timeout: float = 540.0

    def recipe(self) -> "Recipe":
        """Return the recipe of all pages for which there is no other."""
        from crawlsched.change_detection import Recipe

        return Recipe(**{name: getattr(self, setting) for name, setting in _RECIPE.items()})

    @property
    def share_of_first_copies(self) -> float:
        """The discovery share, or all where each page is visited once."""
        return 1.0 if self.one_pass else self.discovery_share

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


SETTINGS: tuple[Setting, ...] = tuple(
    Setting(PREFIX + f.name.upper(), **f.metadata) for f in fields(Settings) if f.metadata
)


def _read_all(settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    values, mistakes = {}, []
    earlier = taken_over(settings)
    for row in SETTINGS:
        value = earlier.get(row.name, settings.get(row.name, row.default))
        try:
            values[row.name.removeprefix(PREFIX).lower()] = row.read(value)
        except ValueError as error:
            got = "another value, which is not shown" if row.secret else repr(value)
            mistakes.append(f"{row.name} must be {error}, got {got}.")
    return values, mistakes


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    """Find what is wrong with settings together, each being allowed by itself."""
    mistakes = []
    web = values.get("web")
    if web is not None and web.token is False and not is_loopback(web.host):
        mistakes.append(
            "CRAWLSCHED_WEB must have a 'token' of True, or of 16 to 128 letters, digits and dashes, where its address "
            "is none of this machine itself, got False."
        )
    mistakes += _not_with_shards(values)
    defaults = {field.name: field.default for field in fields(Settings)}
    if set(_RECIPE.values()) <= values.keys() and any(values[name] != defaults[name] for name in _RECIPE.values()):
        from crawlsched.change_detection import Recipe

        try:
            Recipe(**{name: values[setting] for name, setting in _RECIPE.items()})
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


def _unknown_names(settings: Mapping[str, Any]) -> list[str]:
    known = [row.name.removeprefix(PREFIX) for row in SETTINGS]
    ours = [str(name).removeprefix(PREFIX) for name in settings if str(name).startswith(PREFIX)]
    mistakes = refused(settings)
    for name in sorted(set(ours).difference(known, NAMES)):
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else "all of them stand in docs/reference/settings.md."
        mistakes.append(f"{PREFIX}{name} is not a setting; {hint}")
    return mistakes
