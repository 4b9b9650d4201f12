"""Which shard of a process goes first at a slot."""

from itertools import islice

from crawlsched.refresh.shared.turns import Turns


def test_the_shard_goes_first_whose_best_page_is_worth_most_when_one_looks_closer() -> None:
    """The bound of a page whose host may not be asked is passed by, and no shard is looked at closely without need."""
    bounds, values, looked = {1: 9.0, 2: 5.0, 3: 4.0}, {1: 2.0, 2: 5.0, 3: 4.0}, []

    def value(shard: int) -> float:
        looked.append(shard)
        return values[shard]

    assert next(Turns().order(bounds, bounds.__getitem__, value)) == 2
    assert looked == [1, 2]
    assert list(Turns().order(bounds, bounds.__getitem__, value)) == [2, 3, 1]


def test_a_shard_of_which_no_page_may_go_is_not_asked() -> None:
    """Also if it is far behind its share."""
    turns, worth = Turns(), {1: float("-inf"), 2: 1.0}
    for _ in range(200):
        assert list(turns.order(worth, worth.__getitem__, worth.__getitem__)) == [2]
        turns.took(2, {1: 9.0, 2: 1.0})


def test_a_shard_that_has_come_just_now_goes_at_once_where_all_pages_are_worth_the_same() -> None:
    """As in a first crawl: it was let wait for 64 of its turns, half a minute at some requests a second."""
    turns, worth = Turns(), dict.fromkeys(range(4), 7.0)
    given = []
    for slot in range(40):
        shards = [0, 1, 2] if slot < 20 else [0, 1, 2, 3]
        given.append(next(turns.order(shards, worth.__getitem__, worth.__getitem__)))
        turns.took(given[-1], dict.fromkeys(shards, 1.0))
    assert given[20] == 3
    assert sorted(given[36:]) == [0, 1, 2, 3]


def test_a_shard_that_has_come_goes_first_once_though_its_pages_are_worth_less() -> None:
    """Nobody has asked its hosts while another process lost it; from then on it is one of several."""
    turns, worth = Turns(), {0: 7.0, 1: 7.0, 2: 5.0}
    given = []
    for slot in range(60):
        shards = [0, 1] if slot < 20 else [0, 1, 2]
        given.append(next(turns.order(shards, worth.__getitem__, worth.__getitem__)))
        turns.took(given[-1], dict.fromkeys(shards, 1.0))
    assert given[20] == 2
    assert given.count(2) == 1


def test_a_shard_whose_host_may_be_asked_again_goes_at_once() -> None:
    """Were it looked at in its turn alone, its best page would wait for slots that its host has to let pass anyway."""
    turns = Turns()
    worth = dict.fromkeys(range(64), 1.0)
    for _ in range(5):
        list(islice(turns.order(worth, worth.__getitem__, worth.__getitem__), 1))
    for shard in (63, 0, 31):
        worth[shard] = 100.0
        assert next(turns.order(worth, worth.__getitem__, worth.__getitem__, {shard}.__contains__)) == shard
        worth[shard] = 1.0


def test_every_shard_is_looked_at_in_its_turn() -> None:
    """However many there are, a page that has become worth much goes soon."""
    turns = Turns()
    worth = dict.fromkeys(range(100), 1.0)
    for _ in range(7):
        list(islice(turns.order(worth, worth.__getitem__, worth.__getitem__), 1))
    for shard in (3, 99, 50):
        worth[shard] = 100.0 + shard
        firsts = [next(turns.order(worth, worth.__getitem__, worth.__getitem__)) for _ in range(7)]
        assert shard in firsts
        worth[shard] = 0.0
