"""Explaining: what a planner knows of a page, and why the page is crawled when it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.probabilities import rate_quantile
from crawlsched.pages import STATE_NAMES
from crawlsched.planner.planner import Planner
from crawlsched.planner.plans.plan import POINTS_PER_DECADE
from crawlsched.planner.reports.outlook import MOST_COUNTED

__all__ = ["COLUMNS", "estimates", "explain", "readable"]

#: The columns of `readable`.
COLUMNS = ("change_rate", "change_rate_low", "change_rate_high", "expected_freshness", "precision", "recall")


def readable(planner: Planner, pages: npt.ArrayLike, now: float) -> dict[str, FloatArray]:
    """Return what is known of pages; nan: not known.

    Returns
    -------
    dict of ndarray, shape (n,)
        ``change_rate``: changes per second, announced or not. ``change_rate_low`` and ``change_rate_high``: the bounds
        of a 90 % interval, nan before the first crawl. ``expected_freshness``: the probability that the copy equals the
        page now. ``precision`` and ``recall`` of the page's announcements; nan: no announcements. If the planner has an
        estimator, rates are its estimates; the interval is always that of the posterior.

    Examples
    --------
    >>> planner = Planner(bandwidth=1.0)
    >>> pages = planner.add(host=0, now=0.0, n=2)
    >>> _ = planner.crawled(0, 1.0, changed=None)
    >>> _ = planner.crawled(0, 3601.0, changed=True)
    >>> found = readable(planner, pages, 3601.0)
    >>> found["expected_freshness"].tolist(), bool(found["change_rate"][0] > 1 / 7200)
    ([1.0, nan], True)
    """
    rows = np.asarray(pages, np.intp)
    known = np.flatnonzero(planner.pages.crawled_at[rows] > -np.inf)
    found = {}
    announced = (planner.pages.n_signals_total[rows[known]] > 0) | (planner.pages.further[rows[known]] > 0)
    for name, column in estimates(planner, rows[known], now).items():
        if name in COLUMNS:
            found[name] = np.full(rows.size, np.nan)
            found[name][known] = np.where(announced, column, np.nan) if name in ("precision", "recall") else column
    return found


def estimates(planner: Planner, rows: IndexArray, now: float) -> dict[str, FloatArray]:
    """Return what is known of pages: `COLUMNS`, and ``unsignalled``, ``signal_rate``, ``signal_weight``."""
    weights, rates = planner.values.weights(rows), planner.posterior.rates
    signal_rate, signal_weight = planner.announcements.signals(rows)
    announced = signal_rate * -np.expm1(-signal_weight)
    unsignalled, fresh = (weights * rates).sum(axis=1), planner.values.fresh(rows, now)
    if planner.learned is not None:
        unsignalled = np.maximum(planner.change_rates(rows) - announced, 0.0)
        elapsed = np.maximum(now - planner.pages.crawled_at[rows], 0.0)
        stale = unsignalled * elapsed + planner.announcements.evidence(rows)
        fresh = np.where(elapsed < np.inf, np.exp(-stale), 0.0)
    # The change rate lies between these quantiles with 90 % probability.
    low, high = (rate_quantile(weights, rates, q) + announced for q in (0.05, 0.95))
    change_rate = unsignalled + announced
    precision, recall = -np.expm1(-signal_weight), announced / change_rate
    columns = change_rate, low, high, fresh, precision, recall, unsignalled, signal_rate, signal_weight
    return dict(zip((*COLUMNS, "unsignalled", "signal_rate", "signal_weight"), columns, strict=True))


_FOR_EVER = timedelta(days=300 * 365.25).total_seconds()
# A page may be picked somewhat below or above the threshold, since the other pages differ from slot to slot. These
# multiples of the threshold count as equally likely.
_SHARES = np.linspace(0.65, 1.2, 12)
# Waits are equally good if their probabilities differ by less than this number.
_AS_LIKELY = 0.01


def explain(planner: Planner, page: int, now: float) -> dict[str, Any]:
    """Return what decides when a page is crawled.

    Intervals are in seconds and rates per second. Times are POSIX seconds; inf: never. ``likely_time`` is a guess of
    the next visit. It is chosen so that the wait is most probably between 0.3 and 3 times the guess. It ignores limits,
    and assumes that announcements come as often as before. It is never later than ``wake_time``, and equals
    ``wake_time`` if that is as good as any other guess.
    """
    now, rows = planner.at(now), planner.rows(page)
    pages, frontier = planner.pages, planner.frontier
    known = {name: float(column[0]) for name, column in estimates(planner, rows, now).items()}
    crawled_at = pages.crawled_at.item(page)
    value = partial(_value_at, planner, page)
    wake_time = _wake_time(value, planner.threshold, now)
    return {
        "page": page,
        "state": STATE_NAMES[pages.state.item(page)],
        "importance": pages.importance.item(page),
        "change_rate": known["change_rate"],  # announced or not
        "change_rate_interval": (known["change_rate_low"], known["change_rate_high"]),  # 90 % probability
        "unsignalled_change_rate": known["unsignalled"],
        "signal_rate": known["signal_rate"],
        "signal_weight": known["signal_weight"],  # nats per announcement
        "precision": known["precision"],  # probability that an announcement is true
        "precision_of": _learned_from(planner, page),
        "recall": known["recall"],  # probability that a change is announced
        "elapsed": now - crawled_at,  # since the last crawl; inf if there was none
        "n_signals": sum(one.n_signals for one in planner.further.of(page)) or pages.n_signals.item(page),
        "expected_freshness": known["expected_freshness"],  # probability that the copy equals the page; 0: no copy
        "crawl_value": value(now),  # importance times seconds
        "threshold": planner.threshold,  # the crawl value at which pages are picked at present
        "wake_time": wake_time,  # when the crawl value reaches the threshold if nothing is announced
        "likely_time": _likely_time(planner, page, value, wake_time, known["signal_rate"], now),
        "next_allowed": max(pages.not_before.item(page), crawled_at + planner.intervals.shortest(page)),
        "deadline": frontier.deadline_of(page),  # from this time on, the page is picked first
        "binds": _what_binds(planner, page, now),
    }


def _learned_from(planner: Planner, page: int) -> str:
    """Return where the precision of the page's first source was learned: "site", or "source" for all sites."""
    groups = planner.in_force.parameters.signal_groups
    return "site" if groups.rows(planner.pages.source[[page]], planner.pages.host[[page]])[0] >= 0 else "source"


