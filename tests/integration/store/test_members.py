"""Several processes share a collection by rows in PostgreSQL, which decide as the rules in Python do."""

import threading
import time
from contextlib import suppress
from itertools import count

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError

from crawlsched.exceptions import CollectionInUse, StoreError
from crawlsched.sharing import LEASE, Renewal
from crawlsched.store import Batch, Host, Store, WriteBehind, schema
from crawlsched.store.database import Database
from crawlsched.store.lease import lost, me
from crawlsched.store.members import SharedCollection, application_of, new_token
from tests.databases import rows
from tests.inputs import tries
from tests.renewal_rule import Rows, ShardRow, renew
from tests.waiting import wait_until

ABOUT = me("spider")
NUMBERS = count(1)


@pytest.fixture
def shared(database, request):
    return SharedCollection.open(database, request.node.name[:60], n_shards=4, rate=10.0)


renewals = st.tuples(
    st.sampled_from("abc"), st.sampled_from([0.0, 2.0, 5.0, 10.0]), st.sets(st.integers(0, 3)), st.integers(-1, 3)
)
steps = st.lists(
    st.one_of(
        renewals,
        st.sampled_from([0.5, 2.0, 5.9, 6.0, 6.1, 13.0]),
        st.tuples(st.just("rate"), st.sampled_from([1.0, 10.0, 20.0])),
        st.just("restart"),
    ),
    max_size=25,
)


def stands(seen):
    """Return what each member is granted, and who has each shard, with its epoch."""
    granted = {name: row.granted for name, row in seen.members.items()}
    return granted, {shard: (row.member, row.epoch) for shard, row in seen.shards.items()}


@tries(60, suppress_health_check=list(HealthCheck))
@given(steps=steps)
def test_the_database_answers_as_the_rules_say(database, steps):
    """Whatever members say, in whatever order and at whatever time, also what was held up on the way."""
    shared = SharedCollection.open(database, new_token(), n_shards=4, rate=10.0)
    by_rules = Rows(10.0, {shard: ShardRow() for shard in range(4)})
    now, started_at = 1_000_000.0, 0.0
    numbers = dict.fromkeys("abc", 0)
    using = dict.fromkeys("abc", 0.0)
    for step in steps:
        if isinstance(step, float):
            now += step
        elif step == "restart":
            started_at = now
        elif step[0] == "rate":
            by_rules.rate = step[1]
            shared.set_rate(step[1])
        else:
            member, wants, claims, ahead = step
            numbers[member] = max(numbers[member] + ahead, 1)
            said = Renewal(member, numbers[member], using[member], wants, tuple(sorted(claims)))
            expected = renew(by_rules, said, now, LEASE, started_at)
            found = shared.renew(said, ABOUT, {}, at=now, started_at=started_at)
            assert found == expected
            using[member] = using[member] if expected is None else expected.granted
    assert stands(shared.look()) == stands(by_rules)


def renewed(shared: SharedCollection, member: str, *claims: int, at: float) -> dict[int, int]:
    """Renew the word of a process that claims shards, and return which it has, with their epochs."""
    said = Renewal(member, next(NUMBERS), 0.0, 10.0, claims)
    return shared.renew(said, ABOUT, {}, at=at, started_at=0.0).shards


def test_what_a_new_owner_has_claimed_the_old_one_cannot_write(shared):
    """The epoch is looked at inside the writing transaction; nothing of the batch is written."""
    renewed(shared, "old", 2, at=100.0)
    old, new = shared.store(2), shared.store(2)
    old.lease = shared.lease(2, "old", 1)
    assert old.save(Batch(hosts={"a": Host("a")})) == {}
    renewed(shared, "new", 2, at=107.0)
    with pytest.raises(CollectionInUse, match=r"The shard 2 of .* was taken over by another"):
        old.save(Batch(hosts={"b": Host("b")}))
    new.lease = shared.lease(2, "new", 2)
    assert new.save(Batch(hosts={"c": Host("c")})) == {}
    assert [host.host for host in new.reader.hosts()] == ["a", "c"]


def test_who_is_stopped_right_after_a_call_holds_nobody_up(shared):
    """The budget's row is everybody's: the server commits by itself, and waits for no word of the caller."""
    stopped, others = Database(shared.database.text), Database(shared.database.text, answer_within=1.0)
    caller = SharedCollection(stopped, shared.name, shared.number, shared.n_shards)
    beside = SharedCollection(others, shared.name, shared.number, shared.n_shards)
    answered = []

    def others_go_on(*of_the_call):
        answered.append(beside.renew(Renewal(new_token(), 1, 0.0, 1.0), ABOUT, {}).granted)
        beside.set_rate(20.0)

    event.listen(stopped.engine, "after_cursor_execute", others_go_on)
    try:
        assert caller.renew(Renewal("m", 1, 0.0, 1.0, (0,)), ABOUT, {}).shards == {0: 1}
        caller.set_rate(10.0)
        assert caller.pause(paused=True) == pytest.approx(time.time(), abs=60)
        assert caller.pause(paused=False) is None
        caller.publish(0, "m:1", n_pages=1)
    finally:
        stopped.close()
        others.close()
    assert answered == [1.0] * 5


def owned(shared, member: str) -> Store:
    store = shared.store(0)
    store.lease = shared.lease(0, member, 1)
    return store


