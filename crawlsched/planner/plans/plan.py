"""A plan: the knowledge from all pages together. A pure function makes it from a snapshot; it is adopted later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.crawl_value.reaching import Grid
from crawlsched.estimators import grid_id, learn_prior
from crawlsched.estimators.log_weights import relative_likelihoods
from crawlsched.estimators.observations import check_positive
from crawlsched.estimators.signal_pooling import FIRST_PRECISION, MOST_GROUPS, pooled_sites, pooled_sources
from crawlsched.planner.plans.parameters import LIKELIHOOD_POWER, Parameters, SignalGroups
from crawlsched.slot_clock import DAY

__all__ = ["DEMAND_SAMPLE", "FIRST_SIGNAL_RATE", "LEAST_GROUP", "POINTS_PER_DECADE", "Plan", "Snapshot", "plan"]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Copies of what a plan needs; the crawling thread makes them.

    Attributes
    ----------
    host_limits : ndarray, shape (n,)
        Crawls per second that the host of each page allows at most; inf: no limit.
    sources, signalled_hosts, n_signals_total, signalled_for : ndarray, shape (s,)
        For the pages that a source covers, or an even sample of them: the source, the page's host, the number of
        announcements by the source, and the seconds in which they came.
    """

    rates: FloatArray  # the grid of change rates; shape (K,)
    time: float  # POSIX seconds
    n_pages: int  # how many pages have been visited
    pages: IndexArray  # visited pages, all or an even sample, ascending; shape (n,)
    log_likelihood: npt.NDArray[np.uint8]  # compact rows of the pages; shape (n, K)
    hosts: npt.NDArray[np.int32]  # hosts of the pages; shape (n,)
    importance: FloatArray  # weights of the pages; shape (n,)
    host_limits: FloatArray
    sources: npt.NDArray[np.int32]
    signalled_hosts: npt.NDArray[np.int32]
    n_signals_total: FloatArray
    signalled_for: FloatArray
    n_held: int = 0  # number of pages not visited yet on hosts that have a limit


Visits = Mapping[str, npt.NDArray[Any]]

#: Announcements per second and page before the first plan: once a year. With too high a rate, announced pages would get
#: too few visits.
FIRST_SIGNAL_RATE = 1 / timedelta(days=365.25).total_seconds()
# Each source begins as if this number of announcements had come at a rate of once a day.
_ANNOUNCEMENTS_AT_FIRST = 0.01