def _value_at(planner: Planner, page: int, now: float) -> float:
    return float(planner.crawl_values.value_at(np.array([page]), now).item())


def _wake_time(value: Callable[[float], float], threshold: float, now: float) -> float:
    """Return when a crawl value that never falls reaches a threshold; inf: not in three centuries."""
    if value(now) >= threshold:
        return now
    before, reached = 0.0, _FOR_EVER
    if value(now + reached) < threshold:
        return np.inf
    while reached - before > max(1e-6 * reached, 1e-3):
        middle = 0.5 * (before + reached)
        before, reached = (before, middle) if value(now + middle) >= threshold else (middle, reached)
    return now + reached


def _likely_time(
    planner: Planner, page: int, value: Callable[[float], float], wake_time: float, signal_rate: float, now: float
) -> float:
    """Return the ``likely_time`` that `explain` describes."""
    if wake_time <= now or value(now) == value(now + _FOR_EVER):
        return wake_time
    longest = min(wake_time - now, _FOR_EVER)
    # Waits shorter than a slot are left out, since no page is picked before the next slot.
    n_shorter = max(int(POINTS_PER_DECADE * np.log10(longest * planner.bandwidth)), 0)
    waits = longest * 10.0 ** (np.arange(-n_shorter, 1) / POINTS_PER_DECADE)
    gone = _gone_within(planner, page, value, np.concatenate([3.0 * waits, 0.3 * waits]), signal_rate, now)
    likely = gone[: waits.size] - gone[waits.size :]
    as_good = waits[likely >= likely.max() - _AS_LIKELY]
    return wake_time if as_good[-1] == longest else now + float(np.sqrt(as_good[0] * as_good[-1]))


def _gone_within(
    planner: Planner, page: int, value: Callable[[float], float], waits: FloatArray, signal_rate: float, now: float
) -> FloatArray:
    """Return the probability that a page has been crawled after each of some waits.

    After t seconds the page has been crawled if at least m(t) more announcements have come. m(t) falls with t. The
    number N(t) of announcements in t seconds is a Poisson variable, so the probability is P(N(t) >= m(t)). No page
    waits for more than `MOST_COUNTED` announcements.
    """
    more, of_wait = np.indices((MOST_COUNTED + 1, waits.size)).reshape(2, -1)
    crawled_at = planner.pages.crawled_at.item(page) - now - waits[of_wait]
    heard = planner.announcements.known(np.array([page]))[2] + more
    values = planner.crawl_values.supposing(np.full(heard.size, page), crawled_at, heard, 0.0)
    values = values.reshape(MOST_COUNTED + 1, -1)
    values[0] = [value(now + wait) for wait in waits.tolist()]
    needed = (values < planner.threshold * _SHARES[:, np.newaxis, np.newaxis]).sum(axis=1)
    expected = signal_rate * waits
    at_least, exactly = [np.ones(waits.size)], np.exp(-expected)
    for n in range(MOST_COUNTED):
        at_least.append(at_least[-1] - exactly)
        exactly *= expected / (n + 1)
    at_least.append(np.zeros(waits.size))
    gone: FloatArray = np.array(at_least)[needed, np.arange(waits.size)].mean(axis=0)
    return gone


def _what_binds(planner: Planner, page: int, now: float) -> str:
    pages, frontier = planner.pages, planner.frontier
    if planner.in_flight(page):
        return "in_flight"
    if frontier.is_forced(page):
        return "forced"
    if pages.not_before.item(page) > now:
        return "not_before"
    if pages.crawled_at.item(page) + planner.intervals.shortest(page) > now:
        return "min_interval"
    if frontier.is_resting(pages.host.item(page)):
        return "host"
    return "overdue" if frontier.deadline_of(page) <= now else "value"
