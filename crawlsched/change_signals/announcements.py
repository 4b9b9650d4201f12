"""Announcements: entries whose lastmod differs from the stored lastmod, and the sources whose quality a visit shows."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals.lastmod import text_mark

__all__ = [
    "FurtherRow",
    "announces",
    "attributed",
    "newest_of_each",
]

_DAY = timedelta(days=1).total_seconds()


def announces(stored: float | None, lastmod: float | None, precision: str | None, text: str | None) -> bool:
    """Whether an entry announces a change.

    Parameters
    ----------
    stored : float or None
        The entry's `lastmod` at the last reading: POSIX seconds, or the `text_mark` of a text that is no date. None if
        the entry is new or had no `lastmod`.
    lastmod, precision, text : float or None, str or None, str or None
        The date in the document now; see `SitemapEntries`.

    Notes
    -----
    An entry announces a change when its `lastmod` differs from the stored `lastmod`. A comparison with the time of the
    last crawl would miss changes, since a `lastmod` is often days older than its publication. A date that becomes a
    time on that day, or a time that becomes the date alone, announces nothing.

    Examples
    --------
    >>> announces(1795046400.0, 1795132800.0, "day", "2026-11-20"), announces(None, 1795132800.0, "day", "2026-11-20")
    (True, False)
    """
    if stored is None:
        return False
    if lastmod is None:
        # Dates in an unknown form are compared as texts.
        return bool(text) and stored < 0.0 and stored != text_mark(text or "")
    # The store has no precisions. A date alone is stored as midnight.
    is_other_writing = (precision == "day") != (stored % _DAY == 0) and stored // _DAY == lastmod // _DAY
    return stored >= 0.0 and stored != lastmod and not is_other_writing


#: A row of the store with the announcements of a page by a source other than its first. The values are n_signals,
#: n_signals_total, signalled_since, n_heard, signalled_at (None: never), true_signals and false_signals.
FurtherRow = tuple[int, int, float, int, float | None, float, float]


def attributed(heard: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the sources whose quality one visit shows, each with its number of announcements before the visit.

    `heard` has all sources that cover the page, with their announcements since the previous visit. If no source
    announced a change, all sources are returned. If one source announced a change, only this source is returned. If
    several sources did, the list is empty.

    Notes
    -----
    If sources s announce different changes, n_s times each, a page is fresh with probability
    exp(-(α τ + Σ κ_s n_s)). The number n_s of one source does not depend on the other sources. So visits at which all
    other sources are silent are a fair sample for this source. At these visits the probability is
    exp(-(α τ + κ_s n_s)). So α and κ_s are fitted as if there were no other source (Appendix E of [1]_).

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


def newest_of_each(visits: Mapping[str, NDArray[Any]], most: int = 1_000) -> dict[str, NDArray[Any]]:
    """Return the newest visits of each source, since old visits show little of its present quality.

    For each source, at most `most` visits after an announcement are returned, and at most four times as many other
    visits.

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