def _learn_signals(
    snapshot: Snapshot,
    visits: Visits | None,
    previous: tuple[FloatArray, FloatArray] | None,
) -> tuple[FloatArray, FloatArray, FloatArray, SignalGroups]:
    """Fit the precision of each source to its visits, and count announcements.

    Returns
    -------
    weights, rates : ndarray, shape (S + 1,)
        By source, with a last row for sources that are not known yet: nats per announcement, and announcements per
        second and page.
    intervals : ndarray, shape (S + 1, 2)
        95 % intervals of the precision.
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
        (source, host, weight, _rate_of_site(snapshot, source, host, rates.item(source)), n_heard)
        for source, host, weight, n_heard in sites
    )


def _rate_of_site(snapshot: Snapshot, source: int, host: int, of_source: float) -> float:
    inside = (snapshot.sources == source) & (snapshot.signalled_hosts == host)
    # A further announcement is added, at the rate of the source on all sites.
    counted = float(snapshot.n_signals_total[inside].sum()) + 1.0
    return counted / (float(snapshot.signalled_for[inside].sum()) + 1.0 / of_source)


def _signal_rates(snapshot: Snapshot, n_sources: int) -> FloatArray:
    rates = np.full(n_sources + 1, FIRST_SIGNAL_RATE)
    # Part of an announcement is added, so that a new source has a rate above 0.
    counted = np.bincount(snapshot.sources, snapshot.n_signals_total, n_sources) + _ANNOUNCEMENTS_AT_FIRST
    time = np.bincount(snapshot.sources, snapshot.signalled_for, n_sources) + _ANNOUNCEMENTS_AT_FIRST * DAY
    rates[:n_sources] = counted / time
    if n_sources:
        rates[-1] = np.median(rates[:n_sources])
    return rates


#: A host has a group of its own if at least this number of its pages in the sample were visited.
LEAST_GROUP = 30
#: Number of pages from which the demand curve is estimated, and number of its points per factor of 10.
DEMAND_SAMPLE, POINTS_PER_DECADE = 4096, 10
# For matrix products of at most this number of operations, OpenBLAS uses a single thread. Further threads would spin
# after their work, on processors that the crawl needs.
_LARGEST_PRODUCT = 250_000


@dataclass(frozen=True, eq=False)
class Plan:
    """What all pages together teach.

    Attributes
    ----------
    signal_weights, signal_rates : ndarray, shape (S + 1,)
        By source: nats per announcement; announcements per second and page. The last entry is for sources not known
        yet.
    """

    time: float  # time of its snapshot, POSIX seconds
    rates_id: str  # identifies the grid of rates for `priors`
    bandwidth: float  # crawls per second for which the plan was made
    n_pages: int  # number of visited pages from which the plan was made
    priors: FloatArray  # probability of each rate: row 0 for all pages, the others for groups; shape (G, K)
    group_hosts: tuple[int, ...]  # the host of each row of `priors` after the first
    signal_weights: FloatArray
    signal_rates: FloatArray
    precision_intervals: FloatArray  # 95 % intervals of the sources' precision; shape (S + 1, 2)
    threshold: float  # crawl value at which the bandwidth would be used up
    demand: FloatArray  # rows (threshold, crawls per second wanted at it); shape (D, 2)
    # The quality of announcements on sites that have evidence of their own.
    signal_groups: SignalGroups = field(default_factory=SignalGroups)
    n_held: int = 0  # number of pages that were not visited yet because of their hosts' limits

    def parameters(self, rates: FloatArray) -> Parameters:
        """Return the part of the plan that crawl values need; ValueError: the plan is for another grid of rates."""
        if grid_id(rates) != self.rates_id:
            raise ValueError(
                f"plan must be for the grid of rates {grid_id(rates)}, but it is for {self.rates_id}; make a new plan."
            )
        group_of_host = np.zeros(max(self.group_hosts, default=-1) + 1, np.intp)
        group_of_host[list(self.group_hosts)] = np.arange(1, len(self.group_hosts) + 1)
        even_rate = self.bandwidth / max(self.n_pages, 1)
        weights, signal_rates = self.signal_weights, self.signal_rates
        learned = self.priors, group_of_host, weights, signal_rates
        return Parameters(*learned, rates, even_rate, self.signal_groups, learning_rate=LIKELIHOOD_POWER)

    def for_sources(self, numbers: Sequence[int]) -> Self:
        """Return the plan with other numbers for the sources.

        Parameters
        ----------
        numbers : sequence of int
            For each new number, the number of the source in this plan; -1: the plan does not know the source.
        """
        unknown = self.signal_weights.size - 1
        known = np.array([*numbers, -1], np.intp)
        known[(known < 0) | (known > unknown)] = unknown
        at = {old: new for new, old in enumerate(numbers) if old >= 0}
        return replace(
            self,
            signal_weights=self.signal_weights[known],
            signal_rates=self.signal_rates[known],
            precision_intervals=self.precision_intervals[known],
            signal_groups=self.signal_groups.for_sources(at),
        )

    def of_hosts(self, are_meant: Callable[[int], bool]) -> Self:
        """Return the plan with only the groups of these hosts, and with the knowledge from all hosts together."""
        rows = [row for row, host in enumerate(self.group_hosts) if are_meant(host)]
        return replace(
            self,
            priors=self.priors[[0, *(row + 1 for row in rows)]],
            group_hosts=tuple(self.group_hosts[row] for row in rows),
            signal_groups=self.signal_groups.of_hosts(are_meant),
        )

    def to_dict(self, host_names: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the plan as plain data for JSON. With host names, a process with other host numbers can read it."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in data.items()}
        hosts: list[Any] = list(self.group_hosts)
        plain["signal_groups"] = self.signal_groups.to_list(host_names)
        plain["group_hosts"] = hosts if host_names is None else [host_names[host] for host in hosts]
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], host_number: Callable[[str], int] | None = None) -> Self:
        """Return the plan that `to_dict` wrote.

        Without `host_number`, hosts that were written by name lose their groups, and row 0 of the priors is used for
        them. ValueError: an entry is missing.
        """
        missing = [field.name for field in fields(cls) if field.name not in data]
        if missing:
            raise ValueError(f"data must hold what Plan.to_dict() returned, but {', '.join(missing)} is missing.")
        given = {field.name: data[field.name] for field in fields(cls)}
        arrays = "priors", "signal_weights", "signal_rates", "precision_intervals", "demand"
        for name in arrays:
            given[name] = np.asarray(given[name], dtype=np.float64)
        given["demand"] = given["demand"].reshape(-1, 2)
        given["signal_groups"] = SignalGroups.from_list(given["signal_groups"], host_number)
        priors, hosts = given["priors"], given["group_hosts"]
        if any(isinstance(host, str) for host in hosts):
            known = [] if host_number is None else list(range(len(hosts)))
            given["priors"] = priors[[0, *(row + 1 for row in known)]]
            hosts = [host_number(hosts[row]) for row in known] if host_number is not None else []
        given["group_hosts"] = tuple(hosts)
        return cls(**given)


def plan(
    snapshot: Snapshot,
    bandwidth: float,
    signal_observations: Mapping[str, npt.NDArray[Any]] | None = None,
    previous: Plan | None = None,
) -> Plan:
    """Learn from all pages: priors of change rates, the quality of signals, the threshold and the demand curve.

    If nothing new is known of the precision of signals, the precision in the plan `previous` is used.

    Parameters
    ----------
    signal_observations : mapping, optional
        Visits of pages that a source covers: arrays ``elapsed``, ``n_signals``, ``source`` and ``changed``. An array
        ``host`` (-1: not known), from `Planner.hosts`, distinguishes sites.

    Notes
    -----
    The function changes nothing and reads no clock. It works in numpy on blocks of rows, so that it can run in a thread
    during the crawl. `learn_prior` learns a prior for all pages. Each host with at least 30 visited pages gets its own
    prior, shrunk towards the prior for all. A weight of signals is fitted for each source, shrunk towards all sources
    together. Then a weight is fitted for each site of a source, shrunk towards the source. The demand curve leaves
    signals out: announced pages count as if nothing had been announced. The pages of one host together get no more
    crawls than the host allows.
    """
    bandwidth = check_positive(bandwidth, "bandwidth", "crawls per second")
    priors, group_hosts = _learn_priors(snapshot)
    known = None if previous is None else (previous.signal_weights, previous.precision_intervals)
    weights, rates, intervals, groups = _learn_signals(snapshot, signal_observations, known)
    made = Plan(
        time=snapshot.time,
        rates_id=grid_id(snapshot.rates),
        bandwidth=bandwidth,
        n_pages=snapshot.n_pages,
        priors=priors,
        group_hosts=group_hosts,
        signal_weights=weights,
        signal_rates=rates,
        precision_intervals=intervals,
        threshold=0.0,
        demand=np.empty((0, 2)),
        signal_groups=groups,
        n_held=snapshot.n_held,
    )
    threshold, demand = _demand(snapshot, made.parameters(snapshot.rates), bandwidth)
    return replace(made, threshold=threshold, demand=demand)


def _learn_priors(snapshot: Snapshot) -> tuple[FloatArray, tuple[int, ...]]:
    if not len(snapshot.log_likelihood):
        return np.full((1, snapshot.rates.size), 1 / snapshot.rates.size), ()
    whole = learn_prior(snapshot.log_likelihood, learning_rate=LIKELIHOOD_POWER)
    visited = np.bincount(snapshot.hosts)
    largest = np.argsort(-visited, kind="stable")[:MOST_GROUPS]
    grouped = np.sort(largest[visited[largest] >= LEAST_GROUP])
    # If there is a single host, the prior for all pages is the host's prior, so the host needs no group.
    if not grouped.size or np.count_nonzero(visited) == 1:
        return whole[np.newaxis], ()
    group_of_host = np.full(visited.size, -1)
    group_of_host[grouped] = np.arange(grouped.size)
    group = group_of_host[snapshot.hosts]
    inside = np.flatnonzero(group >= 0)
    of_groups = snapshot.log_likelihood[inside], group[inside], whole
    learned = learn_prior(*of_groups, n_groups=grouped.size, learning_rate=LIKELIHOOD_POWER)
    return np.vstack([whole, learned]), tuple(grouped.tolist())


def _demand(snapshot: Snapshot, parameters: Parameters, bandwidth: float) -> tuple[float, FloatArray]:
    """Return the threshold and the demand curve, if each page is crawled when its value reaches the threshold."""
    chosen = np.arange(0, snapshot.pages.size, max(1, snapshot.pages.size // DEMAND_SAMPLE))
    chosen = chosen[snapshot.importance[chosen] > 0]
    if not chosen.size:
        return 0.0, np.empty((0, 2))
    grid = Grid(snapshot.rates)
    rows = parameters.value_priors[parameters.groups(snapshot.hosts[chosen])]
    likelihood = relative_likelihoods(snapshot.log_likelihood[chosen], LIKELIHOOD_POWER) * rows
    likelihood /= likelihood.sum(axis=1, keepdims=True)
    importance, gain = snapshot.importance[chosen], grid.gain
    highest = float((np.vecdot(likelihood, 1 / snapshot.rates) * importance).max())
    lowest = float((importance * np.vecdot(likelihood, gain[grid.elapsed.searchsorted(1.0)])).min())
    decades = max(1, int(np.ceil(np.log10(highest / max(lowest, highest * 1e-12)))))
    levels = np.geomspace(highest, highest * 10.0**-decades, decades * POINTS_PER_DECADE)
    # A page is crawled as often as it reaches the threshold. A page that never reaches it is not crawled.
    rate_of_cell = np.append(1 / grid.elapsed, 0.0)
    # Row 0 is the sum for hosts without a limit. Each of the other rows is the sum for one host, bounded by the host's
    # limit.
    limits = snapshot.host_limits[chosen]
    is_limited = np.isfinite(limits)
    _, first, number = np.unique(snapshot.hosts[chosen[is_limited]], return_index=True, return_inverse=True)
    row_of = np.zeros(chosen.size, np.intp)
    row_of[is_limited] = number + 1
    most = np.append(np.inf, limits[is_limited][first])
    wanted = np.zeros((most.size, levels.size))
    block = max(1, _LARGEST_PRODUCT // gain.size)
    for start in range(0, chosen.size, block):
        values = likelihood[start : start + block] @ gain.T
        thresholds = levels / importance[start : start + block, np.newaxis]
        cells = [row.searchsorted(aims) for row, aims in zip(values, thresholds, strict=True)]
        np.add.at(wanted, row_of[start : start + block], rate_of_cell.take(cells))
    wanted = np.minimum(wanted * (snapshot.n_pages / chosen.size), most[:, np.newaxis]).sum(axis=0)
    threshold = float(levels[min(int(wanted.searchsorted(bandwidth)), levels.size - 1)])
    return threshold, np.column_stack([levels, wanted])
