"""What brings ever more new URLs is said once, with the line that ends it; what does not is left alone."""

import logging

import pytest

from crawlsched.crawl.growth import Growth

SITE = "http://a.example"


def watched(seconds: float, found_a_second: list[str], crawled_a_second: int = 6, known: int = 20) -> Growth:
    """Let time pass in which each second these URLs are found (`#` in them is a number), and so many are crawled."""
    growth = Growth(lambda: known, lambda: 10.0, 0.0)
    for second in range(int(seconds)):
        for position, url in enumerate(found_a_second):
            growth.found(SITE + url.replace("#", f"{second}{position:02}"))
        for _ in range(crawled_a_second):
            growth.copied()
        growth.look(second + 1.0)
    return growth


def test_a_place_that_brings_more_than_is_crawled_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    growth = watched(60, ["/calendar/#/day"] * 18 + ["/news/#"])
    line = "CRAWLSCHED_PAGES = [('http://a.example/calendar/*', {'max_pages': 500})]"
    assert "95 % of them begin with http://a.example/calendar/, such as http://a.example/calendar/" in growth.warning
    assert growth.warning.endswith(f"If there is no end to them, write {line}")
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_chain_of_pages_is_said_too(caplog: pytest.LogCaptureFixture) -> None:
    """Each leads to the next one only, so that as many are crawled as are found."""
    assert "/month/" in watched(60, ["/month/#"] * 6).warning


def test_a_parameter_that_makes_many_urls_of_one_is_named(caplog: pytest.LogCaptureFixture) -> None:
    growth = watched(60, [f"/shelf/{shelf}?visitor=#" for shelf in range(15)])
    assert "CRAWLSCHED_IGNORE_PARAMETERS = ['visitor']" in growth.warning


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(["/news/#"] * 3, id="news, of which all are crawled at once"),
        pytest.param([f"/part{part}/#" for part in range(30)], id="all parts of a site"),
        pytest.param([], id="nothing"),
    ],
)
def test_other_growth_is_left_alone(found: list[str], caplog: pytest.LogCaptureFixture) -> None:
    growth = watched(200, found, crawled_a_second=len(found) or 3, known=1000)
    assert growth.warning == ""
    assert not caplog.records


def test_a_catalogue_that_comes_at_once_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    growth = Growth(lambda: 20, lambda: 10.0, 0.0)
    for number in range(3000):
        growth.found(f"{SITE}/item/{number}")
    for second in range(60):
        growth.look(second + 1.0)
    assert growth.warning == ""


def test_the_pace_of_first_copies_is_that_of_the_last_rounds() -> None:
    assert watched(60, []).pace(60.0) == pytest.approx(6.0, rel=0.1)


def test_what_is_remembered_has_a_bound() -> None:
    """A crawl of months finds URLs without end."""
    growth = Growth(lambda: 10, lambda: 10.0, 0.0)
    for second in range(20):
        for number in range(2_000):
            growth.found(f"http://{second}.example/{number}?p{number}={second}")
        growth.look(second + 1.0)
    assert sum(len(each.urls) for each in growth._rounds) <= 10_000
    assert len(growth._rounds) == 10
