"""Rare facts: rows that pages share, read and set as if they were columns."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.pages import Pages
from crawlsched.pages.rare_facts import Facts, RareFacts
from crawlsched.planner import Planner

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


def test_of_a_page_that_was_crawled_it_is_not_kept_when_it_was_first_seen() -> None:
    """Unless it is new, only the deadline of a page never crawled depends on that; a store has it of all."""
    planner = Planner(bandwidth=1.0)
    columns = {"crawled_at": np.array([-np.inf, 5.0]), "first_seen": np.array([1.0, 1.0]), "state": np.array([1, 2])}
    planner.load({"page": np.arange(2), "importance": np.ones(2), **columns}, None, 6.0)
    np.testing.assert_array_equal(planner.pages.first_seen[:2], [1.0, np.nan])
    assert planner.pages.rare[1] == 0


def test_more_different_facts_than_are_remembered_are_kept_apart() -> None:
    """What is forgotten of facts given before only costs a row."""
    rare = RareFacts()
    rows = [rare.give(Facts(not_before=1.0 + n)) for n in range(5_000)]
    assert len(set(rows)) == 5_000
    again = [rare.give(Facts(not_before=1.0 + n)) for n in range(5_000)]
    assert [rare.facts(row).not_before for row in again] == [1.0 + n for n in range(5_000)]
    rare.take_back(np.array(rows + again))
    assert len(rare) == 0
