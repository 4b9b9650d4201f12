"""Queues of overdue and forced pages by host, against a sorted list, one page at a time and by the hundred."""

import random

import numpy as np
import pytest

from crawlsched.frontier.hosts.host_queues import HostQueues


@pytest.mark.parametrize("seed", range(60))
def test_the_first_page_of_a_host_that_does_not_rest_comes_first(seed: int) -> None:
    """However pages come, leave and come back with other keys, and whichever hosts rest meanwhile."""
    rng = random.Random(seed)
    host = {page: rng.randrange(4) for page in range(30)}
    resting: set[int] = set()
    keys: dict[int, float] = {}
    inside: dict[int, float] = {}
    queues = HostQueues(resting, keys.get)
    for step in range(200):
        chance = rng.random()
        if chance < 0.25:
            page = rng.randrange(30)
            keys[page] = inside[page] = float(step)
            queues.push(host[page], keys[page], page)
        elif chance < 0.4:
            pages = [page for page in rng.sample(range(30), 8) if page not in inside]
            for page in pages:
                keys[page] = inside[page] = float(step % 7)
            queues.push_many(
                np.array([host[page] for page in pages], np.int32),
                np.array([keys[page] for page in pages], np.float64),
                np.array(pages, np.intp),
            )
        elif chance < 0.5:
            page = rng.randrange(30)
            queues.discard(page)
            inside.pop(page, None)
        elif chance < 0.6:
            resting.add(rng.randrange(4))
        elif chance < 0.7 and resting:
            back = rng.choice(sorted(resting))
            resting.discard(back)
            queues.host_returns(back)
        else:
            entry = queues.first()
            wanted = min(((key, page) for page, key in inside.items() if host[page] not in resting), default=None)
            assert (None if entry is None else entry[:2]) == wanted
            if entry is not None:
                assert queues.likely(1) == [entry[1]]
                queues.pop(entry[2])
                del inside[entry[1]]
        assert {page for page in range(30) if page in queues} == inside.keys()
        queues.check()


def test_pages_that_came_at_once_are_foreseen_in_their_order() -> None:
    """Also where they stand in arrays, of which only the first page is in a queue."""
    keys = np.random.default_rng(1).permutation(500).astype(np.float64)
    queues = HostQueues(set(), lambda page: keys.item(page))
    queues.push_many(np.zeros(500, np.int32), keys, np.arange(500))
    queues.push(0, keys.item(0), 0)
    assert queues.likely(20) == np.argsort(keys)[:20].tolist()
    taken = []
    while (entry := queues.first()) is not None:
        taken.append(entry[1])
        queues.pop(entry[2])
    assert taken == np.argsort(keys).tolist()
    assert not queues
