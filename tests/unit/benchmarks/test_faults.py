"""What the benchmark of faults counts."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.faults import n_out_of_order

names = st.sampled_from("abc")


def test_one_stray_request_is_one_out_of_order() -> None:
    """That its sender has the shard again later does not make all that come before it strays."""
    owners = ["a", "b", "a", "c"]
    assert n_out_of_order(owners, [*"aaa", *"bbb", "a", *"bbbbb", *"aa", *"cc"]) == 1


@pytest.mark.parametrize(("requests", "n"), [("", 0), ("aabc", 0), ("ac", 0), ("ba", 1), ("ddab", 2)])
def test_requests_are_counted_against_the_order_of_owners(requests, n) -> None:
    """One who never had the shard is always a stray; an owner may have asked for nothing."""
    assert n_out_of_order(["a", "b", "c"], list(requests)) == n


@given(owners=st.lists(names, max_size=4), requests=st.lists(names, max_size=7))
def test_it_is_the_least_number_that_explains_the_log(owners, requests) -> None:
    """All ways of leaving some out are tried."""

    def is_in_order(left: tuple[str, ...]) -> bool:
        at = 0
        for name in left:
            while at < len(owners) and owners[at] != name:
                at += 1
        return at < len(owners) or not left

    most = max(n for n in range(len(requests) + 1) if any(map(is_in_order, combinations(requests, n))))
    assert n_out_of_order(owners, requests) == len(requests) - most
