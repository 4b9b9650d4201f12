"""``crawlsched sources`` tells an honest source from a lying one, part by part, with counts and intervals."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from crawlsched.cli.sources import newest_report
from crawlsched.store import Batch, NewPage, ObservationRow, Source, Store
from crawlsched.wording import say_duration
from tests.commands import report, said

N_PAGES, N_VISITS = 40, 1600


def _filled(url: str) -> None:
    """A sitemap that is honest about /news/ and says anything about /tags/."""
    rng = np.random.default_rng(4)
    store = Store.open(url, "test")
    urls = [f"http://a/{'news' if page % 2 else 'tags'}/{page}" for page in range(N_PAGES)]
    pages = {page: NewPage(page, urls[page], "a", bytes([page]) * 20, 0.0) for page in range(N_PAGES)}
    quality: dict[str, Any] = {"announced": 500, "backwards": 3, "late": [700.0, 724.1, 800.0]}
    sources = {0: Source(0, "sitemap", "http://a/map.xml", "a", problems={"bad-url": 2}, quality=quality)}
    rows = []
    for number in range(N_VISITS):
        page = int(rng.integers(N_PAGES))
        elapsed = float(rng.exponential(1000.0))
        n = int(rng.poisson(0.001 * elapsed))
        stale = 0.0001 * elapsed + (3.0 * n if page % 2 else 0.0)
        changed = bool(rng.random() < 1 - np.exp(-stale))
        rows.append(ObservationRow(number, page, 1000.0 + number, elapsed, n, 0, changed, "changed"))
    listed = {(page, 0): (None, 0) for page in range(N_PAGES)}
    store.save(Batch(new_pages=pages, sources=sources, observations=rows, announcements=listed))
    store.close()


def test_sources_are_shown_with_counts_and_intervals(tmp_path: Path) -> None:
    """By source, by site, and by part of the site, of which one is believed and the other is not."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    _filled(url)
    told = report("sources", "--database", url)
    [source] = told["sources"]
    low, high = source["precision_interval"]
    assert 0.0 < low < source["precision"] < high < 1.0
    assert source["recall_interval"][0] < source["recall"] < source["recall_interval"][1]
    rarest, most_often = source["false_per_day_interval"]
    assert 0.0 < rarest < source["false_per_day"] < most_often
    assert source["visits"] == N_VISITS
    assert 0 < source["true"] < source["heard"] < N_VISITS
    assert (source["announced"], source["backwards"], source["median_delay"]) == (500, 3, 724.1)
    assert [site["host"] for site in told["sites"]] == ["a"]
    precision = {part["part"]: part["precision_interval"] for part in told["parts"]}
    assert precision["/news/"][0] < 1 - np.exp(-3.0) < precision["/news/"][1]
    assert precision["/news/"][0] > 0.85
    assert precision["/tags/"][1] < 0.15
    assert source["dates"] == 3
    text = said("sources", "--database", url)
    assert f"{say_duration(724.1)} (of 3)" in text
    assert "sitemap http://a/map.xml  (bad-url 2, 3 went back)" in text
    assert "/tags/ of source 0" in text
    # What the columns mean stands below them.
    assert "true: how many visits after an announcement found a change." in " ".join(text.split())
    assert "e-" not in text
    assert "e+" not in text


def test_one_figure_is_said_once(tmp_path: Path) -> None:
    """`sources`, `status` and `why` have the same precision and recall of a source, with the same bounds."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    _filled(url)
    [source] = report("sources", "--database", url)["sources"]
    [in_status] = report("status", "--database", url)["sources"]
    [of_page] = report("why", "http://a/news/1", "--database", url)["announced_by"]
    store = Store.open(url, "test")
    [on_web] = newest_report(store)["sources"]
    store.close()
    names = ("precision", "precision_interval", "recall", "recall_interval", "true", "heard")
    for other in (in_status, of_page, on_web):
        assert [json.loads(json.dumps(other[name])) for name in names] == [source[name] for name in names]


def test_what_is_not_known_yet_is_said_so_and_why(tmp_path: Path) -> None:
    """Of a feed whose every announcement was true, and which nobody visited without; of others that were not heard."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    store = Store.open(url, "test")
    read = {"polled_at": 900.0, "next_poll_at": time.time() + 60.0}
    quality = {"announced": 14, "document": "rss"}
    feed = Source(0, "sitemap", "http://a/feed", "a", quality=quality, problems={"bad-url": 1}, **read)
    others = [
        Source(1, "sitemap", "http://a/1.xml", "a"),
        Source(2, "sitemap", "http://a/2.xml", "a", **read),
        Source(3, "sitemap", "http://a/3.xml", "a", quality={"announced": 3}, **read),
    ]
    pages = {page: NewPage(page, f"http://a/{page}", "a", bytes([page]) * 20, 0.0) for page in range(14)}
    visits = [ObservationRow(n, n, 1000.0 + n, 40.0, 1, 0, True, "changed") for n in range(14)]
    store.save(Batch(new_pages=pages, sources={one.source: one for one in (feed, *others)}, observations=visits))
    store.close()
    text = said("sources", "--database", url)
    [line] = [line for line in text.splitlines() if "feed http://a/feed" in line]
    assert line.split("  ")[1] == "not known yet (14 of 14 true)"
    assert "%" not in line
    assert "e-" not in text
    assert "e+" not in text
    reasons = {line.split()[-1]: line for line in text.splitlines() if "sitemap http://a/" in line}
    assert "not known yet (not read yet)" in reasons["http://a/1.xml"]
    assert "not known yet (has announced nothing yet)" in reasons["http://a/2.xml"]
    assert "not known yet (3 announced, none visited since)" in reasons["http://a/3.xml"]
    assert "not known yet (14 of 14 true)" in said("status", "--database", url)
