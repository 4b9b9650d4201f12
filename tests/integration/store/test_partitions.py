"""In PostgreSQL the observations of a day are a table; what is too old goes with it, and nothing is ever refused."""

import pytest
from sqlalchemy import text

from crawlsched.store import Batch, ObservationRow, Store, schema

DAY = 86_400.0
# Far behind the tables that an upgrade of today leaves.
NOON = 4_102_444_800.0 + DAY / 2


def seen(id: int, time: float) -> ObservationRow:
    return ObservationRow(id, 0, time, 60.0, 0, -1, True, "changed")


def found(store: Store) -> dict[int, str]:
    """By id, the table in which each observation of any collection is."""
    with store.database.reading() as connection:
        rows = connection.execute(text("SELECT id, tableoid::regclass::text AS name FROM observations ORDER BY id"))
        return {row.id: row.name for row in rows}


@pytest.fixture
def store(postgresql_url):
    opened = Store.open(postgresql_url, "spider", upgrade=True)
    yield opened
    opened.close()


def test_a_plan_makes_the_tables_of_the_next_days_and_what_has_none_is_kept_all_the_same(store) -> None:
    """Each observation is in the table of its day, in UTC."""
    store.save(Batch(observations=[seen(1, NOON - 10 * DAY)]))
    store.plans.save({}, NOON)
    store.plans.save({}, NOON)
    store.save(Batch(observations=[seen(2, NOON), seen(3, NOON + 3 * DAY), seen(4, NOON + 9 * DAY)]))
    names = ["observations_default", "observations_21000101", "observations_21000104", "observations_default"]
    assert found(store) == dict(enumerate(names, 1))
    store.plans.save({}, NOON + 9 * DAY)  # that day has a row where it fits nowhere, and stays there
    store.save(Batch(observations=[seen(5, NOON + 9 * DAY), seen(6, NOON + 10 * DAY)]))
    assert [found(store)[id] for id in (4, 5, 6)] == ["observations_default"] * 2 + ["observations_21000111"]
    assert schema.differences(store.database.text) == []


def test_a_day_that_is_too_old_is_dropped_when_no_collection_wants_it_any_more(store) -> None:
    """Until then each deletes its own rows, and what is younger stays to the end of its day."""
    other = Store.open(store.database.text, "other")
    for each in (store, other):
        each.plans.save({}, NOON)
        each.save(Batch(observations=[seen(each.key[1], NOON), seen(10 + each.key[1], NOON + DAY)]))

    def tables() -> set[str]:
        with store.database.reading() as connection:
            named = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^observations_[0-9]+$'"
            return set(connection.execute(text(named)).scalars())

    assert store.forgetting.prune(NOON + DAY) == 1  # its row of the first day; that of the second day is not a day over
    assert (set(found(store)), "observations_21000101" in tables()) == ({2, 11, 12}, True)
    assert other.forgetting.prune(NOON + DAY) == 0
    assert (set(found(store)), "observations_21000101" in tables()) == ({11, 12}, False)
    other.close()
