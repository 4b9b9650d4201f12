"""Columns that grow hold what they held, and large ones stay where they are."""

import mmap

import numpy as np
import pytest

from crawlsched.columns import growing
from crawlsched.columns.growing import grown, zeros
from crawlsched.columns.number_column import NumberColumn
from crawlsched.pages import Pages


@pytest.mark.parametrize("shape", [(10,), (3, 4), (2_000_000,), (100_000, 32)])
def test_a_longer_column_begins_with_what_there_was_and_ends_in_zeros(shape: tuple[int, ...]) -> None:
    """Small or large, of one dimension or two."""
    column = zeros(shape, np.float32)
    assert column.shape == shape
    assert not column.any()
    column[:] = values = np.random.default_rng(1).random(shape, np.float32)
    longer = grown(column, 2 * shape[0])
    assert (longer.shape, longer.dtype) == ((2 * shape[0], *shape[1:]), np.float32)
    assert (longer[: shape[0]] == values).all()
    assert not longer[shape[0] :].any()


def test_a_large_column_stays_where_it_is() -> None:
    """However often it grows within its room."""
    column = zeros((1_000_000,), np.float64)
    for size in range(1_100_000, 2_000_000, 100_000):
        longer = grown(column, size)
        assert np.shares_memory(longer, column)
        longer[-1] = size
        column = longer
    assert column[1_099_999] == 1_100_000


def test_where_the_room_ends_a_column_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it holds moves with it."""
    monkeypatch.setattr(growing, "_AHEAD", 2**23)
    column = zeros((2**20,), np.uint8)
    column[-1] = 7
    longer = grown(column, 2**24)
    assert not np.shares_memory(longer, column)
    assert longer[2**20 - 1] == 7


def test_a_part_of_a_column_grows_elsewhere() -> None:
    """What stands behind it in memory is not its own."""
    column = zeros((1_000_000,), np.float64)
    column[:] = 1.0
    longer = grown(column[:500_000], 600_000)
    assert not np.shares_memory(longer, column)
    assert longer.sum() == 500_000
    again = grown(column[:500_000], 1_000_000)
    again[:] = 5.0
    assert column.sum() == 1_000_000


def test_a_column_that_has_grown_already_does_not_share_what_came_with_that() -> None:
    """Of two that grow from the same column only the first stays."""
    column = zeros((1_000_000,), np.float64)
    first, second = grown(column, 1_200_000), grown(column, 1_200_000)
    first[1_100_000] = 5.0
    assert second[1_100_000] == 0.0


def test_where_no_addresses_are_left_columns_are_ordinary_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on addresses, as some machines have one, costs only copying."""

    class Refused(mmap.mmap):
        def __new__(cls, *arguments: object, **named: object) -> "Refused":
            raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(growing, "_Room", Refused)
    column = grown(zeros((200_000,), np.float64), 400_000)
    assert column.base is None
    assert column.size == 400_000


def arrays(pages: Pages) -> dict[str, np.ndarray]:
    """Return the arrays in which the columns of pages stand."""
    columns = {name: getattr(pages, name) for name in pages.names}
    return {name: column.low if isinstance(column, NumberColumn) else column for name, column in columns.items()}


def test_pages_stay_where_they_are_when_more_come() -> None:
    """A page more among two million moves no column."""
    pages = Pages(capacity=2_000_000)
    before = arrays(pages)
    pages.add(np.zeros(2_000_001, np.int32), now=1.0)
    assert pages.capacity > 2_000_000
    for name, column in arrays(pages).items():
        assert np.shares_memory(column, before[name]), name
