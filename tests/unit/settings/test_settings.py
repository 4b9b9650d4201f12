"""Settings: one table, every mistake found at the start and said in one sentence."""

import ast
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scrapy.settings import Settings as ScrapySettings

from crawlsched.exceptions import SettingError
from crawlsched.settings import SETTINGS, Settings, format_bandwidth, parse_bandwidth, parse_duration
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


def test_a_wrong_bandwidth_or_duration_is_refused_with_what_is_allowed() -> None:
    """Also where a program asks; which texts are wrong stands in `mistakes.txt`."""
    with pytest.raises(ValueError, match=r"^bandwidth must be a positive number of crawls, .+, got 'fast'\.$"):
        parse_bandwidth("fast")
    with pytest.raises(ValueError, match=r"^duration must be a number of seconds or .+, zero or more, got '-1s'\.$"):
        parse_duration("-1s")


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


def cases(name: str) -> list[tuple[str, str]]:
    """Read settings as somebody writes them, each line for itself, and what stands below them."""
    found = re.findall(r"((?:^\w.+\n)+)    (.+)", (Path(__file__).parent / name).read_text(), re.MULTILINE)
    return [(line, below) for lines, below in found for line in lines.splitlines()]


def written(line: str) -> dict[str, object]:
    return {row.targets[0].id: ast.literal_eval(row.value) for row in ast.parse(line).body}


@pytest.mark.parametrize(("line", "meant"), cases("read.txt"))
def test_a_setting_is_read_as_it_is_meant(line: str, meant: str) -> None:
    """As a value of Python or as the text of one from -s: numbers with a unit, lists, `None`, dictionaries."""
    given = written(line)
    (name,) = given
    assert getattr(read(**given), name.lower()) == ast.literal_eval(meant)


@pytest.mark.parametrize(("line", "said"), cases("mistakes.txt"))
def test_a_wrong_value_is_said_in_one_sentence(line: str, said: str) -> None:
    """The sentence names the setting, what is allowed ("..." is anything), and the value unless it may be secret."""
    (sentence,) = mistakes(**written(line))
    assert re.fullmatch(re.escape(said).replace(r"\.\.\.", ".+"), sentence), sentence


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


def test_visits_are_waited_for_three_times_as_long_as_scrapy_waits_for_an_answer() -> None:
    """By DOWNLOAD_TIMEOUT."""
    assert Settings.from_scrapy(ScrapySettings({"DOWNLOAD_TIMEOUT": 20})).visit_timeout == 60.0


def test_functions_come_as_callables_or_import_paths() -> None:
    """A function in settings.py and its import path give the same."""
    assert read(IMPORTANCE=double).importance is double
    assert read(IMPORTANCE="math.hypot").importance is __import__("math").hypot
    assert read(FINGERPRINT="math.hypot").fingerprint is __import__("math").hypot


def test_withholding_is_turned_off_for_all_or_by_reason() -> None:
    """As a truth, a dictionary, or the text of one."""
    read = {row.name: row.read for row in SETTINGS}["CRAWLSCHED_WITHHOLD"]
    assert read(False) == frozenset()
    assert "flapping" in read("True")
    assert read({"flapping": False}) == read('{"flapping": false}') == read(True) - {"flapping"}
