"""Announcements: the entries whose lastmod differs from the stored one, and which source a visit can teach."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals.collected import SitemapChildren, SitemapEntries
from crawlsched.change_signals.lastmod import parse_lastmod, text_mark

__all__ = [
    "Announcements",
    "FurtherRow",
    "announcements",
    "attributed",
    "newest_of_each",
]

_DAY = 86_400.0
_AT_ONCE = 2_000


@dataclass(slots=True)
class Announcements:
    """Which entries of a document announce a change, as positions in its lists."""

    # Entries whose `lastmod` differs from the stored one: they announce a change.
    changed: list[int] = field(default_factory=list)
    # Those of `changed` whose `lastmod` went back: announcements of low worth.
    backwards: list[int] = field(default_factory=list)
    new: list[int] = field(default_factory=list)  # entries whose URL was not stored; the first sight announces nothing


def announcements(
    entries: SitemapEntries | SitemapChildren, previous: Mapping[str, float | str | None]
) -> Announcements:
    """Decide which entries announce a change.

    Parameters
    ----------
    entries : SitemapEntries or SitemapChildren
        What a document says now.
    previous : mapping of str to float, str or None
        What was stored at its last reading: for each URL the `lastmod`, as POSIX seconds, as it was written, or as the
        `text_mark` of a text that is no date; None for an entry that had none.

    Notes
    -----
    An entry announces a change when its `lastmod` differs from the stored one. "Later than the last crawl" would miss
    changes, since a `lastmod` often lags publishing by days. A date without a time of day that becomes a time on
    that day, or the other way round, is another way of writing and no announcement.

    Examples
    --------
    >>> entries = SitemapChildren(
    ...     ["http://a/1", "http://a/2", "http://a/3"],
    ...     [1795132800.0, 1795046400.0, None],
    ...     ["2026-11-20", "2026-11-19", None],
    ...     ["day", "day", None],
    ... )
    >>> found = announcements(entries, {"http://a/1": "2026-11-19", "http://a/3": None})
    >>> found.changed, found.new
    ([0], [1])
    """
    found = Announcements()
    columns = zip(entries.url, entries.lastmod, entries.lastmod_text, entries.precision, strict=True)
    for position, (url, seconds, text, precision) in enumerate(columns):
        if position % _AT_ONCE == _AT_ONCE - 1:
            sleep(0)  # gives up the interpreter lock
        if url not in previous:
            found.new.append(position)
        elif seconds is None or previous[url] != seconds:
            _compare(found, position, previous[url], seconds, text, precision)
    return found


def _compare(
    found: Announcements,
    position: int,
    stored: float | str | None,
    seconds: float | None,
    text: str | None,
    precision: str | None,
) -> None:
    """Compare an entry with what was stored, where a glance does not settle it."""
    stored_seconds, stored_precision = _read(stored)
    if seconds is None:
        # A date in a form that nobody knows still differs from another one in that form.
        if text and stored is not None and stored_seconds is None and _mark(stored) != text_mark(text):
            found.changed.append(position)
    elif (
        stored_seconds is not None  # the first date of a known entry announces nothing
        and stored_seconds != seconds
        and not _same_day(stored_seconds, stored_precision, seconds, precision)
    ):
        found.changed.append(position)
        if seconds < stored_seconds:
            found.backwards.append(position)


def _read(stored: float | str | None) -> tuple[float | None, str | None]:
    if isinstance(stored, str):
        return parse_lastmod(stored) or (None, None)
    if stored is not None and stored < 0.0:
        return None, None
    # Stored seconds do not tell their precision; midnight is what a date alone is stored as.
    return stored, None if stored is None else "day" if stored % _DAY == 0 else "second"


def _same_day(stored: float, stored_precision: str | None, seconds: float, precision: str | None) -> bool:
    return precision != stored_precision and stored // _DAY == seconds // _DAY


def _mark(stored: float | str) -> float:
    return text_mark(stored.strip()) if isinstance(stored, str) else stored


#: What a source beside a page's first one announced of it, as a row that a store keeps: n_signals, n_signals_total,
#: signalled_since, n_heard, signalled_at (None: never), true_signals and false_signals.
FurtherRow = tuple[int, int, float, int, float | None, float, float]


def attributed(heard: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the sources whose quality one visit can teach, with their announcements before it.

    `heard` has each source that covers the page, with its announcements since the visit before. All are returned if
    none announced anything, the one that did if it was alone, and none if several did.

    Notes
    -----
    With announcements n_s of sources s that each announce different changes, a page is fresh with probability
    exp(-(α τ + Σ κ_s n_s)). The number n_s of one source does not depend on what the others did, so visits at which all
    others are silent are a fair sample for it: there the probability is exp(-(α τ + κ_s n_s)), and one source's α and
    κ_s are fitted as if it were alone (Appendix E of [1]_).

    Examples
    --------
    >>> attributed([(3, 0), (5, 0)]), attributed([(3, 0), (5, 2)]), attributed([(3, 1), (5, 2)])
    ([(3, 0), (5, 0)], [(5, 2)], [])
    """
    all_of_them = list(heard)
    loud = [(source, n) for source, n in all_of_them if n]
    if not loud:
        return all_of_them
    return loud if len(loud) == 1 else []


def newest_of_each(visits: Mapping[str, NDArray[Any]], most: int) -> dict[str, NDArray[Any]]:
    """Return the newest visits of each source: old ones say little of what it does now.

    `most` is the number of visits of each source after an announcement; of those without one four times as many are
    kept.

    >>> visits = {"source": np.array([3, 3, 7, 3]), "n_signals": np.array([1, 2, 1, 1])}
    >>> newest_of_each(visits, 2)["source"]
    array([3, 3, 7])
    """
    loud = np.asarray(visits["n_signals"]) > 0
    kind = np.asarray(visits["source"]) * 2 + loud
    order = np.argsort(kind, kind="stable")
    starts = np.searchsorted(kind[order], kind[order])
    rank = np.empty(kind.size, np.intp)
    rank[order] = np.arange(kind.size) - starts
    kept = rank < np.where(loud, most, 4 * most)
    return {name: np.asarray(column)[kept] for name, column in visits.items()}
