"""Announcements: the entries of a sitemap whose lastmod differs from the one that was stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import sleep

from crawlsched.change_signals.collected import SitemapChildren, SitemapEntries
from crawlsched.change_signals.lastmod import parse_lastmod, text_mark

__all__ = ["Announcements", "announcements"]

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
