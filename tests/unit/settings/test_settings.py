"""Settings: one table, every mistake found at the start and said in one sentence."""

import re
from datetime import UTC, datetime

import pytest
from scrapy.settings import Settings as ScrapySettings

from crawlsched.exceptions import SettingError
from crawlsched.settings import (
    SETTINGS,
    Settings,
    format_bandwidth,
    parse_bandwidth,
    parse_duration,
)
from crawlsched.settings.settings import said_of_gone


def read(**settings: object) -> Settings:
    return Settings.from_scrapy({f"CRAWLSCHED_{name}": value for name, value in settings.items()}, "news")


def mistakes(**settings: object) -> list[str]:
    with pytest.raises(SettingError) as caught:
        read(**settings)
    return str(caught.value).splitlines()


def double(url: str, meta: dict[str, object]) -> float:
    return 2.0


def test_every_default_is_what_its_reader_makes_of_it() -> None:
    """Writing all defaults of the table into the settings, as values or as text from -s, changes nothing."""
    assert Settings.from_scrapy({}, "news") == Settings(collection="news")
    written = {row.name: row.default for row in SETTINGS}
    assert Settings.from_scrapy(written, "news") == Settings.from_scrapy({}, "news")
    as_text = {name: str(value) for name, value in written.items()}
    assert Settings.from_scrapy(as_text, "news") == Settings.from_scrapy({}, "news")


@pytest.mark.parametrize(
    ("text", "per_second"),
    [("5", 5.0), (5, 5.0), (" 5 / s ", 5.0), ("30/min", 0.5), ("1e3/s", 1000.0)],
)
def test_bandwidth_is_read_in_every_unit(text: str | float, per_second: float) -> None:
    """A number by itself is per second; s, min, h and d are understood."""
    assert parse_bandwidth(text) == pytest.approx(per_second, rel=1e-15)


@pytest.mark.parametrize("text", ["", "0", "-1/s", "nan", "inf/s", "5/week", "5/s/s", "/s", "fast", True, None, "5 s"])
def test_a_wrong_bandwidth_is_refused_with_what_is_allowed(text: object) -> None:
    """The sentence names the argument, its value and the forms that are understood."""
    with pytest.raises(ValueError) as caught:
        parse_bandwidth(text)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "bandwidth must be a positive number of crawls, by itself (per second) or per s, min, h or d, "
        f"such as 5/s or 20000/d, got {text!r}."
    )


@pytest.mark.parametrize("text", ["1e-320/s", "1e308/s", "1e-9/s", "1000001/s", "0.002/d", "1e12/d"])
def test_a_bandwidth_that_no_clock_could_follow_is_refused(text: str) -> None:
    """From one a year to a million a second."""
    with pytest.raises(ValueError, match=r", between one a year and a million a second, got "):
        parse_bandwidth(text)


@pytest.mark.parametrize(
    ("hours", "mistake"),
    [
        ({"22-06": "1/s"}, "'22-06' names no hours"),
        ({"25:00-26:00": "1/s"}, "names no hours of a day"),
        ({"09:00-09:00": "1/s"}, "names no hours of a day"),
        ({"09:00-10:00 Europe/Atlantis": "1/s"}, "the time zone 'Europe/Atlantis' is not known"),
        ({"09:00-10:00": "fast"}, "'09:00-10:00': it is no bandwidth"),
        ({"else": "1/s"}, "it names no hours"),
        ({"09:00-10:00": "1/s"}, "it has no 'else'"),
        ({"00:00-12:00": 0, "12:00-24:00": "0", "else": 0}, "nothing goes out at any hour"),
        ("{often}", "must be a dictionary"),
    ],
)
def test_hours_that_are_none_are_refused(hours: object, mistake: str) -> None:
    """One sentence that says which of them, and what is allowed."""
    with pytest.raises(SettingError, match=re.escape(mistake)):
        Settings.from_scrapy({"CRAWLSCHED_BANDWIDTH": hours})


