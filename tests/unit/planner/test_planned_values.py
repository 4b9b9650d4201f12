"""The plans of the papers crawl through the frontier: each slot goes to the page that is due first by the plan."""

import numpy as np
import pytest

from crawlsched.estimators import LearnedRates
from crawlsched.planner import Planner, plan
from crawlsched.planner.values import POLICIES
from tests.planners import load_crawled, never_rests

N_PAGES = 40
BANDWIDTH = 0.5
HOUR, DAY = 3600.0, 86400.0


def planner_of(policy: str, seed: int = 1, **more: object) -> tuple[Planner, np.ndarray]:
    """Return a planner whose estimator has seen pages of known rates, and has made a plan."""
    rng = np.random.default_rng(seed)
    rates = rng.lognormal(np.log(1 / HOUR), 1.5, N_PAGES)
    planner = Planner(BANDWIDTH, crawl_value=policy, learned=LearnedRates("naive", 0, 1 / 80.0), **more)  # type: ignore[arg-type]
    load_crawled(planner, N_PAGES, importance=rng.uniform(0.5, 2.0, N_PAGES))
    for number in range(1, 20):
        for page in range(N_PAGES):
            planner.hold(page)
            planner.crawled(page, number * HOUR + page, bool(rng.random() < -np.expm1(-rates[page] * HOUR)))
    now = 20 * HOUR
    planner.adopt(plan(planner.snapshot(), BANDWIDTH), now)
    while planner.work(now):
        pass
    return planner, rates


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_each_slot_goes_to_the_page_that_is_worth_most(policy: str, seed: int) -> None:
    """As a look at all pages finds it; the frontier's bounds hold."""
    planner, rates = planner_of(policy, seed)
    rng = np.random.default_rng(seed)
    pages, now = np.arange(N_PAGES), 20 * HOUR
    counts = np.zeros(N_PAGES)
    for slot in range(400):
        now += 1 / BANDWIDTH
        values = planner.crawl_values.value_at(pages, now)
        pick = planner.pick(now, never_rests)
        assert pick.page == int(values.argmax())
        elapsed = now - planner.pages.crawled_at.item(pick.page)
        planner.crawled(pick.page, now + 0.3, bool(rng.random() < -np.expm1(-rates[pick.page] * elapsed)))
        counts[pick.page] += 1
        if slot % 50 == 0:
            planner.frontier._check(now + 0.4)
    assert counts.sum() == 400


def test_a_new_page_goes_first_and_one_without_importance_last() -> None:
    """Whatever the policy: a page without a copy is waited for, and one that does not matter is not."""
    for policy in POLICIES:
        planner, _ = planner_of(policy)
        page = int(planner.add(0, 20 * HOUR)[0])
        pick = planner.pick(20 * HOUR + 1, never_rests)
        assert pick.page == page


@pytest.mark.parametrize("crawl_value", ["posterior", "greedy", "harmonic"])
def test_what_never_changed_is_measured_by_a_round_of_this_crawl(crawl_value: str) -> None:
    """A day is no guess for pages that are crawled every minute: none of them would seem to be worth a visit."""
    n, bandwidth = 300, 5.0
    planner = Planner(bandwidth, crawl_value=crawl_value, learned=LearnedRates("naive", 0, 1 / DAY))
    pages = planner.add(host=0, now=0.0, n=n)
    for page in pages.tolist():
        planner.hold(page)
        planner.crawled(page, 0.0, None)
    assert planner.change_rates(pages) == pytest.approx(np.full(n, 0.5 / DAY))
    first = plan(planner.snapshot(), bandwidth)
    planner.adopt(first, 60.0)
    # While a plan comes into force page by page, each slot goes to the page that is worth most all the same.
    for slot in range(400):
        now = 60.0 + slot / bandwidth
        pick = planner.pick(now, never_rests)  # a slice of the plan comes into force before it
        if pick.reason == "value":
            values = planner.crawl_values.value_at(pages, now)
            assert values[pick.page] >= 0.94 * values.max()
        planner.crawled(pick.page, now, pick.page % 7 == 0)
        if slot % 40 == 0:
            planner.frontier._check(now)
    still = np.array([page for page in pages.tolist() if page % 7 and planner.pages.crawled_at.item(page) > 0.0])
    assert still.size > 100
    watched = planner.pages.crawled_at[still]
    assert planner.change_rates(still) == pytest.approx(0.5 / (watched + n / bandwidth))
