"""From settings: make the planner that the settings describe."""

from __future__ import annotations

from math import inf

from crawlsched.estimators import LearnedRates
from crawlsched.frontier.new_pages import DiscoveryShare
from crawlsched.planner.planner import Planner
from crawlsched.planner.starvation import MAX_CRAWL_ROUNDS
from crawlsched.settings import Settings
from crawlsched.settings.page_rules import PageRule
from crawlsched.slot_clock import DAY

__all__ = ["planner_for"]

# A collection without copies has nothing to keep fresh, so all slots of these first seconds may go to first copies.
_BEGINNING = 15.0


def planner_for(
    settings: Settings, *, picks: bool = True, max_crawl_rounds: float | None = MAX_CRAWL_ROUNDS
) -> Planner:
    """Return the planner that these settings describe, without pages. Without `picks`, it only computes values."""
    name, parameters = settings.estimator
    learned = None
    if name != "posterior":
        # Before the first plan the change rates are unknown; one change a day is a guess.
        learned = LearnedRates(name, 0, 1.0 / DAY, dict(parameters))
    # The rule for all pages applies immediately. Any other rule of a loaded page is known only after the page's URL was
    # read.
    for_all = next((rule for rule in settings.pages if rule.where == "*"), PageRule("*"))
    planner = Planner(
        settings.bandwidth,
        crawl_value=settings.crawl_value,
        min_crawl_interval=for_all.min_interval or 0.0,
        max_crawl_interval=for_all.max_interval,
        interval_rules=[(rule.min_interval or 0.0, rule.max_interval or inf) for rule in settings.pages],
        max_crawl_rounds=max_crawl_rounds,
        error_interval=settings.error_interval,
        learned=learned,
        picks=picks,
    )
    planner.frontier.share = DiscoveryShare(settings.share_of_first_copies, _BEGINNING * settings.bandwidth)
    return planner