def test_hours_follow_their_zone_and_its_summer_time() -> None:
    """At 21:30 UTC it is night in Berlin in summer and in winter; at 20:30 in summer only."""
    settings = read(BANDWIDTH='{"22:00-06:00 Europe/Berlin": "20/s", "else": "1/s"}')
    hours, largest = settings.hours, settings.bandwidth
    assert largest == 20.0
    for month, hour, rate in ((7, 20, 20.0), (7, 19, 1.0), (1, 20, 1.0), (1, 21, 20.0), (1, 4, 20.0), (1, 5, 1.0)):
        time = datetime(2026, month, 1, hour, 30, tzinfo=UTC).timestamp()
        assert hours.rate_at(time) == rate
        assert hours.mean(time) == pytest.approx((8 * 20 + 16 * 1) / 24)


@pytest.mark.parametrize("url", ["postgresql:me:hunter22@db/x", "me:hunter22@db", "hunter22"])
def test_a_secret_is_in_no_mistake_and_in_no_repr(url: str) -> None:
    """Whatever is wrong with it."""
    with pytest.raises(SettingError) as raised:
        read(DATABASE_URL=url, RECEIVER={"address": 1, "key": "hunter22!"}, WEB={"address": 1, "token": "hunter22!"})
    assert "hunter22" not in str(raised.value)
    kept = Settings.from_scrapy({"CRAWLSCHED_DATABASE_URL": "postgresql://me:hunter22@db/x"})
    assert "hunter22" not in repr(kept)


@pytest.mark.parametrize("text", ["1/s", "5/s", "7/min", "7/h", "20000/d", "1/d", "1.5/s", "2000/d"])
def test_a_bandwidth_is_written_as_a_person_would(text: str) -> None:
    """The unit is the one that needs the fewest digits."""
    assert format_bandwidth(parse_bandwidth(text)) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90d", 7776000.0), ("12h", 43200.0), ("30m", 1800.0), ("30 min", 1800.0), ("45s", 45.0), ("0.3", 0.3), (7, 7.0)],
)
def test_durations_are_numbers_of_seconds_or_have_a_unit(text: str | float, seconds: float) -> None:
    """90d, 12h, 30m and 45s are understood; a number is in seconds."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "nan", "1w", True, None, "d"])
def test_a_wrong_duration_is_refused_with_what_is_allowed(text: object) -> None:
    """The sentence names the argument, its value and the forms that are understood."""
    with pytest.raises(ValueError) as caught:
        parse_duration(text)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"duration must be a number of seconds or a text such as 45s, 30m, 12h or 90d, zero or more, got {text!r}."
    )


DURATION = "a number of seconds or a text such as 45s, 30m, 12h or 90d"
METHODS = "blocks, visible_text, main_text, json, raw_bytes, a callable or the import path of one"
URLS = "a list of absolute http or https URLs, as a list, as JSON or with commas between them"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BANDWIDTH", "-3", " must be a positive number of crawls, .+, such as 5/s or 20000/d, got '-3'"),
        ("STANDBY", "maybe", " must be True or False, got 'maybe'"),
        ("CONDITIONAL_REQUESTS", 7, " must be True, False or 'always', got 7"),
        ("DATABASE_URL", "crawl.db", " must be a database URL such as .+, got another value, which is not shown"),
        ("COLLECTION", 7, " must be None or a text that is not empty, got 7"),
        ("SHARDS", 24, " must be None or a power of two from 2 to 4096, got 24"),
        ("SHARDS", 16, " needs PostgreSQL, .+; name a server with CRAWLSCHED_DATABASE_URL, or set .+ = None"),
        (
            "CRAWL_VALUE",
            "best",
            " must be one of posterior, .+, greedy_ncis_approx_1, _2 and so on, got 'best'",
        ),
        ("ERROR_INTERVAL", 0, f" must be {DURATION}, above zero, got 0"),
        ("IMPORTANCE", "news.x", r" must be .+ the import path of one \(No module named 'news'\), got 'news.x'"),
        ("IMPORTANCE", "math.pi", " must be None or a callable or the import path of one, got 'math.pi'"),
        ("FINGERPRINT", "text", f" must be one of {METHODS}, got 'text'"),
        ("FINGERPRINTS", {"*/a/*": {"way": "json"}}, r"\['\*/a/\*'\]: 'way' is no option of a recipe; options are .+"),
        ("FINGERPRINTS", {"a.example": "html"}, rf"\['a.example'\]: a recipe is one of {METHODS}; got 'html'"),
        ("FINGERPRINTS", "a: json", " must be a dictionary, as it is or as JSON, got 'a: json'"),
        ("MIN_CHANGE", 1.5, " must be a share from 0 to 1, such as 0.9 or 90%, got 1.5"),
        ("SOURCE_URLS", "/sitemap.xml", f" must be {URLS}, got '/sitemap.xml'"),
        ("SOURCE_URLS", "http://127.0.0.1:99999/", f" must be {URLS}, got 'http://127.0.0.1:99999/'"),
    ],
)
def test_a_wrong_value_is_said_in_one_sentence(name: str, value: object, said: str) -> None:
    """The sentence names the setting, what is allowed, and the value received."""
    (sentence,) = mistakes(**{name: value})
    assert re.fullmatch(rf"CRAWLSCHED_{name}{said}\.", sentence), sentence


def test_a_wrong_selector_is_found_at_the_start() -> None:
    """A selector that cannot be parsed is quoted with its place in the setting and the parser's reason."""
    (sentence,) = mistakes(FINGERPRINT_DROP=[".clock", "div["])
    assert sentence.startswith("CRAWLSCHED_FINGERPRINT_DROP[1] is 'div[', which is no CSS selector (")
    (sentence,) = mistakes(FINGERPRINTS={"a.example": {"method": "blocks", "drop": ["div["]}})
    assert sentence.startswith("CRAWLSCHED_FINGERPRINTS['a.example']: drop[0] is 'div[', which is no CSS selector (")
    (sentence,) = mistakes(FINGERPRINT_KEEP="//main[")
    assert sentence.startswith("CRAWLSCHED_FINGERPRINT_KEEP[0] is '//main[', which is no XPath (")


