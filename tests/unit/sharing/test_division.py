"""One rate divided by demand, hosts to shards, shards to members."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.sharing import LEVELS, assigned, divided, is_number_of_shards, read_curve, shard_of, written_curve

names = st.text(min_size=1, max_size=30)


@given(host=names, power=st.integers(1, 11))
def test_doubling_the_shards_moves_a_host_to_one_place_or_none(host: str, power: int) -> None:
    """A host of shard s is in s or in s + n when there are twice as many."""
    n = 2**power
    assert shard_of(host, 2 * n) in (shard_of(host, n), shard_of(host, n) + n)


def test_hosts_are_spread_evenly() -> None:
    """10,000 hosts on 16 shards: none has a tenth more or less than its share of 625, within chance."""
    counts = np.bincount([shard_of(f"www{i}.example", 16) for i in range(10_000)], minlength=16)
    assert abs(counts - 625).max() < 5 * 25


@pytest.mark.parametrize(("n", "allowed"), [(2, True), (64, True), (4096, True), (1, False), (3, False), (8192, False)])
def test_the_number_of_shards_is_a_power_of_two(n: int, allowed: bool) -> None:
    """So that a split moves whole halves."""
    assert is_number_of_shards(n) is allowed


def curve(n_pages: int, change_rate: float) -> np.ndarray:
    """Return the demand of equal pages: each wants its rate down to the value that it may have at most."""
    return n_pages * change_rate * np.clip(1.0 - LEVELS * change_rate, 0.0, 1.0)


@given(
    pages=st.lists(st.tuples(st.integers(0, 10_000), st.floats(1e-5, 1.0)), min_size=1, max_size=20),
    rate=st.floats(0.01, 1000.0),
    unknown=st.sets(st.integers(0, 19)),
)
def test_the_shares_sum_to_the_rate_and_none_is_nothing(pages, rate: float, unknown: set[int]) -> None:
    """Whatever the curves say, and however many are not known yet."""
    curves = {i: None if i in unknown else curve(*page) for i, page in enumerate(pages)}
    shares = divided(rate, curves, {i: n for i, (n, _) in enumerate(pages)})
    assert sum(shares.values()) == pytest.approx(rate)
    assert min(shares.values()) > 0


@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(0.0, 1e4)), max_size=30))
def test_a_published_curve_is_read_back(points) -> None:
    """Any plan's demand can be published, also one of no page."""
    levels = sorted({round(level, 6) for level, _ in points if level > 0}, reverse=True)
    rates = sorted(rate for _, rate in points)[: len(levels)]
    demand = np.array(list(zip(levels, rates, strict=False)), float).reshape(-1, 2)
    packed = written_curve(demand, 10, 10)
    assert (packed is None) == (not len(demand))
    found = read_curve(packed or written_curve(np.array([[1.0, 1.0]]), 10, 10))
    assert found is not None
    assert found.shape == LEVELS.shape
    for other in (None, "something else", b"x".hex(), 5):
        assert read_curve(other) is None


@given(
    weights=st.lists(st.floats(0.01, 5.0), min_size=1, max_size=64),
    members=st.sets(st.sampled_from("abcdef"), min_size=1),
    data=st.data(),
)
def test_an_assignment_is_complete_and_stays_once_it_is_carried_out(weights, members, data) -> None:
    """Every shard has a living member; what all carry out is what all reckon again, so nothing moves for ever."""
    owner = st.sampled_from([*"abcdefgh", ""])
    owners = {shard: data.draw(owner) for shard in range(len(weights))}
    by_shard = dict(enumerate(weights))
    first = assigned(by_shard, owners, members)
    assert set(first) == set(by_shard)
    assert set(first.values()) <= members
    assert assigned(by_shard, first, members) == first


def test_as_many_moves_are_made_as_it_takes() -> None:
    """More than there are shards, when one member had them all: what is reckoned is what stays."""
    weights = dict(enumerate([1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 4.0, 4.0, 1.5, 2.5, 0.49131264397969127]))
    first = assigned(weights, dict.fromkeys(weights, "a"), set("abcde"))
    assert assigned(weights, first, set("abcde")) == first


