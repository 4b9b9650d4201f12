"""The starvation guard keeps to what a page may not."""

import numpy as np

from crawlsched.pages.intervals import Limits
from crawlsched.planner import Planner
from tests.planners import never_rests


def test_a_page_that_has_waited_for_too_many_rounds_does_not_go_before_its_shortest_interval_is_over() -> None:
    """One page of twenty may go once an hour; thirty rounds of two seconds pass, and it goes no second time."""
    planner = Planner(10.0, max_crawl_rounds=4.0, interval_rules=[Limits(3600.0, np.inf)])
    planner.add(0, 0.0, n=20, interval_rules=np.eye(1, 20, dtype=np.uint8)[0])
    counts = np.zeros(20, int)
    for slot in range(600):
        pick = planner.pick(slot / 10.0, never_rests)
        counts[pick.page] += 1
        planner.crawled(pick.page, slot / 10.0, None if counts[pick.page] == 1 else False)
    assert counts[0] == 1
    assert counts[1:].min() > 10