@pytest.mark.parametrize("where", ["shop.example/*", "shop.example:8080", "/api/*", "ftp://shop.example/*", ""])
def test_a_pattern_that_fits_no_url_is_named(where: str) -> None:
    """It would choose nothing, silently: patterns are of whole URLs, and hosts have no port."""
    (sentence,) = mistakes(FINGERPRINTS={where: "json"})
    assert sentence == (
        f"CRAWLSCHED_FINGERPRINTS[{where!r}] fits no URL; it is a host without port, or a pattern of URLs, such as "
        "'https://shop.example/*' or '*/api/*'."
    )


def test_all_mistakes_are_reported_at_once() -> None:
    """Four mistakes give four lines, not the first one only; a name that resembles no setting is one, too."""
    lines = mistakes(BANDWIDTH="x", SHARDS="y", BANDWITH="5/s", QQQ=1)
    assert len(lines) == 4
    assert lines[0].startswith("CRAWLSCHED_BANDWIDTH must be")
    assert lines[1].startswith("CRAWLSCHED_SHARDS must be")
    assert lines[2] == "CRAWLSCHED_BANDWITH is not a setting; did you mean CRAWLSCHED_BANDWIDTH?"
    assert lines[3] == "CRAWLSCHED_QQQ is not a setting; all of them stand in docs/reference/settings.md."


