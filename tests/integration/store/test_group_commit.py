"""What several shards of a process write at the same time is one transaction, and each is still by itself."""

import threading
import time

import pytest
from sqlalchemy import text

from crawlsched.exceptions import CollectionInUse
from crawlsched.sharing import Renewal
from crawlsched.store import Batch, Host
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


def save_at_once(shared, opened, batches) -> list[Exception | None]:
    """Save in one thread for each shard, as write-behinds do, while the first of them is held up by a lock."""
    failures: list[Exception | None] = [None] * N_SHARDS

    def save(shard: int) -> None:
        try:
            opened[shard].save(batches[shard])
        except Exception as error:
            failures[shard] = error

    threads = [threading.Thread(target=save, args=(shard,)) for shard in range(N_SHARDS)]
    with shared.database.writing() as connection:
        connection.execute(text("LOCK TABLE hosts IN ACCESS EXCLUSIVE MODE"))
        threads[0].start()
        until = time.monotonic() + 10.0
        waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while not connection.execute(waits).scalar():
            assert time.monotonic() < until
        for thread in threads[1:]:
            thread.start()
        while len(opened[0].group_commit._waiting) < N_SHARDS - 1:
            assert time.monotonic() < until
    for thread in threads:
        thread.join(30.0)
    return failures


def transactions(shared) -> dict[int, str]:
    wanted = text("SELECT shard, xmin::text AS number FROM hosts WHERE collection = :collection")
    with shared.database.reading() as connection:
        return {row.shard: row.number for row in connection.execute(wanted, {"collection": shared.number})}


def test_shards_that_wait_for_another_are_written_in_one_transaction(shared) -> None:
    """Each shard has its rows, and says that its pages may have changed."""
    member = new_token()
    opened = stores(shared, member, claim(shared, member))
    before = [store.last_change() for store in opened]
    assert save_at_once(shared, opened, [Batch(hosts={"a": Host("a")})] * N_SHARDS) == [None] * N_SHARDS
    first, *others = [transactions(shared)[shard] for shard in range(N_SHARDS)]
    assert len(set(others)) == 1
    assert first != others[0]
    after = [store.last_change() for store in opened]
    assert len({*before, *after}) == 1 + N_SHARDS


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
    failures = save_at_once(shared, opened, batches)
    assert [type(failure) for failure in failures] == [type(None), type(None), CollectionInUse, type(None)]
    assert set(transactions(shared)) == {0, 1, 3}
    assert opened[1].count_hosts() == 1
