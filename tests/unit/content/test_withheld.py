"""Withheld: what does not reach the spider is counted, and logged once for each host and reason."""

import logging

import pytest

from crawlsched.crawl.withheld import Withheld


def test_it_is_counted_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """The line has the number, an example, and the setting that turns it off; the newest URLs are kept."""
    withheld = Withheld({"flapping"})
    with caplog.at_level(logging.INFO):
        for number in range(30):
            withheld.note("example.com", "flapping", f"https://example.com/{number}", now=float(number))
    assert len(caplog.records) == 1
    assert "https://example.com/0" in caplog.text
    assert "CRAWLSCHED_WITHHOLD = {'flapping': False}" in caplog.text
    row = withheld.of("example.com")["flapping"]
    assert (row["n"], row["since"], row["last_at"]) == (30, 0.0, 29.0)
    assert [url for url, _ in row["urls"]] == [f"https://example.com/{number}" for number in range(29, 13, -1)]
    assert withheld.take_unwritten() == {"example.com"}
    assert withheld.take_unwritten() == set()
