"""The quality of a source, and the tallies of its readings. All reports use these functions, so their figures agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crawlsched.change_signals import is_web_url
from crawlsched.estimators import SignalQuality
from crawlsched.estimators.recall_interval import recall_interval
from crawlsched.slot_clock import DAY
from crawlsched.store import Source

if TYPE_CHECKING:
    from crawlsched.crawl.source_reading import SourceRead

__all__ = [
    "VISITS",
    "named",
    "quality",
    "quality_of",
    "tallied",
]

#: Quality is fitted to this number of a store's newest visits, in all reports.
VISITS = 20_000
# A share whose interval has at least this width counts as unknown.
_NEARLY_ALL = 0.8
_FEEDS = ("rss", "atom", "json")


def quality(visits: Mapping[str, Any], chosen: Any) -> dict[str, Any]:
    """Fit precision, recall and false announcements to the chosen visits, and return the counts, too.

    ``heard`` counts visits after an announcement, ``true`` the visits among these that found a change. A share is None
    while its interval spans nearly all values from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> page, ones = np.arange(9), np.ones(9)
    >>> visits = {"page": page, "elapsed": 60.0 * ones, "n_signals": ones, "changed": page >= 0}
    >>> found = quality(visits, visits["page"] >= 0)
    >>> found["precision"], found["true"], found["heard"]
    (None, 9, 9)
    """
    usable = chosen & (visits["elapsed"] > 0)
    pages, elapsed, n_signals, changed = (visits[name][usable] for name in ("page", "elapsed", "n_signals", "changed"))
    loud = n_signals > 0
    counts = {"visits": int(usable.sum()), "heard": int(loud.sum()), "true": int((loud & changed).sum())}
    names = [f"{name}{end}" for name in ("precision", "recall", "false_per_day") for end in ("", "_interval")]
    if not loud.any():
        return {**counts, **dict.fromkeys(names)}
    fit = SignalQuality.fit(elapsed, n_signals, changed)
    found = recall_interval(pages, elapsed, n_signals, changed, fit)
    precision = _known(fit.precision, fit.precision_interval)
    recall = (None, None) if found is None else (_known(found[0], found[1:]), found[1:])
    false = tuple(rate * DAY for rate in fit.false_signal_rate_interval(float(n_signals.sum())))
    per_day = None if precision is None else fit.false_signal_rate * DAY
    values = precision, fit.precision_interval, *recall, per_day, false
    return {**counts, **dict(zip(names, values, strict=True))}


def _known(share: float, interval: tuple[float, ...]) -> float | None:
    return share if interval[1] - interval[0] < _NEARLY_ALL else None


def quality_of(source: Source, visits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `quality` of a source; ``unknown`` says why, if there is no precision."""
    found = quality(visits, visits["source"] == source.source)
    return {**found, "unknown": None if found["precision"] is not None else _unknown_since(source, found)}


def _unknown_since(source: Source, found: Mapping[str, Any]) -> str:
    """Say why a source's precision is not known yet.

    >>> source = Source(0, "sitemap", "https://a.example/map.xml", "a.example")
    >>> _unknown_since(source, {"heard": 0}), _unknown_since(source, {"heard": 14, "true": 14})
    ('not read yet', '14 of 14 true')
    """
    if found["heard"]:
        return f"{found['true']:,} of {found['heard']:,} true"
    if source.kind == "sitemap" and source.polled_at is None:
        return "not read yet"
    announced = source.quality.get("announced", 0)
    if source.kind == "sitemap" and not announced:
        return "has announced nothing yet"
    return f"{announced:,} announced, none visited since" if announced else "none visited since"


def named(source: Source) -> str:
    """Name a source: its kind and address.

    >>> named(Source(0, "sitemap", "https://a.example/feed", "a.example", quality={"document": "rss"}))
    'feed https://a.example/feed'
    """
    document = source.quality.get("document")
    kind = "feed" if document in _FEEDS else "sitemap index" if document == "index" else source.kind
    return f"{kind} {source.url}"


def tallied(source: Source, read: SourceRead) -> dict[str, Any]:
    """Return a source's tallies with one more reading, and the hub that the source names (WebSub).

    ``hub`` has the hub's address, the feed's name there, and the time when the crawl last asked the hub. It is empty
    without a hub. A new hub or name counts as not asked yet.
    """
    hub, asked = next(filter(is_web_url, read.document.hubs.url), None), source.quality.get("hub", {})
    named = {"url": hub, "topic": read.document.hubs.topic or source.url} if hub else {}
    return {
        **source.quality,
        "document": read.document.kind,
        "announced": source.quality.get("announced", 0) + int(read.announced.sum()),
        "hub": asked if named and asked.items() >= named.items() else named,
    }