def test_a_setting_that_is_gone_is_named_with_what_to_write() -> None:
    """A crawl without it is refused where it would do otherwise than was wished."""
    earlier = {"CRAWLSCHED_WRONG_PAGES": False, "CRAWLSCHED_REPLAN_INTERVAL": 5, "CRAWLSCHED_BANDWIDTH": "1/s"}
    assert said_of_gone(earlier) == [
        "CRAWLSCHED_REPLAN_INTERVAL is gone: write nothing in its place.",
        "CRAWLSCHED_WRONG_PAGES is gone: write CRAWLSCHED_WITHHOLD = {'wrong_page': False}.",
    ]
    assert mistakes(HOURS={"22-06": "1/s"}) == [
        "CRAWLSCHED_HOURS is gone: write CRAWLSCHED_BANDWIDTH = {'22:00-06:00': '20/s', 'else': '1/s'}."
    ]
    assert mistakes(MAX_CRAWL_INTERVAL="7d") == [
        "CRAWLSCHED_MAX_CRAWL_INTERVAL is gone: write CRAWLSCHED_PAGES = [('*', {'max_interval': '7d'})]."
    ]


def test_visits_are_waited_for_three_times_as_long_as_scrapy_waits_for_an_answer() -> None:
    """By DOWNLOAD_TIMEOUT."""
    assert Settings.from_scrapy(ScrapySettings({"DOWNLOAD_TIMEOUT": 20})).visit_timeout == 60.0


@pytest.mark.parametrize(
    "written",
    [
        ["http://127.0.0.1/a.xml", "http://127.0.0.1/b.xml"],
        ("http://127.0.0.1/a.xml", "http://127.0.0.1/b.xml"),
        "http://127.0.0.1/a.xml,http://127.0.0.1/b.xml",
        "http://127.0.0.1/a.xml, http://127.0.0.1/b.xml",
        '["http://127.0.0.1/a.xml", "http://127.0.0.1/b.xml"]',
    ],
)
def test_lists_come_as_lists_as_json_or_with_commas(written: object) -> None:
    """A list on the command line is written with commas or as JSON."""
    assert read(SOURCE_URLS=written).source_urls == ("http://127.0.0.1/a.xml", "http://127.0.0.1/b.xml")


def test_a_selector_keeps_its_commas_and_brackets() -> None:
    """One selector as text is one selector, even where it looks like a list."""
    assert read(FINGERPRINT_KEEP="h1, .price").fingerprint_keep == ("h1, .price",)
    assert read(FINGERPRINT_KEEP="[data-price]").fingerprint_keep == ("[data-price]",)
    assert read(FINGERPRINT_KEEP='["h1", ".price"]').fingerprint_keep == ("h1", ".price")


def test_functions_come_as_callables_or_import_paths() -> None:
    """A function in settings.py and its import path give the same."""
    assert read(IMPORTANCE=double).importance is double
    assert read(IMPORTANCE="math.hypot").importance is __import__("math").hypot
    assert read(FINGERPRINT="math.hypot").fingerprint is __import__("math").hypot
    assert read(FINGERPRINT="raw_bytes").fingerprint == "raw_bytes"


@pytest.mark.parametrize("text", ["None", "none", "null", ""])
def test_none_can_be_written_on_the_command_line(text: str) -> None:
    """`-s CRAWLSCHED_SHARDS=None` is no number of shards."""
    settings = read(SHARDS=text, COLLECTION=text, WEB=text)
    assert settings.shards is None
    assert settings.web is None
    assert settings.collection == "news"


def test_withholding_is_turned_off_for_all_or_by_reason() -> None:
    """As a truth, a dictionary, or the text of one; a reason that there is not is named with all there are."""
    read = {row.name: row.read for row in SETTINGS}["CRAWLSCHED_WITHHOLD"]
    assert read(False) == frozenset()
    assert "flapping" in read("True")
    assert read({"flapping": False}) == read('{"flapping": false}') == read(True) - {"flapping"}
    for wrong in ({"rain": False}, "never", {"flapping": "perhaps"}):
        with pytest.raises(ValueError, match="True, False, or a dictionary of these with the keys wrong_page"):
            read(wrong)


