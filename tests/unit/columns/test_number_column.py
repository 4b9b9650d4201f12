"""Number columns: what an array of four bytes a page holds, in half of its memory as long as numbers are small."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.columns.growing import NumberColumn
from tests.inputs import tries

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
