"""Columns: growing ones stay where they are, and those of small numbers take half of the memory."""

import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.columns import growing
from crawlsched.columns.growing import NumberColumn, grown, zeros
from tests.inputs import tries


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


N = 6
above = st.one_of(st.integers(0, 3), st.integers(65_533, 65_538), st.integers(0, 2**31 - 2))
steps = st.one_of(
    st.tuples(st.just("some"), st.lists(st.tuples(st.integers(0, N - 1), above), max_size=N, unique_by=lambda x: x[0])),
    st.tuples(st.just("all"), above),
    st.tuples(st.just("one"), st.tuples(st.integers(0, N - 1), above)),
)


@tries(200)
@given(history=st.lists(steps, max_size=12), kind=st.sampled_from([(np.uint32, 0), (np.int32, -1)]))
def test_a_number_column_reads_as_an_array_would(history: list[Any], kind: tuple[Any, int]) -> None:
    """Whatever is written to it, by rows, to all, or to one."""
    dtype, empty = kind
    column, array = NumberColumn(dtype, empty), np.full(N, empty, dtype)
    column.lengthen(N)
    for step, what in history:
        if step == "some":
            rows, values = [row for row, _ in what], np.array([value + empty for _, value in what], dtype)
            column[rows], array[rows] = values, values
        elif step == "all":
            column[:], array[:] = what + empty, what + empty
        else:
            column[what[0]] = array[what[0]] = what[1] + empty
        assert np.array_equal(column[:], array)
        assert column[:].dtype == dtype
        assert [column.item(row) for row in range(N)] == array.tolist()
        assert [int(column[row]) for row in range(N)] == array.tolist()
        assert column[array > 2].tolist() == array[array > 2].tolist()
    column.lengthen(2 * N)
    assert column[:].tolist() == [*array.tolist(), *[empty] * N]
