"""The line after the first minute names what keeps the bandwidth from being used."""

from crawlsched.crawl.first_minute import minute


def test_the_bandwidth_is_not_too_much_where_nothing_answers() -> None:
    """The reason is that most visits failed; where they did not, there are few pages."""
    slots = {"crawlsched/slots/used": 40, "crawlsched/slots/idle": 160, "crawlsched/resolved": 40}
    failed = {"crawlsched/resolved/refused": 21, "crawlsched/resolved/error": 4}
    said = minute(slots | failed, 21, 21, 0)
    assert "25 of 40 visits found no page: `crawlsched status` says which hosts fail." in said
    assert "more than it needs" not in said
    assert "CRAWLSCHED_BANDWIDTH is more than it needs" in minute(slots | {"crawlsched/resolved/error": 4}, 21, 21, 0)


def test_rules_that_ask_for_more_than_the_bandwidth_are_warned_of() -> None:
    """They are kept as far as the bandwidth goes."""
    said = minute({}, 21, 21, 0, n_missing=4.0)
    assert "CRAWLSCHED_PAGES asks for 4 crawls a second more than CRAWLSCHED_BANDWIDTH has" in said
    assert "CRAWLSCHED_PAGES" not in minute({}, 21, 21, 0, n_missing=-4.0)
