"""Attribution: which source's quality a visit can teach, where several sources cover its page."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FurtherRow", "attributed", "newest_of_each"]

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
