"""Learning what announcements are worth: of all sources, of each, of its sites, and of the parts of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators import SignalQuality
from crawlsched.planner.parameters.signal_groups import WHOLE_SITE, SignalGroup, SignalGroups
from crawlsched.planner.plans.snapshot import Snapshot

__all__ = ["FIRST_PRECISION", "FIRST_SIGNAL_RATE", "SignalsLearned", "learn_signals"]

Visits = Mapping[str, npt.NDArray[Any]]

#: Precision of announcements before anything is known: as likely true as not.
FIRST_PRECISION = 0.5
#: Announcements a second and page before the first plan: one in a year. A page is worth a visit for as long as
#: its next change is away, so that a rate which is too high keeps visits from the pages that were announced.
FIRST_SIGNAL_RATE = 1 / 31_557_600
# How many announcements that what is known of the larger group counts for, when the precision of one within it is
# fitted: a source among all, a site of a source, a part of a site.
_ANNOUNCEMENTS_OF_THE_WHOLE = 10.0
# What is known of a source's rate of announcements before the first, in seconds; and of a group's, which is that of its
# source.
_ANNOUNCEMENTS_AT_FIRST = 0.01
_TIME_AT_FIRST = 864.0
_ANNOUNCEMENTS_OF_THE_SOURCE = 1.0
# A site or a part has a quality of its own from so many visits after an announcement on, and so many have one at most:
# those with most of these visits.
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
    Partial pooling, from the whole to the parts: the precision of the larger group counts as ten announcements of the
    smaller one. It is the mean of what sources, the sites of a source, or the parts of a site show by themselves,
    weighted by what was heard of them. Of sites, and of parts of a site, only those with ten
    visits after an announcement are fitted, and only where there is more than one: otherwise the larger is the same.
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
    placed = visits["host"] >= 0
    visits = {name: column[placed] for name, column in visits.items()}
    where = np.column_stack([visits[name] for name in ("source", "host", "part")]).astype(np.int64)
    found: dict[tuple[int, int, int], SignalGroup] = {}
    for n_shared in (1, 2):  # sites of a source, parts of a site
        keys = where.copy()
        keys[:, n_shared + 1 :] = WHOLE_SITE
        those = _those_with_evidence(keys, visits["n_signals"] > 0, n_shared)
        columns = {
            key: tuple(visits[name][rows] for name in ("elapsed", "n_signals", "changed")) for key, rows in those
        }
        n_heard = {key: int(np.count_nonzero(n_signals)) for key, (_, n_signals, _) in columns.items()}
        precision = _precision_of_larger(columns, n_heard, n_shared, found, weights)
        for key, (elapsed, n_signals, changed) in columns.items():
            true = precision[key[:n_shared]] * _ANNOUNCEMENTS_OF_THE_WHOLE
            prior = true, _ANNOUNCEMENTS_OF_THE_WHOLE - true
            fit = SignalQuality.fit(elapsed, n_signals, changed, prior=prior, interval=False)
            rate = _rate_of_group(snapshot, key, float(rates[key[0]]))
            found[key] = SignalGroup(*key, fit.signal_weight, rate, n_heard[key])
    return SignalGroups(found.values())


def _precision_of_larger(
    columns: Mapping[tuple[int, int, int], tuple[npt.NDArray[Any], ...]],
    n_heard: Mapping[tuple[int, int, int], int],
    n_shared: int,
    found: Mapping[tuple[int, int, int], SignalGroup],
    weights: FloatArray,
) -> dict[tuple[int, ...], float]:
    """Return the precision of larger groups: the mean of their members', each fitted by itself, by what was heard.

    All visits fitted together would not do: where one part changes often and is announced rightly, and another never
    changes and is announced all the time, announcements and changes seem to have nothing to do with each other.
    """
    sums: dict[tuple[int, ...], tuple[float, float]] = {}
    for key, (elapsed, n_signals, changed) in columns.items():
        if key[:n_shared] not in sums:
            larger = found.get((*key[:2], WHOLE_SITE)) if n_shared == 2 else None
            weight = float(weights[key[0]]) if larger is None else larger.signal_weight
            true = float(-np.expm1(-weight)) * _ANNOUNCEMENTS_OF_THE_WHOLE
            sums[key[:n_shared]] = true, _ANNOUNCEMENTS_OF_THE_WHOLE
        alone = FIRST_PRECISION, 1 - FIRST_PRECISION
        fit = SignalQuality.fit(elapsed, n_signals, changed, prior=alone, interval=False)
        true, heard = sums[key[:n_shared]]
        sums[key[:n_shared]] = true + fit.precision * n_heard[key], heard + n_heard[key]
    return {larger: true / heard for larger, (true, heard) in sums.items()}


def _those_with_evidence(
    keys: npt.NDArray[np.int64], loud: npt.NDArray[np.bool_], n_shared: int
) -> list[tuple[tuple[int, int, int], IndexArray]]:
    """Return groups with enough visits after an announcement, and the rows of their visits.

    Groups that share their first `n_shared` numbers make up a larger one; one that is all of it is left out.
    """
    groups, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    heard = np.bincount(group, loud, len(groups))
    _, larger, members = np.unique(groups[:, :n_shared], axis=0, return_inverse=True, return_counts=True)
    chosen = np.flatnonzero((heard >= _LEAST_HEARD) & (members[larger.reshape(-1)] > 1))
    chosen = chosen[np.argsort(-heard[chosen], kind="stable")][:_MOST_GROUPS]
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(groups) + 1))
    return [(tuple(groups[row].tolist()), order[starts[row] : starts[row + 1]]) for row in chosen.tolist()]


def _rate_of_group(snapshot: Snapshot, key: tuple[int, int, int], of_source: float) -> float:
    source, host, part = key
    inside = (snapshot.sources == source) & (snapshot.signalled_hosts == host)
    if part != WHOLE_SITE:
        inside &= snapshot.signalled_parts == part
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
