"""What several shards of a process write at the same time is one transaction, and each is still by itself."""

import time

import pytest
from sqlalchemy import text

from crawlsched.sharing import Renewal
from crawlsched.store import Batch, Host, WriteBehind
from crawlsched.store.members import SharedCollection, about_me, new_token

N_SHARDS = 4


@pytest.fixture
def shared(database, request):
    return SharedCollection.open(database, request.node.name[:60], N_SHARDS, 10.0)


def claim(shared, member, number=1):
    said = Renewal(member, number, 0.0, 10.0, tuple(range(N_SHARDS)))
    return shared.renew(said, about_me("spider"), {}).answer.shards


def stores(shared, member, epochs):
    opened = [shared.store(shard) for shard in range(N_SHARDS)]
    for shard, store in enumerate(opened):
        store.lease = shared.lease(shard, member, epochs[shard])
    return opened


def behinds(shared, opened) -> list[WriteBehind]:
    return [WriteBehind(store, writing=shared.writing) for store in opened]


def save_at_once(shared, writers, batches) -> None:
    """Hand over a batch of each shard, as a flush of a process does."""
    with shared.writing.together():
        for writer, batch in zip(writers, batches, strict=True):
            writer.submit(batch)
    until = time.monotonic() + 30.0
    while any(writer.in_flight and writer.lost is None for writer in writers):
        assert time.monotonic() < until
        time.sleep(0.01)


def transactions(shared) -> dict[int, str]:
    wanted = text("SELECT shard, xmin::text AS number FROM hosts WHERE collection = :collection")
    with shared.database.reading() as connection:
        return {row.shard: row.number for row in connection.execute(wanted, {"collection": shared.number})}


def test_what_shards_hand_over_together_is_written_in_one_transaction(shared) -> None:
    """Each shard has its rows."""
    member = new_token()
    opened = stores(shared, member, claim(shared, member))
    writers = behinds(shared, opened)
    save_at_once(shared, writers, [Batch(hosts={"a": Host("a")})] * N_SHARDS)
    numbers = transactions(shared)
    assert numbers.keys() == set(range(N_SHARDS))
    assert len(set(numbers.values())) == 1
    assert [writer.n_rows for writer in writers] == [1] * N_SHARDS


def test_a_shard_that_was_lost_and_a_row_that_is_refused_cost_the_other_shards_nothing(shared) -> None:
    """What of a transaction concerns one shard is said there."""
    member = new_token()
    opened = stores(shared, member, claim(shared, member))
    with shared.database.writing() as connection:
        connection.execute(
            text("UPDATE leases SET token = 'other:2' WHERE collection = :number AND shard = 2"),
            {"number": shared.number},
        )
    refused = Batch(hosts={"a": Host("a"), "b": Host("b", crawl_delay="a text where a number has to be")})
    batches = [Batch(hosts={"a": Host("a")}), refused, *[Batch(hosts={"a": Host("a")})] * 2]
    writers = behinds(shared, opened)
    save_at_once(shared, writers, batches)
    assert [writer.lost is None for writer in writers] == [True, True, False, True]
    assert "taken over by another process" in writers[2].lost
    assert [dict(writer.refused) for writer in writers] == [{}, {"hosts": 1}, {}, {}]
    assert set(transactions(shared)) == {0, 1, 3}
    assert opened[1].reader.count_hosts() == 1


def test_a_shard_whose_batch_is_no_rows_says_so_and_costs_the_others_nothing(shared, caplog) -> None:
    """The thread goes on; a second batch of theirs is written, too."""
    member = new_token()
    opened = stores(shared, member, claim(shared, member))
    writers = behinds(shared, opened)
    with shared.writing.together():
        writers[1].submit(Batch(hosts={"a": Host("a")}))
        writers[1].submit(Batch(hosts=[5]))
        for shard in (0, 2, 3):
            writers[shard].submit(Batch(hosts={"a": Host("a")}))
    for shard in (0, 2, 3):
        assert writers[shard].drain(30.0)
        writers[shard].submit(Batch(hosts={"b": Host("b")}))
        assert writers[shard].drain(30.0)
    assert [store.reader.count_hosts() for store in opened] == [2, 0, 2, 2]
    assert "'list' object has no attribute" in writers[1].failure
    assert "Nothing can be written" in caplog.text
    assert not writers[1].close(0.1)


def test_a_shard_in_which_another_thread_writes_keeps_the_others_from_nothing(shared) -> None:
    """Forgetting a host's pages takes seconds; what waits meanwhile is written behind it."""
    member = new_token()
    opened = stores(shared, member, claim(shared, member))
    writers = behinds(shared, opened)
    with opened[1].turn:
        with shared.writing.together():
            for writer in writers:
                writer.submit(Batch(hosts={"a": Host("a")}))
        assert all(writers[shard].drain(30.0) for shard in (0, 2, 3))
        assert writers[1].in_flight
        assert set(transactions(shared)) == {0, 2, 3}
    assert writers[1].drain(30.0)
    assert set(transactions(shared)) == {0, 1, 2, 3}