def test_one_pass_is_a_truth_or_a_number_of_visits() -> None:
    """A number below one is no number of visits."""
    read = {row.name: row.read for row in SETTINGS}["CRAWLSCHED_ONE_PASS"]
    assert [read(value) for value in (True, "false", "500", 20)] == [True, False, 500, 20]
    with pytest.raises(ValueError, match="True, False, or a number of visits, 1 or more"):
        read(-3)


def test_an_estimator_is_a_name_or_has_parameters() -> None:
    """As a dictionary or as JSON; what it does not take is said, with what is allowed."""
    read = lambda value: Settings.from_scrapy({"CRAWLSCHED_ESTIMATOR": value}).estimator  # noqa: E731
    assert Settings.from_scrapy({}).estimator == read("posterior") == ("posterior", ())
    assert read("naive") == ("naive", ())
    assert read({"name": "momentum", "beta": 0.75}) == read('{"name": "momentum", "beta": 0.75}')
    for wrong in ("best", 3, {"name": "naive", "beta": 1}, {"beta": 1}, {"name": "posterior", "x": 1}):
        (mistake,) = mistakes(ESTIMATOR=wrong)
        assert mistake.startswith("CRAWLSCHED_ESTIMATOR must be one of posterior, naive, bias_reduced, ")
        assert mistake.endswith(f"got {wrong!r}.")
    (mistake,) = mistakes(ESTIMATOR={"name": "momentum", "beta": 7})
    assert "(beta" in mistake


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("PAGES", [("*/a", {})], "'*/a' may have importance, min_interval, max_interval, max_pages"),
        ("PAGES", [("*/a", {"max_pages": 1.5})], "a number of '*/a' must be a whole number, zero or more"),
        ("IGNORE_PARAMETERS", ["*"], "a list of names of parameters such as sid or utm_*"),
        ("IGNORE_PARAMETERS", "a=b", "a list of names of parameters such as sid or utm_*"),
        ("MAX_PAGES", -1, "a whole number, zero or more"),
        ("PAGES", [("*/a", {"imporance": 3})], "not 'imporance'"),
        ("PAGES", [("a.example/b", {"importance": 3})], "'a.example/b' fits no URL"),
        ("PAGES", [("*/a", {"importance": -1})], "a number of '*/a' must be 0 or more"),
        ("PAGES", [("*/a", {"max_interval": "soon"})], "a number of '*/a' must be a number of seconds"),
        ("PAGES", [("*/a", {"max_interval": 5, "min_interval": 6})], "is shorter than its min_interval"),
        ("PAGES", "[[", "a list of pairs"),
        ("PAGES", [("*/a",)], "a list of pairs"),
        ("HOST_SHARES", {"a.example": 0}, "shares above 0 and at most 1"),
        ("HOST_SHARES", {"*.example": 0.5}, "a dictionary of hosts"),
        ("HOST_SHARES", {"a.example": 2}, "shares above 0 and at most 1"),
    ],
)
def test_wrong_rules_are_named(name: str, value: object, complaint: str) -> None:
    """A rule that can never hold, or says nothing, is found at the start."""
    (said,) = mistakes(**{name: value})
    assert said.startswith(f"CRAWLSCHED_{name} must be ")
    assert complaint in said


def test_a_standby_is_nothing_for_a_collection_that_several_processes_share() -> None:
    """There a further process has its part at once."""
    assert mistakes(SHARDS=16, STANDBY=True, DATABASE_URL="postgresql://db.example/crawls") == [
        "CRAWLSCHED_STANDBY needs CRAWLSCHED_SHARDS = None: where several processes share a collection, one more joins "
        "them at once."
    ]


def test_several_processes_make_one_pass_and_no_number_of_visits() -> None:
    """Each counts its own visits, and none knows whose turn the last one is."""
    assert mistakes(SHARDS=16, ONE_PASS=5, DATABASE_URL="postgresql://db.example/crawls") == [
        "CRAWLSCHED_ONE_PASS = a number of visits needs CRAWLSCHED_SHARDS = None; several processes that share a "
        "collection can have True, and end when each of its pages was tried once."
    ]