@pytest.mark.parametrize("weight", [1.0, 1e-3])
def test_who_joins_gets_a_fair_part_and_the_rest_stays(weight: float) -> None:
    """64 equal shards of one member, and a second that joins: it gets half, within a tenth; a third takes from both."""
    weights = dict.fromkeys(range(64), weight)
    two = assigned(weights, dict.fromkeys(range(64), "a"), ["a", "b"])
    three = assigned(weights, two, ["a", "b", "c"])
    assert min(list(two.values()).count(name) for name in "ab") >= 30
    assert min(list(three.values()).count(name) for name in "abc") >= 19
    assert sum(two[shard] != three[shard] for shard in weights) == list(three.values()).count("c")


@pytest.mark.parametrize(
    ("weights", "owners", "then"),
    [
        ([4.0, 3.0, 2.0, 1.0], "aaaa", "baab"),
        ([6.0, 4.0, 2.0], "aab", "abb"),
        ([2.0, 3.0, 3.0, 4.0], "----", "abba"),  # nothing small would be left to even out what came last
        ([1.0] * 64, "a" * 33 + "b" * 31, "a" * 33 + "b" * 31),  # each move costs a loading
        ([5.0, 0.0], "aa", "aa"),  # this one evens nothing out
    ],
)
def test_those_shards_move_that_leave_two_members_nearest_to_each_other(weights, owners: str, then: str) -> None:
    """Loads that differ by less than a tenth are left; what nobody owns is given the heaviest first."""
    assert assigned(dict(enumerate(weights)), dict(enumerate(owners)), ["a", "b"]) == dict(enumerate(then))


def test_the_last_crawl_of_each_shard_is_worth_the_same_at_any_rate() -> None:
    """Two demands that fall alike, one of them 48 a second higher: so are their shares; also where both want more."""
    steps = np.arange(LEVELS.size)
    curves = {"a": 96.0 - steps, "b": np.maximum(48.0 - steps, 0.0)}
    for rate in (60.0, 100.5, 143.0):
        shares = divided(rate, curves, {"a": 1, "b": 1})
        assert shares["a"] - shares["b"] == pytest.approx(48.0)
    assert divided(8.0, curves | {"b": 0.0 * steps}, {})["b"] == pytest.approx(8.0 * 0.002 / 2)  # so as not to be blind
    flat = {"a": np.full(LEVELS.size, 5.0), "b": np.full(LEVELS.size, 15.0)}
    assert divided(1.0, flat, {"a": 1, "b": 1}) == pytest.approx({"a": 0.25, "b": 0.75}, rel=0.01)
    nothing = {"a": 0.0 * steps, "b": 0.0 * steps}
    assert divided(6.0, nothing, {"a": 3, "b": 1}) == pytest.approx({"a": 4.0, "b": 2.0}, rel=0.01)  # by pages


def test_a_rate_that_is_next_to_nothing_goes_to_the_most_valuable_pages() -> None:
    """However steeply their demand begins: to whom has three times as many of them goes three times as much."""
    low, high = np.arange(LEVELS.size) < 10, np.arange(LEVELS.size) < 50
    shares = divided(1e-12, {"a": 1e12 * low + 1e9 * high, "b": 3e9 * high}, {"a": 1, "b": 1})
    assert shares["b"] / shares["a"] == pytest.approx(3.0, rel=0.01)


def test_a_curve_is_read_between_the_levels_of_its_plan_and_wants_nothing_above_them() -> None:
    """Between two levels logarithms are linear; below the lowest no more is wanted than there."""
    curve = read_curve(written_curve(np.array([[10.0, 1.0], [1.0, 4.0]]), 10, 10))
    assert np.interp([0.001, 10.0**0.5, 20.0], LEVELS, curve) == pytest.approx([4.0, 2.0, 0.0], abs=0.01)