def test_a_writer_that_is_stopped_holds_nobody_up_for_long(shared):
    """Its shard is passed by while its transaction is open, renewals do not wait, and the server ends it in 3 s."""
    renewed(shared, "stopped", 0, 1, at=100.0)
    store = owned(shared, "stopped")
    with suppress(DBAPIError), shared.database.writing() as connection:
        assert not lost(connection, [store])
        assert renewed(shared, "heir", 0, 1, at=107.0) == {1: 2}
        wait_until(lambda: renewed(shared, "heir", 0, at=108.0) == {0: 2, 1: 2}, 6.0)
        connection.execute(text("SELECT 1"))
        pytest.fail("The server let a stopped writer go on.")


def test_a_writer_that_is_stopped_while_it_sends_rows_is_ended_by_the_heir(shared):
    """The server waits for the rest of a pipeline without end; whoever may claim the shard ends the connection."""
    renewed(shared, "stopped", 0, at=100.0)
    dead, store = Database(shared.database.text, application=application_of("stopped")), owned(shared, "stopped")
    with suppress(DBAPIError), dead.engine.connect() as connection:
        assert not lost(connection, [store])
        driver = connection.connection.driver_connection
        with driver.pipeline():
            driver.execute("SELECT 1")
            driver.pgconn.send_flush_request()
            driver.pgconn.flush()
            time.sleep(3.5)  # for so long the server would let it be idle between statements
            assert renewed(shared, "heir", 0, at=108.0) == {}
            assert shared.end_sessions("stopped") == 1
            driver.close()
    dead.close()
    wait_until(lambda: renewed(shared, "heir", 0, at=108.0) == {0: 2}, 5.0)


def test_sixteen_that_begin_at_once_make_one_collection_and_share_its_rate(database):
    """Sixteen threads make it, claim and renew: one number, every shard with one owner, and the sum is the rate."""
    answers, numbers = {}, set()
    barrier = threading.Barrier(16)

    def member(name):
        barrier.wait()
        shared = SharedCollection.open(database, "made at once", n_shards=8, rate=10.0)
        numbers.add(shared.number)
        answers[name] = shared.renew(Renewal(name, 1, 0.0, 1.0, (hash(name) % 8, 7)), ABOUT, {})

    threads = [threading.Thread(target=member, args=(f"m{i}",)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(numbers) == 1
    assert sum(answer.granted for answer in answers.values()) == pytest.approx(10.0)
    owned = [shard for answer in answers.values() for shard in answer.shards]
    assert len(owned) == len(set(owned))


def test_sqlite_and_collections_of_one_process_are_refused(database, sqlite_url):
    """Each with a sentence that says what to do."""
    Store.open(database.text, "of one").close()
    with pytest.raises(
        CollectionInUse, match=r"belongs to one process at a time; divide it with `crawlsched db split`"
    ):
        SharedCollection.open(database, "of one", n_shards=4)
    schema.upgrade(sqlite_url)
    with pytest.raises(StoreError, match="CRAWLSCHED_SHARDS needs PostgreSQL"):
        SharedCollection.open(Database(sqlite_url), "x", n_shards=4)


def test_a_process_without_shards_does_not_take_a_shared_collection(database, shared):
    """It would crawl one shard and take it for all."""
    store = Store.open(database.text, shared.name)
    with pytest.raises(CollectionInUse, match="has 4 shards, which several processes share; set CRAWLSCHED_SHARDS = 4"):
        store.take_lease("spider")
    store.close()


@pytest.fixture
def opened(shared):
    member = new_token()
    epochs = shared.renew(Renewal(member, 1, 0.0, 10.0, tuple(range(4))), ABOUT, {}).shards
    stores = [shared.store(shard) for shard in range(4)]
    for shard, store in enumerate(stores):
        store.lease = shared.lease(shard, member, epochs[shard])
    return stores


def test_what_shards_hand_over_together_is_one_transaction_and_none_costs_the_others_anything(shared, opened, caplog):
    """What of it is another process's is left out, as is a row that is refused, and the thread goes on."""
    writer = WriteBehind()

    def hand_over(*hosts: Host) -> list[int]:
        writer.submit(*[(store, Batch(hosts={host.host: host})) for store, host in zip(opened, hosts, strict=False)])
        assert writer.drain(30.0)
        return [store.reader.count_hosts() for store in opened]

    assert hand_over(*[Host("a")] * 4) == [1, 1, 1, 1]
    wrote = "SELECT DISTINCT CAST(xmin AS text) FROM hosts WHERE collection = :n"
    assert len(rows(shared.database.text, wrote, n=shared.number)) == 1
    assert "is refused" not in caplog.text
    taken = "UPDATE leases SET token = 'other:2' WHERE collection = :n AND shard = 2"
    rows(shared.database.text, taken, n=shared.number)
    refused = Host("b", crawl_delay="a text where a number has to be")
    assert hand_over(Host("b"), refused, Host("b"), Host("b")) == [2, 1, 1, 2]
    assert caplog.text.count("A row of the table hosts (numbers") == caplog.text.count("is refused and left out") == 1
    assert hand_over(*[Host("c")] * 4) == [3, 2, 1, 3]
    assert writer.close()
    assert writer.lost is None
