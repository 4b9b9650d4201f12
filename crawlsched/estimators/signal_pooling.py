"""Partial pooling of the precision of announcements, over sources and over the sites of a source.

The fit of a source starts from ten announcements with the precision of all sources. The fit of a site starts from ten
announcements with the precision of its source. The precision of a larger group is the mean of its members' precisions,
weighted by their numbers of visits after an announcement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.signal_quality import SignalQuality

__all__ = ["FIRST_PRECISION", "MOST_GROUPS", "pooled_sites", "pooled_sources"]

Visits = Mapping[str, npt.NDArray[Any]]

#: Precision of announcements before anything is known.
FIRST_PRECISION = 0.5
# The larger group's precision counts as this number of announcements in the fit of a member (a source among all
# sources, a site of a source). A site with at least this number of visits after an announcement has a quality of its
# own.
_ANNOUNCEMENTS_OF_THE_WHOLE = 10.0
#: At most this many sites have their own quality of announcements or their own prior: the sites with most visits.
MOST_GROUPS = 512


def pooled_sources(visits: Visits, weights: FloatArray, intervals: FloatArray) -> None:
    """Fit each source, shrunk towards the mean of all sources."""
    sources = visits["source"].astype(np.intp)
    quality = _bank(sources, weights.size, visits)
    seen = np.unique(sources)
    first = FIRST_PRECISION, 1 - FIRST_PRECISION
    heard = np.bincount(sources, visits["n_signals"] > 0, weights.size)[seen]
    alone = np.array([quality.fit_group(source, first, interval=False).precision for source in seen.tolist()])
    # One announcement with the precision 1/2 is added, so that the mean is never 0 or 1.
    precision = (FIRST_PRECISION + float(alone @ heard)) / (1.0 + float(heard.sum()))
    weights[-1], intervals[-1] = -np.log1p(-precision), quality.fit_group(seen, first).precision_interval
    true = precision * _ANNOUNCEMENTS_OF_THE_WHOLE
    for source in seen.tolist():
        fit = quality.fit_group(source, (true, _ANNOUNCEMENTS_OF_THE_WHOLE - true))
        weights[source], intervals[source] = fit.signal_weight, fit.precision_interval


def pooled_sites(visits: Visits, weights: FloatArray) -> list[tuple[int, int, float, int]]:
    """Fit each site with enough evidence, shrunk towards the mean of such sites of its source.

    Fitting all visits of a source together would fail: if one site is announced rightly and another never changes,
    announcements and changes look independent.
    """
    columns = {
        key: tuple(visits[name][rows] for name in ("elapsed", "n_signals", "changed"))
        for key, rows in _sites_with_evidence(visits)
    }
    n_heard = {key: int(np.count_nonzero(n_signals)) for key, (_, n_signals, _) in columns.items()}
    sums: dict[int, tuple[float, float]] = {}
    alone = FIRST_PRECISION, 1 - FIRST_PRECISION
    for (source, host), (elapsed, n_signals, changed) in columns.items():
        true, heard = sums.get(
            source, (float(-np.expm1(-weights[source])) * _ANNOUNCEMENTS_OF_THE_WHOLE, _ANNOUNCEMENTS_OF_THE_WHOLE)
        )
        fit = SignalQuality.fit(elapsed, n_signals, changed, prior=alone, interval=False)
        n = n_heard[source, host]
        sums[source] = true + fit.precision * n, heard + n
    found = []
    for key, (elapsed, n_signals, changed) in columns.items():
        true = sums[key[0]][0] / sums[key[0]][1] * _ANNOUNCEMENTS_OF_THE_WHOLE
        prior = true, _ANNOUNCEMENTS_OF_THE_WHOLE - true
        fit = SignalQuality.fit(elapsed, n_signals, changed, prior=prior, interval=False)
        found.append((*key, fit.signal_weight, n_heard[key]))
    return found


def _sites_with_evidence(visits: Visits) -> list[tuple[tuple[int, int], IndexArray]]:
    """Return source and host of sites with enough visits after an announcement, and the rows of their visits."""
    where = np.column_stack([visits["source"], visits["host"]]).astype(np.int64)
    sites, site = np.unique(where, axis=0, return_inverse=True)
    site = site.reshape(-1)
    heard = np.bincount(site, visits["n_signals"] > 0, len(sites))
    several = np.bincount(sites[:, 0], minlength=1)[sites[:, 0]] > 1
    chosen = np.flatnonzero((heard >= _ANNOUNCEMENTS_OF_THE_WHOLE) & several)
    chosen = chosen[np.argsort(-heard[chosen], kind="stable")][:MOST_GROUPS]
    order = np.argsort(site, kind="stable")
    starts = np.searchsorted(site[order], np.arange(len(sites) + 1))
    return [(tuple(sites[row].tolist()), order[starts[row] : starts[row + 1]]) for row in chosen.tolist()]


def _bank(groups: IndexArray, n_groups: int, visits: Visits) -> SignalQuality:
    quality = SignalQuality(n_groups)
    quality.update(groups, visits["elapsed"], visits["n_signals"], visits["changed"])
    return quality
