"""Tallies of what a source states, and the bounded memory by which it is judged."""

from typing import Any

import numpy as np

from crawlsched.change_signals import SitemapDocument
from crawlsched.crawl.source_quality import tallied
from crawlsched.crawl.source_reading import SourceRead

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200


def _read(lastmod: list[float], announced: list[bool]) -> SourceRead:
    return SourceRead(
        b"",
        SitemapDocument("http://a/", "urlset"),
        pages=np.arange(len(lastmod)),
        announced=np.array(announced),
        lastmod=list(lastmod),
    )


def test_announcements_are_counted() -> None:
    """Over all readings, and what else is known of the source stays."""
    quality: dict[str, object] = {"interval": 60.0}
    for _ in range(3):
        quality = tallied(quality, _read([NOON, NOON, NOON], [True, True, False]), NOON + 60)
    assert (quality["announced"], quality["interval"]) == (6, 60.0)


def _delays(delays: np.ndarray) -> dict[str, Any]:
    """Tallies of a source of which one date was read so late each; one has no time of day, and one is yet to come."""
    stated = [*(NOON - delays), NOON // 86_400 * 86_400, NOON + 5000.0]
    return tallied({}, _read(stated, [True] * len(stated)), NOON)


def test_delays_run_from_the_date_stated_to_its_reading() -> None:
    """Dates without a time of day and in the future say nothing; the newest hundred are remembered."""
    delays = np.arange(250.0, 0.0, -1.0)
    assert _delays(delays[-9:])["late"] == sorted(delays[-9:], reverse=True)
    assert len(_delays(delays)["late"]) == 100


def test_a_stamp_on_all_pages_is_one_date() -> None:
    """A thousand pages with the same date are no thousand observations."""
    stamped = tallied({}, _read([NOON] * 1000, [True] * 1000), NOON + 60.0)
    assert stamped["late"] == [60.0]
