"""Count columns: what an array of uint32 holds, in half of its memory as long as counts are small."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlsched.count_column import CountColumn
from crawlsched.pages import Pages

N = 6
numbers = st.one_of(st.integers(0, 3), st.integers(65_533, 65_538), st.integers(0, 2**32 - 1))
steps = st.one_of(
    st.tuples(
        st.just("set"), st.lists(st.tuples(st.integers(0, N - 1), numbers), max_size=N, unique_by=lambda x: x[0])
    ),
    st.tuples(st.just("all"), numbers),
    st.tuples(st.just("add_one"), st.integers(0, N - 1)),
    st.tuples(st.just("again"), st.none()),
)


@settings(max_examples=200)
@given(st.lists(steps, max_size=12))
def test_a_count_column_reads_as_an_array_of_uint32_would(history):
    """Whatever is written to it, by rows, to all, or one more, and also after it was kept and restored."""
    column, array = CountColumn(), np.zeros(N, np.uint32)
    column.lengthen(N)
    for step, given_ in history:
        if step == "set":
            rows, values = [row for row, _ in given_], np.array([value for _, value in given_], np.uint32)
            column[rows], array[rows] = values, values
        elif step == "all":
            column[:], array[:] = given_, given_
        elif step == "add_one":
            column.add_one(given_)
            array[given_] += np.uint32(1)
        else:
            kept = {name: part.copy() for name, part in column.everything("n", N).items()}
            column = CountColumn()
            column.restore("n", kept)
        assert np.array_equal(column[:], array)
        assert [column.item(row) for row in range(N)] == array.tolist()
        assert column[array > 2].tolist() == array[array > 2].tolist()
    column.lengthen(2 * N)
    assert column[:].tolist() == [*array.tolist(), *[0] * N]


def test_small_counts_take_two_bytes_a_page():
    """The half for what goes beyond 65,535 is made when the first count does."""
    pages = Pages()
    pages.add(0, 0.0, n=3)
    pages.n_crawls[:3] = 65_535
    assert set(pages.n_crawls.everything("n_crawls", 3)) == {"n_crawls"}
    pages.n_crawls.add_one(1)
    assert pages.n_crawls[:3].tolist() == [65_535, 65_536, 65_535]
    assert pages.n_crawls.high.size == pages.capacity


def test_pages_keep_counts_beyond_65535_when_they_grow_and_when_they_are_restored():
    """A page that is visited every minute gets there in six weeks."""
    pages = Pages(capacity=2)
    pages.add(0, 0.0, n=2)
    pages.n_crawls[1] = pages.n_signals_total[0] = 1_000_000
    pages.add(0, 0.0, n=500)
    assert (pages.n_crawls.item(1), pages.n_signals_total.item(0)) == (1_000_000, 1_000_000)
    again = Pages()
    again.restore({name: column.copy() for name, column in pages.everything().items()})
    assert again.n_crawls[:3].tolist() == [0, 1_000_000, 0]
    again.free(np.array([1]))
    assert again.n_crawls.item(1) == 0
