"""Learning what announcements are worth: of all sources, of each, and of its sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.estimators.posterior import DAY
from crawlsched.estimators.signal_pooling import FIRST_PRECISION, pooled_sites, pooled_sources
from crawlsched.planner.plans.signal_groups import SignalGroup, SignalGroups
from crawlsched.planner.plans.snapshot import Snapshot

__all__ = ["FIRST_SIGNAL_RATE", "learn_signals"]

Visits = Mapping[str, npt.NDArray[Any]]

#: Announcements a second and page before the first plan: one in a year. A page is worth a visit for as long as
#: its next change is away, so that a rate which is too high keeps visits from the pages that were announced.
FIRST_SIGNAL_RATE = 1 / 31_557_600
# What is known of a source's rate of announcements before the first, one in a day, counts for so many; and of a site's,
# which is that of its source.
_ANNOUNCEMENTS_AT_FIRST = 0.01
_ANNOUNCEMENTS_OF_THE_SOURCE = 1.0


def learn_signals(
    snapshot: Snapshot,
    visits: Visits | None,
    previous: tuple[FloatArray, FloatArray] | None,
) -> tuple[FloatArray, FloatArray, FloatArray, SignalGroups]:
    """Fit precision by what visits found, and count announcements.

    Returns
    -------
    weights, rates : ndarray, shape (S + 1,)
        By source, the last being for those not yet known: nats per announcement; announcements per second and page.
    intervals : ndarray, shape (S + 1, 2)
        Of precision.
    groups : SignalGroups
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
        pooled_sources(heard, weights, intervals)
        if "host" in heard:
            groups = _groups(snapshot, heard, weights, rates)
    return weights, rates, intervals, groups


def _usable(visits: Visits) -> dict[str, npt.NDArray[Any]]:
    usable = (np.asarray(visits["source"]) >= 0) & (np.asarray(visits["elapsed"]) > 0)
    return {name: np.asarray(column)[usable] for name, column in visits.items()}


def _groups(snapshot: Snapshot, visits: Visits, weights: FloatArray, rates: FloatArray) -> SignalGroups:
    placed = visits["host"] >= 0
    sites = pooled_sites({name: column[placed] for name, column in visits.items()}, weights)
    return SignalGroups(
        SignalGroup(source, host, weight, _rate_of_site(snapshot, source, host, rates.item(source)), n_heard)
        for source, host, weight, n_heard in sites
    )


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
    time = np.bincount(snapshot.sources, snapshot.signalled_for, n_sources) + _ANNOUNCEMENTS_AT_FIRST * DAY
    rates[:n_sources] = counted / time
    if n_sources:
        rates[-1] = np.median(rates[:n_sources])
    return rates
