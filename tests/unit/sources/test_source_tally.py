"""Tallies of what a source states, and the bounded memory by which it is judged."""

from __future__ import annotations

import numpy as np
import pytest

from crawlsched.crawl.source_reading import PartRead, SourceRead
from crawlsched.crawl.source_tally import median_delay, tallied, together

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200


def _read(lastmod: list[float], announced: list[bool], backwards: list[bool]) -> SourceRead:
    pages = np.arange(len(lastmod))
    return SourceRead(
        b"",
        pages=pages,
        announced=np.array(announced),
        backwards=np.array(backwards),
        lastmod=list(lastmod),
    )


def test_announcements_and_dates_that_went_back_are_counted() -> None:
    """Over all readings."""
    quality: dict[str, object] = {"index": {"held": 1.0, "missed": 0.0}}
    for _ in range(3):
        quality = tallied(quality, _read([NOON, NOON, NOON], [True, True, False], [False, True, False]), NOON + 60)
    assert (quality["announced"], quality["backwards"]) == (6, 3)
    assert quality["index"] == {"held": 1.0, "missed": 0.0}


def _delays(delays: np.ndarray) -> dict[str, object]:
    """Tallies of a source of which one date was read so late each; one has no time of day, and one is yet to come."""
    stated = [*(NOON - delays), NOON // 86_400 * 86_400, NOON + 5000.0]
    return tallied({}, _read(stated, [True] * len(stated), [False] * len(stated)), NOON)


def test_the_delay_is_the_median_from_the_date_stated_to_its_reading() -> None:
    """To a tenth; dates without a time of day and dates in the future say nothing."""
    rng = np.random.default_rng(1)
    delay = median_delay(_delays(rng.lognormal(np.log(600.0), 0.5, 500)))
    assert delay.median == pytest.approx(600.0, rel=0.1)
    assert delay.n == 500


def test_of_a_delay_few_dates_say_no_interval_and_a_stamp_on_all_pages_is_one_date() -> None:
    """Five dates are not enough for 95 %; and a thousand pages with the same date are no thousand observations."""
    rng = np.random.default_rng(2)
    five, six = (median_delay(_delays(rng.exponential(100.0, n))) for n in (5, 6))
    assert (five.interval, five.n) == (None, 5)
    assert six.interval[0] < six.median < six.interval[1]
    stamped = tallied({}, _read([NOON] * 1000, [True] * 1000, [False] * 1000), NOON + 60.0)
    assert median_delay(stamped) == (pytest.approx(60.0, rel=0.1), None, 1)


def test_parts_of_a_site_are_tallied_by_themselves() -> None:
    """One that is stamped at each reading beside one whose dates lag an hour; the tallies are bounded."""
    quality: dict[str, object] = {}
    for reading in range(10):
        now = NOON + 7200.0 * reading
        news, shop = np.array([now - 3600.0, now - 3700.0]), np.full(30, now - 1.0)
        read = _read([*news, *shop], [True] * 32, [False] * 32)
        read.parts = {"a/news/": PartRead(2, news), "a/shop/": PartRead(30, shop)}
        read.parts |= {f"a/{number}/": PartRead(0, np.empty(0)) for number in range(200)}
        quality = tallied(quality, read, now)
    parts: dict[str, dict[str, object]] = quality["parts"]  # type: ignore[assignment]
    assert len(parts) == 100
    assert (parts["a/news/"]["announced"], parts["a/shop/"]["announced"]) == (20, 300)
    news_delay, shop_delay = median_delay(parts["a/news/"]), median_delay(parts["a/shop/"])
    assert news_delay.median == pytest.approx(3650.0, rel=0.1)
    assert shop_delay.median == pytest.approx(1.0, rel=0.2)
    both = together([parts["a/news/"], parts["a/shop/"]])
    assert (both["announced"], sum(both["delays"].values())) == (320, 30)
