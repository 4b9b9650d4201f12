"""One running process owns a collection: a second is refused, and a dead one is replaced."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crawlsched.exceptions import CollectionInUse, DatabaseReplaced
from crawlsched.store import Batch, Host, WriteBehind
from crawlsched.store.lease import process_start
from tests import children
from tests.databases import rows
from tests.waiting import wait_until

NOW = 1.7e9

TAKES = """
import sys
from crawlsched.exceptions import CollectionInUse
from crawlsched.store import Store
store = Store.open(sys.argv[1], "spider")
sys.stdin.read(1)
try:
    store.take_lease("news", float(sys.argv[2]))
    print("taken", flush=True)
except CollectionInUse:
    print("refused", flush=True)
sys.stdin.read()
"""


def start(url, now=NOW):
    """Start a process that takes the collection when it is told to."""
    return children.start(*(sys.executable, "-c", TAKES, url, str(now)), stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def told_to_take(process) -> str:
    process.stdin.write("x")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.fixture
def owner(store):
    """Start a process that owns the collection."""
    with start(store.database.text) as process:
        assert told_to_take(process) == "taken"
        yield process
        process.stdin.close()


def test_a_second_start_says_who_owns_the_collection(store, owner):
    """Host, pid, spider, since when, last heartbeat, and what to do."""
    with pytest.raises(CollectionInUse) as raised:
        store.take_lease("news", NOW + 5)
    assert str(raised.value).startswith(
        f"The collection 'spider' is owned by another running process: pid {owner.pid} on host "
    )
    at = "2023-11-14 22:13:20 UTC"
    for part in ("spider 'news'", f"since {at}", f"last heartbeat {at}", "CRAWLSCHED_COLL"):
        assert part in str(raised.value)
    assert store.lease is None


@pytest.mark.parametrize("passed", [1.0, -86_400.0])
def test_a_process_that_was_killed_is_replaced_at_once(store, owner, passed):
    """After kill -9 the lease is left with a heartbeat of a moment ago, or of tomorrow, if the clock was put right."""
    owner.kill()
    owner.wait()
    lease = store.take_lease("news", NOW + passed)
    assert store.owner().pid == os.getpid()
    assert lease.heartbeat(NOW + passed + 1, {})


def test_the_lease_of_a_stopped_process_is_taken_over(store, owner):
    """Half a minute of silence of one that was stopped (SIGSTOP); when it goes on it has to stop for good."""
    first = store.owner()
    owner.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
    try:
        with pytest.raises(CollectionInUse):
            store.take_lease("news", NOW + 29)
        store.take_lease("news", NOW + 31)
    finally:
        owner.send_signal(signal.SIGCONT)
    assert store.owner().token != first.token


@pytest.mark.parametrize(
    ("is_so", "held"),
    [
        # The clock was put right, or the machine slept: the process itself is asked after.
        ("spider = 'news'", {-86_400.0: True, 31.0: True, 3600.0: True, 30 * 86_400.0: True}),
        # Another process lives that was given the pid of the owner.
        ("process_started = '12345'", {1.0: False}),
        # A pid means nothing elsewhere.
        ("machine = 'elsewhere', pid = 4194305", {29.0: True, 31.0: False}),
    ],
)
def test_a_lease_is_held_by_who_lives_or_for_half_a_minute_where_nobody_can_tell(store, is_so, held):
    """Whatever a clock says; a heartbeat is a word for so long."""
    store.take_lease("news", NOW)
    assert process_start(store.owner().pid) == store.owner().process_started
    rows(store.database.text, f"UPDATE leases SET {is_so}")
    assert {passed: store.owner().is_held(NOW + passed) for passed in held} == held


def test_without_a_time_the_clock_of_the_database_counts(store):
    """It is the one thing that all machines which share a database have in common."""
    lease = store.take_lease("news")
    rows(store.database.text, "UPDATE leases SET machine = 'elsewhere'")
    assert store.owner().is_held(store.clock())
    assert abs(store.clock() - time.time()) < 5.0
    rows(store.database.text, "UPDATE leases SET heartbeat_at = heartbeat_at - 31")
    assert not store.owner().is_held(store.clock())
    assert lease.heartbeat(None, {})
    assert store.owner().is_held(store.clock())


def test_what_the_next_run_has_to_know_survives_a_run_without_heartbeat(store):
    """When the last request was sent, and a pause: also if the run in between is killed before it says anything."""
    lease = store.take_lease("news", NOW)
    lease.heartbeat(NOW, {"last_sent_at": NOW - 5.0, "paused_since": NOW - 9.0, "bandwidth": 1.0})
    for _ in range(2):
        rows(store.database.text, "UPDATE leases SET released_at = 1")
        lease = store.take_lease("news", NOW)
        assert lease.notes == {"last_sent_at": NOW - 5.0, "paused_since": NOW - 9.0}


@pytest.mark.parametrize("event", ["deleted", "replaced"])
def test_a_file_that_is_deleted_or_replaced_is_noticed_by_the_next_heartbeat(sqlite_store, tmp_path, event):
    """SQLite itself would go on writing to a file that has no name any more."""
    lease = sqlite_store.take_lease("news")
    assert lease.heartbeat(None, {})
    path = Path(sqlite_store.database.url.database)
    if event == "replaced":
        shutil.copy(path, tmp_path / "copy")
        (tmp_path / "copy").replace(path)
    else:
        path.unlink()
    with pytest.raises(DatabaseReplaced, match=f"was {event}.* start the crawl again"):
        lease.heartbeat(None, {})


def test_the_loser_of_a_lease_is_told_and_writes_nothing_more(store, beside):
    """Its next heartbeat gives False, its next batch is refused whole, and its writing thread stops and says why."""
    lease = store.take_lease("news", NOW)
    assert lease.heartbeat(NOW + 1, {})
    other = beside()
    rows(store.database.text, "UPDATE leases SET released_at = 1")
    other.take_lease("news", NOW + 60)
    assert not lease.heartbeat(NOW + 61, {})
    with pytest.raises(CollectionInUse, match="was taken over by another process, and nothing more is written by this"):
        store.save(Batch(hosts={"a": Host("a")}))
    writer = WriteBehind()
    writer.submit((store, Batch(hosts={"a": Host("a")})))
    wait_until(lambda: writer.lost)
    assert "taken over by another process" in writer.lost
    assert not writer.drain(30)
    assert not writer.close()
    assert store.reader.hosts() == []
    lease.release(NOW + 62)  # changes nothing: it is not its own
    assert other.owner().released_at is None
    other.save(Batch(hosts={"a": Host("a")}))


def test_a_zombie_is_dead():
    """A process that has ended but was not waited for owns nothing any more."""
    process = children.start(sys.executable, "-c", "")
    wait_until(lambda: process_start(process.pid) is None)
    process.wait()


def test_a_released_lease_is_free_and_still_tells_its_last_status(store):
    """After an orderly end the next start needs no waiting, and `status` can show what was."""
    assert store.owner() is None
    lease = store.take_lease("news", NOW)
    lease.heartbeat(NOW + 5, {"bandwidth": 5.0, "freshness": 0.9})
    lease.release(NOW + 6)
    row = store.owner()
    assert (row.spider, row.started_at, row.released_at) == ("news", NOW, NOW + 6)
    assert row.status == {"bandwidth": 5.0, "freshness": 0.9}
    assert not row.is_held(NOW + 6)
    store.take_lease("news", NOW + 6)
    assert store.owner().is_held(NOW + 6)


def test_of_several_that_start_at_once_one_wins(store):
    """No two processes own a collection, however close together they ask."""
    processes = [start(store.database.text) for _ in range(4)]
    for process in processes:
        process.stdin.write("x")
        process.stdin.flush()
    said = [process.stdout.readline().strip() for process in processes]
    for process in processes:
        process.communicate(timeout=30)
    assert sorted(said) == ["refused"] * 3 + ["taken"]
