"""A process joins others that crawl the same collection."""

import pytest

from crawlsched.exceptions import StoreError
from tests.integration.refresh.processes import HOSTS, N_SHARDS, look_until, process
from tests.parts import ask


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"crawl_value": "greedy"}, "CRAWLSCHED_CRAWL_VALUE = posterior .* here it is greedy; set it to the same"),
        ({"one_pass": True}, "CRAWLSCHED_ONE_PASS = False .* here it is True; set it to the same"),
    ],
)
def test_a_process_with_other_aims_does_not_join(shared, given, said) -> None:
    """One plan is made for all shards. When the others have ended it may crawl by its own."""
    with process(shared), process(shared), pytest.raises(StoreError, match=said), process(shared, **given):
        pass
    with process(shared, **given):
        pass


def test_a_process_that_joins_has_its_share_at_once(shared) -> None:
    """Of shards of one size it gets half, one after the other, without a rest between them."""
    with process(shared) as first:
        for url in [f"http://{host}/{page}" for host in HOSTS for page in range(100)]:
            ask(first, url)
        look_until(first, lambda: len(first.collection.shards.here) == N_SHARDS)
        with process(shared) as second:

            def is_divided() -> bool:
                first.sharing.heartbeat()
                first.sharing.look(first.clock())
                return len(second.collection.shards.here) == N_SHARDS // 2

            look_until(second, is_divided, 15.0)


def test_a_shard_that_is_given_away_begins_nothing_more(shared) -> None:
    """What is under way ends first, and the next process asks its hosts only then: no host is asked by two."""
    with process(shared) as first:
        for url in [f"http://{host}/{page}" for host in HOSTS for page in range(20)]:
            ask(first, url)
        look_until(first, lambda: len(first.collection.shards.here) == N_SHARDS)
        names, shards = first.hosts.names, first.collection.shards

        def begun(n: int) -> set[int]:
            """Begin visits that do not end; return their shards."""
            found = [first.dispatcher.next_page(first.clock(), first.hosts.free_at) for _ in range(n)]
            return {shards.number_of(names[visit.host]) for visit, _ in found}

        assert begun(8) == set(range(N_SHARDS))
        with process(shared) as second:

            def given_away() -> set[int]:
                first.sharing.heartbeat()
                first.sharing.look(first.clock())
                return {n for n, row in shared.look().shards.items() if not row.ready} & shards.here.keys()

            look_until(second, given_away)
            leaving, others = given_away(), begun(40)
            assert others
            assert not others & leaving


def test_the_limit_of_pages_is_that_of_the_collection(shared) -> None:
    """A process counts the pages of the others with its own, as far as they have told of them."""
    with process(shared, max_pages=50) as first:
        look_until(first, lambda: len(first.collection.shards.here) == N_SHARDS)
        for url in [f"http://{host}/{page}" for page in range(20) for host in HOSTS]:
            ask(first, url)
        assert first.collection.limits.n == 50
        with process(shared, max_pages=50) as second:

            def knows_all() -> bool:
                first.sharing.heartbeat()
                first.sharing.look(first.clock())
                limits = second.collection.limits
                return len(second.collection.shards.here) == N_SHARDS // 2 and limits.n + limits.n_elsewhere == 50

            look_until(second, knows_all, 15.0)
            assert 0 < second.collection.limits.n < 50
            assert not second.collection.limits.takes(0)
