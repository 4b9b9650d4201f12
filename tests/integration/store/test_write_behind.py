"""The writing thread loses nothing: not when the disk is full, the file locked, the server gone, the process killed."""

import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from crawlsched.store import Batch, Store, WriteBehind
from crawlsched.store.database import Database
from tests.integration.store.locks import locked
from tests.rows import NOW, new_pages, observation
from tests.waiting import wait_until


def observations(first, n, page=0):
    return [observation(number, page) for number in range(first, first + n)]


def ids(store, page=0):
    return [row.id for row in store.reader.observations_of(page, limit=10**6)][::-1]


def test_many_batches_that_wait_cost_as_few_statements_as_one(store):
    """Each statement is a round trip to a server, and those that wait would be written ever more slowly."""
    writer, statements = WriteBehind(), []
    store.save(Batch(new_pages=new_pages(range(20))))

    def written(first, n):
        """Return how many statements write `n` batches that wait together."""
        with store.turn:  # the writing thread waits for its turn meanwhile
            writer.submit((store, Batch(observations=observations(first, 1))))
            time.sleep(0.1)
            for number in range(first + 1, first + 1 + n):
                contents = {number % 20: {"fingerprint": b"%d" % number}, 19: {"etag": f'"{number}"'}}
                writer.submit((store, Batch(contents=contents, observations=observations(number, 1))))
            statements.clear()
        assert writer.drain(10.0)
        return len(statements)

    event.listen(store.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    # SQLite's write 1, 2, 4 or 8 of these rows, and are no round trips.
    assert written(0, 15) <= written(100, 1) + (9 if store.database.is_sqlite else 0)
    assert writer.close()
    assert len(ids(store)) == 18


@given(
    batches=st.lists(
        st.dictionaries(
            st.integers(0, 2),
            st.dictionaries(
                st.sampled_from(["etag", "last_modified", "moved_to"]), st.text("ab", max_size=2), min_size=1
            ),
        ),
        max_size=6,
    )
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_batches_written_together_leave_what_they_leave_one_by_one(sqlite_store, batches):
    """Whatever columns each of them changes."""
    sqlite_store.save(Batch(new_pages=new_pages(range(3))))
    for batch in batches:
        sqlite_store.save(Batch(contents=batch))
    one_by_one = sqlite_store.reader.facts(range(3))
    writer = WriteBehind()
    with sqlite_store.turn:
        for batch in batches:
            writer.submit((sqlite_store, Batch(contents=batch)))
    assert writer.close()
    assert sqlite_store.reader.facts(range(3)) == one_by_one


def test_a_lock_of_another_process_is_waited_out(sqlite_url, monkeypatch, caplog):
    """Handing over takes no time meanwhile; one line in the log when it begins, one at its end, everything written."""
    monkeypatch.setitem(Database.__init__.__kwdefaults__, "busy_timeout", 0.1)
    store = Store.open(sqlite_url, "spider")
    writer = WriteBehind()
    with locked(store.database.text):
        writer.submit((store, Batch(since=NOW, observations=observations(0, 5))))
        wait_until(lambda: writer.failure)
        started = time.perf_counter()
        for number in range(5, 105):
            writer.submit((store, Batch(since=NOW + number, observations=observations(number, 1))))
        assert time.perf_counter() - started < 5.0  # the lock is waited for during 0.1 s each time
        assert writer.n_written == 0
        assert "another process holds the database locked" in writer.failure
        assert writer.oldest_unsaved_at == NOW
        assert not writer.drain(0.5)
    assert writer.drain(30)
    assert (writer.failure, writer.oldest_unsaved_at) == (None, None)
    assert ids(store) == list(range(105))
    lines = [record.message for record in caplog.records if record.name == "crawlsched.store"]
    assert len(lines) == 2
    assert "another process holds the database locked" in lines[0]
    assert "nothing is lost" in lines[1]
    assert writer.close()
    store.close()
