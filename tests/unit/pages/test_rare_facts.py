"""Rare facts: rows that pages share, read and set as if they were columns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.pages import Pages
from crawlsched.pages.rare_facts import Facts

NAMES = Facts._fields
values = st.sampled_from([np.nan, 0.0, 5.0, 7.5])
changes = st.lists(
    st.one_of(
        st.tuples(st.just("one"), st.integers(0, 7), st.sampled_from(NAMES[:3]), values),
        st.tuples(st.just("many"), st.sets(st.integers(0, 7)), st.sampled_from(NAMES[:3]), values),
        st.tuples(st.just("reached"), st.integers(0, 7)),
        st.tuples(st.just("error"), st.integers(0, 7), st.integers(0, 255)),
        st.tuples(st.just("free"), st.sets(st.integers(0, 7))),
    ),
    max_size=30,
)


@given(changes)
def test_pages_read_what_was_set_for_them_however_rows_are_shared(history: list[tuple]) -> None:
    """Against plain columns, through every way to change; each row has as many users as there are pages with it."""
    pages = Pages()
    rows = pages.add(0, now=3.0, n=8)
    plain = {"signalled_since": [np.nan] * 8, "first_seen": [3.0] * 8, "not_before": [0.0] * 8, "n_errors": [0] * 8}
    for what, who, *more in history:
        of = sorted(who) if isinstance(who, set) else [who]
        if what == "one":
            pages.set_rare(who, **{more[0]: more[1]})
        elif what == "many":
            getattr(pages, more[0])[np.array(of, np.intp)] = more[1]
        elif what == "reached":
            pages.reached(who)
            more = ["first_seen", np.nan]
            plain["not_before"][who], plain["n_errors"][who] = 0.0, 0
        elif what == "error":
            pages.set_rare(who, n_errors=more[0])
            more = ["n_errors", more[0]]
        else:
            pages.free(np.array(of, np.intp))
            for page in of:
                for name, empty in Facts()._asdict().items():
                    plain[name][page] = empty
            more = ["n_errors", 0]
        for page in of:
            plain[more[0]][page] = more[1]
        for name in NAMES:
            np.testing.assert_array_equal(getattr(pages, name)[rows], plain[name], err_msg=name)
            np.testing.assert_array_equal(getattr(pages, name).item(0), plain[name][0])
        used = pages.rare[rows]
        rare = pages.rare_facts
        assert len(rare) == np.unique(used[used > 0]).size
        assert rare._users[: rare._n].sum() == np.count_nonzero(used)


def test_pages_found_at_once_share_a_row() -> None:
    """And those that a source names at once do, too: facts that many share cost next to nothing."""
    pages = Pages()
    rows = pages.add(0, now=3.0, n=100_000)
    pages.signalled_since[rows[:50_000]] = 7.0
    assert len(pages.rare_facts) == 2
    assert pages.signalled_since[[0, 50_000]].tolist()[0] == 7.0
    assert pages.first_seen[rows].tolist() == [3.0] * 100_000
