"""First copies have a share of the slots: finding new pages never stops the keeping fresh of known ones."""

import numpy as np

from crawlsched.planner import Pick, Planner
from tests.planners import slots


def passed(planner: Planner, n: int, start: float = 0.0) -> list[Pick | None]:
    """Let so many slots pass; known pages have always changed."""
    return slots(planner, start + np.arange(1, n + 1) / planner.bandwidth)


def test_new_pages_get_their_share_while_known_pages_are_due_and_all_slots_where_either_has_none():
    planner = Planner(10.0, discovery_share=0.6)
    planner.add(0, 0.0, n=30)
    passed(planner, 60)
    assert not any(pick.is_first_copy for pick in passed(planner, 70, 6.0))  # nothing is new
    planner.add(0, 13.0, n=600)
    picks = passed(planner, 500, 13.0)
    assert None not in picks
    assert abs(sum(pick.is_first_copy for pick in picks) - 300) <= 2
    assert all(any(not pick.is_first_copy for pick in picks[i : i + 4]) for i in range(490))
    without = Planner(10.0, discovery_share=0.6, min_crawl_interval=1000.0)
    without.add(0, 0.0, n=600)
    assert all(pick.is_first_copy for pick in passed(without, 600))  # nothing is due


def test_the_first_page_of_a_site_is_not_fetched_again_and_again_while_others_are_found():
    planner = Planner(10.0)
    planner.add(0, 0.0)
    passed(planner, 1)
    planner.add(0, 0.1, n=12)
    picks = passed(planner, 20, 0.1)
    assert [pick.is_first_copy for pick in picks[:12]].count(False) <= 1
    assert None not in picks  # and what is left over goes to known pages


def test_hosts_take_turns_and_on_each_the_parts_of_its_site_newest_pages_first():
    """Four thousand pages of a calendar do not stand before the article of this minute."""
    planner = Planner(10.0, discovery_share=1.0)
    planner.add(0, 0.0, n=4000, part=1)
    passed(planner, 50)
    (article,) = planner.add(0, 5.0, part=2)
    assert article in [pick.page for pick in passed(planner, 3, 5.0)]
    others = planner.add(np.array([1, 1, 1]), 5.5)
    assert [pick.page for pick in passed(planner, 6, 5.5) if pick.page in others] == others.tolist()
    newest = planner.add(0, 7.0, n=2, part=1)
    assert [pick.page for pick in passed(planner, 3, 7.0)][:2] == newest.tolist()


def test_a_part_of_a_site_that_is_worth_more_has_more_turns():
    planner = Planner(10.0, discovery_share=1.0)
    planner.add(0, 0.0, importance=np.repeat([4.0, 1.0], 500), part=np.repeat([1, 2], 500))
    picked = [pick.page for pick in passed(planner, 100)]
    assert 75 <= sum(page < 500 for page in picked) <= 85


def test_the_priority_of_requests_orders_first_copies():
    planner = Planner(10.0)
    pages = planner.add(0, 0.0, n=20, priority=list(range(20)))
    planner.set_priority(3, 2**40, 0.0)  # Scrapy's priorities have no bounds
    picked = [pick.page for pick in passed(planner, 20) if pick.is_first_copy]
    assert picked == [3, *[page for page in pages.tolist()[::-1] if page != 3]][: len(picked)]
    assert len(picked) > 15


def test_the_pages_of_a_slow_host_go_whenever_they_may_if_they_take_longest():
    """Its 80 pages take 80 seconds, and all pages 60: all have their copy after 80 and a round of the hosts."""
    planner, asked_at = Planner(10.0, discovery_share=1.0), [-1.0]
    planner.frontier.new.limit = lambda host: 1.0 if host == 0 else np.inf
    planner.add(np.concatenate([np.zeros(80, int), 1 + np.arange(520) % 90]), 0.0)

    def free_at(host: int, now: float) -> float:
        return max(now, asked_at[0] + 0.99) if host == 0 else now

    for now in np.arange(1, 910) / 10.0:
        for pick in slots(planner, [now], lambda *_: False, free_at):
            if pick is not None and planner.pages.host[pick.page] == 0:
                asked_at[0] = now
    assert (planner.pages.crawled_at[:600] > -np.inf).all()
