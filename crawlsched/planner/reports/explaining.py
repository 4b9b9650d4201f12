"""How a planner explains a page."""

from __future__ import annotations

import numpy as np

from crawlsched.frontier import PageValue
from crawlsched.pages import STATE_NAMES
from crawlsched.planner.parameters.signal_groups import WHOLE_SITE
from crawlsched.planner.planner import Planner
from crawlsched.planner.reports.explanation import Explanation
from crawlsched.planner.reports.readable import interval

__all__ = ["explain"]

# After so many announcements no page waits for another one.
_MOST_ANNOUNCED = 24


def explain(planner: Planner, page: int, now: float) -> Explanation:
    """Return why a page is crawled when it is."""
    now, rows = planner.at(now), planner.rows(page)
    pages, frontier = planner.pages, planner.frontier
    weights = planner.values.weights(rows)[0]
    signal_rate, signal_weight = (float(column[0]) for column in planner.announcements.signals(rows))
    unsignalled = float(weights @ planner.posterior.rates)
    announced = float(-signal_rate * np.expm1(-signal_weight))
    if planner.learned is not None:
        unsignalled = max(float(planner.change_rates(rows)[0]) - announced, 0.0)
    crawled_at = pages.crawled_at.item(page)
    low, high = (float(bound[0]) + announced for bound in interval(weights[np.newaxis], planner.posterior.rates))
    value = frontier.values.one(page)
    crawl_value = value.at(now)
    wake_time = _wake_time(value, planner.threshold, now)
    return Explanation(
        page=page,
        state=STATE_NAMES[pages.state.item(page)],
        importance=pages.importance.item(page),
        change_rate=unsignalled + announced,
        change_rate_interval=(low, high),
        unsignalled_change_rate=unsignalled,
        signal_rate=signal_rate,
        signal_weight=signal_weight,
        precision=float(-np.expm1(-signal_weight)),
        precision_of=_learned_from(planner, page),
        recall=announced / (unsignalled + announced),
        elapsed=now - crawled_at,
        n_signals=sum(one.n_signals for one in planner.further.of(page)) or pages.n_signals.item(page),
        co_change_evidence=planner.values.evidence_around_one(page),
        expected_freshness=float(planner.values.fresh(rows, now)[0]),
        objective=planner.objective,
        crawl_value=crawl_value,
        threshold=planner.threshold,
        wake_time=wake_time,
        likely_time=_likely_time(planner, page, wake_time, signal_rate, now),
        next_allowed=max(pages.not_before.item(page), crawled_at + planner.intervals.shortest_one(page)),
        deadline=frontier.deadline_of(page),
        binds=_what_binds(planner, page, now),
    )


def _learned_from(planner: Planner, page: int) -> str:
    pages, groups = planner.pages, planner.in_force.of(page).signal_groups
    group = groups.of(pages.source.item(page), pages.host.item(page), pages.part.item(page))
    if group is None:
        return "source"
    return "site" if group.part == WHOLE_SITE else "part"


def _wake_time(value: PageValue, threshold: float, now: float) -> float:
    """Return when a crawl value reaches a threshold; crossing times are lower bounds, each closer than the last."""
    time = now
    if value.at(now) >= threshold:
        return now
    for _ in range(60):
        later = value.crossing(threshold, time)
        if later == np.inf or later - time <= 1e-6 * max(later - now, 1e-3):
            return float(later)
        if value.at(later) >= threshold:
            return float(later)
        time = later
    return float(time)


def _likely_time(planner: Planner, page: int, wake_time: float, signal_rate: float, now: float) -> float:
    """Return when a crawl value is likelier than not to have reached the threshold, announcements reckoned with.

    The time until the k-th announcement is a Gamma variable, whose median is (k - 0.31)/γ within 1.5 %. The page waits
    for the crawl value that k of them give it, too; the earliest of these times over all k counts.
    """
    likely = wake_time
    if signal_rate <= 0.0:
        return likely
    rows, crawled_at = planner.rows(page), planner.pages.crawled_at[[page]]
    heard = planner.announcements.heard_one(page)
    for k in range(1, _MOST_ANNOUNCED + 1):
        announced = now + (k - 0.31) / signal_rate
        if announced >= likely:
            break
        value = planner.crawl_values.supposing(rows, crawled_at, np.array([heard + k])).one(0)
        likely = min(likely, max(announced, _wake_time(value, planner.threshold, now)))
    return likely


def _what_binds(planner: Planner, page: int, now: float) -> str:
    pages, frontier = planner.pages, planner.frontier
    if planner.in_flight(page):
        return "in_flight"
    if frontier.is_forced(page):
        return "forced"
    if pages.not_before.item(page) > now:
        return "not_before"
    if pages.crawled_at.item(page) + planner.intervals.shortest_one(page) > now:
        return "min_interval"
    if frontier.is_resting(pages.host.item(page)):
        return "host"
    return "overdue" if frontier.deadline_of(page) <= now else "value"
