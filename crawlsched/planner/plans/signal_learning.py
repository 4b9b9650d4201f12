"""Learning what announcements are worth: of all sources, of each, and of its sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators import SignalQuality
from crawlsched.planner.parameters.signal_groups import SignalGroup, SignalGroups
from crawlsched.planner.plans.snapshot import Snapshot

__all__ = ["FIRST_PRECISION", "FIRST_SIGNAL_RATE", "SignalsLearned", "learn_signals"]

Visits = Mapping[str, npt.NDArray[Any]]

#: Precision of announcements before anything is known: as likely true as not.
FIRST_PRECISION = 0.5
#: Announcements a second and page before the first plan: one in a year. A page is worth a visit for as long as
#: its next change is away, so that a rate which is too high keeps visits from the pages that were announced.
FIRST_SIGNAL_RATE = 1 / 31_557_600
# How many announcements that what is known of the larger group counts for, when the precision of one within it is
# fitted: a source among all, a site of a source.
_ANNOUNCEMENTS_OF_THE_WHOLE = 10.0
# What is known of a source's rate of announcements before the first, in seconds; and of a group's, which is that of its
# source.
_ANNOUNCEMENTS_AT_FIRST = 0.01
_TIME_AT_FIRST = 864.0
_ANNOUNCEMENTS_OF_THE_SOURCE = 1.0
# A site has a quality of its own from so many visits after an announcement on, and so many have one at most: those with
# most of these visits.
_LEAST_HEARD = 10
_MOST_GROUPS = 512


class SignalsLearned(NamedTuple):
    """What `learn_signals` found, by source, the last row being for sources not yet known; and by group.

    Attributes
    ----------
    weights, rates : ndarray, shape (S + 1,)
        Nats per announcement; announcements per second and page.
    precision_intervals : ndarray, shape (S + 1, 2)
    groups : SignalGroups
    """

    weights: FloatArray
    rates: FloatArray
    precision_intervals: FloatArray
    groups: SignalGroups


def learn_signals(
    snapshot: Snapshot,
    visits: Visits | None,
    previous: tuple[FloatArray, FloatArray] | None,
) -> SignalsLearned:
    """Fit precision by what visits found, and count announcements.

    Parameters
    ----------
    snapshot, visits
        As for `plan`.
    previous : tuple of ndarray, optional
        The `weights` and `precision_intervals` of the plan before.

    Notes
    -----
    Partial pooling: the precision of all sources counts as ten announcements of each, that of a source as ten of each
    of its sites. It is the mean of what its members show by themselves, weighted by what was heard of them. Only sites
    with ten visits after an announcement are fitted, and only where a source has several.
    """
    heard = None if visits is None or not len(visits["source"]) else _usable(visits)
    n_sources = int(snapshot.sources.max(initial=-1)) + 1
    if heard is not None:
        n_sources = max(n_sources, int(heard["source"].max(initial=-1)) + 1)
    if previous is not None:
        n_sources = max(n_sources, previous[0].size - 1)
    weights = np.full(n_sources + 1, -np.log1p(-FIRST_PRECISION))
    intervals = np.tile([0.0, 1.0], (n_sources + 1, 1))
    if previous is not None:
        before, of_before = previous
        known = before.size - 1
        weights[:known], intervals[:known] = before[:-1], of_before[:-1]
        weights[known:], intervals[known:] = before[-1], of_before[-1]
    rates = _signal_rates(snapshot, n_sources)
    groups = SignalGroups()
    if heard is not None and heard["source"].size:
        _fit_sources(heard, weights, intervals)
        if "host" in heard:
            groups = _fit_groups(snapshot, heard, weights, rates)
    return SignalsLearned(weights, rates, intervals, groups)


def _usable(visits: Visits) -> dict[str, npt.NDArray[Any]]:
    usable = (np.asarray(visits["source"]) >= 0) & (np.asarray(visits["elapsed"]) > 0)
    return {name: np.asarray(column)[usable] for name, column in visits.items()}


def _bank(groups: IndexArray, n_groups: int, visits: Visits) -> SignalQuality:
    quality = SignalQuality(n_groups)
    quality.update(groups, visits["elapsed"], visits["n_signals"], visits["changed"])
    return quality


def _fit_sources(visits: Visits, weights: FloatArray, intervals: FloatArray) -> None:
    """Fit each source, shrunk towards all together."""
    sources = visits["source"].astype(np.intp)
    quality = _bank(sources, weights.size, visits)
    seen = np.unique(sources)
    first = FIRST_PRECISION, 1 - FIRST_PRECISION
    heard = np.bincount(sources, visits["n_signals"] > 0, weights.size)[seen]
    alone = np.array([quality.fit_group(source, first, interval=False).precision for source in seen.tolist()])
    # One announcement, as likely true as not, keeps the whole from being sure of anything before it has seen some.
    precision = (FIRST_PRECISION + float(alone @ heard)) / (1.0 + float(heard.sum()))
    weights[-1], intervals[-1] = -np.log1p(-precision), quality.fit_group(seen, first).precision_interval
    true = precision * _ANNOUNCEMENTS_OF_THE_WHOLE
    for source in seen.tolist():
        fit = quality.fit_group(source, (true, _ANNOUNCEMENTS_OF_THE_WHOLE - true))
        weights[source], intervals[source] = fit.signal_weight, fit.precision_interval


def _fit_groups(snapshot: Snapshot, visits: Visits, weights: FloatArray, rates: FloatArray) -> SignalGroups:
    """Fit each site with evidence of a source that has several, shrunk towards the mean of these sites.

    All visits of a source fitted together would not do: where one site changes often and is announced rightly, and
    another never changes and is announced all the time, announcements and changes seem to have nothing to do with each
    other.
    """
    placed = visits["host"] >= 0
    visits = {name: column[placed] for name, column in visits.items()}
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
        rate = _rate_of_site(snapshot, *key, float(rates[key[0]]))
        found.append(SignalGroup(*key, fit.signal_weight, rate, n_heard[key]))
    return SignalGroups(found)


def _sites_with_evidence(visits: Visits) -> list[tuple[tuple[int, int], IndexArray]]:
    """Return source and host of sites with enough visits after an announcement, and the rows of their visits."""
    where = np.column_stack([visits["source"], visits["host"]]).astype(np.int64)
    sites, site = np.unique(where, axis=0, return_inverse=True)
    site = site.reshape(-1)
    heard = np.bincount(site, visits["n_signals"] > 0, len(sites))
    several = np.bincount(sites[:, 0], minlength=1)[sites[:, 0]] > 1
    chosen = np.flatnonzero((heard >= _LEAST_HEARD) & several)
    chosen = chosen[np.argsort(-heard[chosen], kind="stable")][:_MOST_GROUPS]
    order = np.argsort(site, kind="stable")
    starts = np.searchsorted(site[order], np.arange(len(sites) + 1))
    return [(tuple(sites[row].tolist()), order[starts[row] : starts[row + 1]]) for row in chosen.tolist()]


def _rate_of_site(snapshot: Snapshot, source: int, host: int, of_source: float) -> float:
    inside = (snapshot.sources == source) & (snapshot.signalled_hosts == host)
    counted = float(snapshot.n_signals_total[inside].sum()) + _ANNOUNCEMENTS_OF_THE_SOURCE
    return counted / (float(snapshot.signalled_for[inside].sum()) + _ANNOUNCEMENTS_OF_THE_SOURCE / of_source)


def _signal_rates(snapshot: Snapshot, n_sources: int) -> FloatArray:
    rates = np.full(n_sources + 1, FIRST_SIGNAL_RATE)
    # A hundredth of an announcement in some minutes keeps a source which has never announced anything from a rate of 0,
    # and is nothing beside the first real announcements, in a collection that is a minute old as in one that is years
    # old.
    counted = np.bincount(snapshot.sources, snapshot.n_signals_total, n_sources) + _ANNOUNCEMENTS_AT_FIRST
    time = np.bincount(snapshot.sources, snapshot.signalled_for, n_sources) + _TIME_AT_FIRST
    rates[:n_sources] = counted / time
    if n_sources:
        rates[-1] = np.median(rates[:n_sources])
    return rates
