"""For how many announcements what is known of a source counts, when a page's own announcements are judged."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.estimators.page_precision import fit_strength
from crawlsched.planner.parameters.parameters import FIRST_STRENGTH
from crawlsched.planner.plans.signal_learning import SignalsLearned
from crawlsched.planner.plans.snapshot import Snapshot

__all__ = ["learn_strengths"]


# A source needs so many pages with judged announcements; of more than so many an even sample is looked at.
_LEAST_PAGES, _MOST_PAGES = 4, 1000
# Whether a page is right or wrong without exception no number of announcements can tell.
_EXTREME = 1e-6


def learn_strengths(snapshot: Snapshot, learned: SignalsLearned) -> FloatArray:
    """Learn from pages whose announcements were judged how much those of one source differ.

    Parameters
    ----------
    snapshot : Snapshot
    learned : SignalsLearned
        What one announcement is worth, by source and group.

    Returns
    -------
    ndarray, shape (S + 1,)
        `fit_strength` of each source; where too few pages were judged, what all sources show together.
    """
    judged = np.flatnonzero(snapshot.true_signals + snapshot.false_signals > 0)
    weights, groups = learned.weights[snapshot.sources], learned.groups
    if len(groups):
        rows = groups.rows(snapshot.sources, snapshot.signalled_hosts, snapshot.signalled_parts)
        weights[rows >= 0] = groups.signal_weights[rows[rows >= 0]]
    precision = np.clip(-np.expm1(-weights), _EXTREME, 1 - _EXTREME)

    def fit(rows: npt.NDArray[np.intp]) -> float:
        rows = rows[:: -(-rows.size // _MOST_PAGES)]
        return fit_strength(snapshot.true_signals[rows], snapshot.false_signals[rows], precision[rows])

    strengths = np.full(learned.weights.size, fit(judged) if judged.size >= _LEAST_PAGES else FIRST_STRENGTH)
    for source, n_pages in enumerate(np.bincount(snapshot.sources[judged])):
        if n_pages >= _LEAST_PAGES:
            strengths[source] = fit(judged[snapshot.sources[judged] == source])
    return strengths
