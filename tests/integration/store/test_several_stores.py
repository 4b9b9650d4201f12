"""What several shards of a process write at the same time is one transaction, and each is still by itself."""

import pytest
from sqlalchemy import text

from crawlsched.sharing import Renewal
from crawlsched.store import Batch, Host, WriteBehind
from crawlsched.store.members import SharedCollection, about_me, new_token

N_SHARDS = 4


@pytest.fixture
def shared(database, request):
    return SharedCollection.open(database, request.node.name[:60], N_SHARDS, 10.0)


@pytest.fixture
def opened(shared):
    member = new_token()
    said = Renewal(member, 1, 0.0, 10.0, tuple(range(N_SHARDS)))
    epochs = shared.renew(said, about_me("spider"), {}).shards
    stores = [shared.store(shard) for shard in range(N_SHARDS)]
    for shard, store in enumerate(stores):
        store.lease = shared.lease(shard, member, epochs[shard])
    return stores


def transactions(shared) -> dict[int, str]:
    wanted = text("SELECT shard, xmin::text AS number FROM hosts WHERE collection = :collection")
    with shared.database.reading() as connection:
        return {row.shard: row.number for row in connection.execute(wanted, {"collection": shared.number})}


def test_what_shards_hand_over_together_is_written_in_one_transaction(shared, opened) -> None:
    """Each shard has its rows."""
    writer = WriteBehind()
    writer.submit(*[(store, Batch(hosts={"a": Host("a")})) for store in opened])
    assert writer.close()
    numbers = transactions(shared)
    assert numbers.keys() == set(range(N_SHARDS))
    assert len(set(numbers.values())) == 1
    assert (writer.n_saved, writer.n_rows) == (N_SHARDS, N_SHARDS)


def test_a_shard_that_was_lost_and_a_row_that_is_refused_cost_the_other_shards_nothing(shared, opened) -> None:
    """What of a transaction is another process's is left out, and the thread goes on."""
    with shared.database.writing() as connection:
        connection.execute(
            text("UPDATE leases SET token = 'other:2' WHERE collection = :number AND shard = 2"),
            {"number": shared.number},
        )
    writer = WriteBehind()
    refused = Batch(hosts={"a": Host("a"), "b": Host("b", crawl_delay="a text where a number has to be")})
    batches = [Batch(hosts={"a": Host("a")}), refused, *[Batch(hosts={"a": Host("a")}) for _ in range(2)]]
    writer.submit(*zip(opened, batches, strict=True))
    assert writer.drain(30.0)
    assert dict(writer.refused) == {"hosts": 1}
    assert set(transactions(shared)) == {0, 1, 3}
    assert opened[1].reader.count_hosts() == 1
    writer.submit((opened[0], Batch(hosts={"b": Host("b")})), (opened[2], Batch(hosts={"b": Host("b")})))
    assert writer.close()
    assert writer.lost is None
    assert [store.reader.count_hosts() for store in opened] == [2, 1, 0, 1]
