"""A first crawl ends as soon as it can: hosts that need longest are asked from its beginning on."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlsched.planner import Planner

BANDWIDTH = 25.0


def first_crawl(sizes, delays, *, knows_delays=True, importance=1.0, in_turn=False):
    """Crawl hosts of so many pages with so many seconds between two requests; return the slot of each first copy.

    Pages are numbered host by host, or host after host if they were found in turn.
    """
    hosts = np.repeat(np.arange(len(sizes)), sizes)
    if in_turn:
        hosts = hosts[np.argsort(np.concatenate([np.arange(size) for size in sizes]), kind="stable")]
    planner, asked_at = Planner(BANDWIDTH), np.full(len(sizes), -np.inf)
    if knows_delays:
        limits = np.divide(1.0, delays, out=np.full(len(sizes), np.inf), where=np.array(delays) > 0)
        planner.first_copies.limits = lambda: limits
    planner.add(hosts, 0.0, importance)
    slots = np.full(hosts.size, -1)
    for slot in range(1, 100_000):
        now = slot / BANDWIDTH
        # A delay that ends within a millionth of a second of a slot has ended: these are roundings.
        pick = planner.pick(now, lambda host, now: max(now, asked_at[host] + delays[host] - 1e-6))
        if pick is None:
            continue
        asked_at[hosts[pick.page]] = now
        if slots[pick.page] < 0:
            assert pick.reason == "value"
            slots[pick.page] = slot
        planner.crawled(pick.page, now, changed=None if slots[pick.page] == slot else False)
        if slots.min() > 0:
            return slots, hosts
    raise AssertionError("there were pages without a copy after 100,000 slots")


def least_slots(sizes, delays):
    """No order of the pages ends sooner: a slot for each, and for each host the slots that lie between its own."""
    between = [max(1, int(np.ceil(delay * BANDWIDTH - 1e-4))) for delay in delays]
    return max(sum(sizes), *(1 + (size - 1) * apart for size, apart in zip(sizes, between, strict=True)))


def test_a_large_slow_host_does_not_make_the_first_crawl_longer():
    """It takes nine tenths of the time that all pages take, is known last, and is through with the others."""
    sizes, delays = [150, 150, 150, 50, 90], [0.0, 0.0, 0.0, 0.0, 0.24]
    slots, _ = first_crawl(sizes, delays)
    assert slots.max() <= least_slots(sizes, delays) + 2
    before, _ = first_crawl(sizes, delays, knows_delays=False)
    assert before.max() > 1.4 * least_slots(sizes, delays)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from([0.0, 0.08, 0.2, 0.4, 1.0])), min_size=1, max_size=8),
    st.booleans(),
)
def test_no_first_crawl_ends_later_than_that_rule_promises(hosts, in_turn):
    """Longest processing time first ends within 4/3 of the least time (Graham), and 16 slots until it begins."""
    sizes, delays = map(list, zip(*hosts, strict=True))
    slots, _ = first_crawl(sizes, delays, in_turn=in_turn)
    assert slots.max() <= 4 / 3 * least_slots(sizes, delays) + 16


def test_where_no_host_is_slow_nothing_changes():
    """Nor where a host's delay is shorter than the time between two slots."""
    sizes = [40, 30, 20, 50]
    without, _ = first_crawl(sizes, [0.0] * 4, knows_delays=False)
    assert np.array_equal(first_crawl(sizes, [0.0] * 4)[0], without)
    assert np.array_equal(first_crawl(sizes, [0.0, 0.03, 0.0, 0.0])[0], without)


def test_pages_of_a_slow_host_do_not_go_before_what_is_worth_more():
    """The slow host's pages are worth a tenth of the others': these go before, but for a page sent at the beginning."""
    sizes, delays = [100, 100, 60], [0.0, 0.0, 0.4]
    importance = np.repeat([1.0, 1.0, 0.1], sizes)
    slots, hosts = first_crawl(sizes, delays, importance=importance)
    assert slots[hosts < 2].max() <= 200
    assert slots[hosts == 2].min() > 200


def test_pages_that_are_tried_again_later_and_forgotten_ones_are_not_sent():
    """An error, a page that is gone, a forgotten one: the next page of the slow host goes in its place."""
    planner = Planner(BANDWIDTH)
    planner.first_copies.limits = lambda: np.array([np.inf, 5.0])
    planner.add(np.repeat([0, 1], [30, 6]), 0.0)
    free_at = {1: 0.0}
    ends = {
        30: lambda page, now: planner.failed(page, now),
        31: lambda page, now: planner.gone(page, now),
        32: lambda page, now: planner.remove([33]) or planner.crawled(page, now, None),
    }
    went = []
    for slot in range(1, 34):
        now = slot / BANDWIDTH
        pick = planner.pick(now, lambda host, now: max(now, free_at.get(host, 0.0)))
        went.append(pick.page)
        if pick.page >= 30:
            free_at[1] = now + 0.2
        ends.get(pick.page, lambda page, now: planner.crawled(page, now, None))(pick.page, now)
    assert [page for page in went if page >= 30] == [30, 31, 32, 34, 35]
    assert went.index(30) == 1
