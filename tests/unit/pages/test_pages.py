"""Pages: columns that grow, rows that are given out once."""

import numpy as np
import pytest

from crawlsched.columns.growing import NumberColumn
from crawlsched.pages import FREE, NEW, Pages
from crawlsched.planner import Planner


def test_rows_are_given_out_in_order_and_never_twice() -> None:
    """A forgotten page's number is not used again."""
    pages = Pages(capacity=2)
    assert pages.add(0, now=5.0, n=3).tolist() == [0, 1, 2]
    pages.free(np.array([2]))
    assert pages.add([7, 8], now=6.0, importance=[1.0, 2.0]).tolist() == [3, 4]
    assert pages.state[:5].tolist() == [NEW, NEW, FREE, NEW, NEW]
    assert len(pages) == 4
    assert pages.n == 5


def test_columns_keep_what_they_hold_while_they_grow() -> None:
    """Growing copies every column, and new rows hold what an unknown page holds."""
    pages = Pages(capacity=1)
    first = pages.add(3, now=5.0, importance=0.5)
    pages.n_signals_total[first] = 9
    for _ in range(200):
        pages.add(1, now=6.0, n=10)
    assert (pages.host[0], pages.n_signals_total[0], pages.importance[0]) == (3, 9, 0.5)
    last = pages.n - 1
    assert (pages.crawled_at[last], pages.first_seen[last], pages.source[last]) == (-np.inf, 6.0, -1)
    assert np.isnan(pages.columns(np.array([last]))["signalled_since"]).all()


def test_a_row_takes_few_bytes() -> None:
    """All columns together take 67 bytes a page, and 26 of them only where something is written there."""
    pages = Pages()
    columns = [getattr(pages, name) for name in Pages.names]
    assert sum(2 if isinstance(column, NumberColumn) else column.itemsize for column in columns) == 67


def test_a_visit_that_reaches_a_page_ends_its_wait() -> None:
    """And its errors in a row; a forgotten page has neither, nor a source."""
    pages = Pages()
    pages.add(0, now=3.0, n=3)
    pages.not_before[:3], pages.n_errors[:3], pages.signalled_since[:3] = 9.0, 2, 5.0
    pages.reached(0)
    pages.free(np.array([1]))
    assert pages.not_before[:3].tolist() == [0.0, 0.0, 9.0]
    assert pages.n_errors[:3].tolist() == [0, 0, 2]
    assert pages.first_seen[:3].tolist() == [3.0, 0.0, 3.0]
    np.testing.assert_array_equal(pages.columns(np.arange(3))["signalled_since"], [5.0, np.nan, 5.0])


def test_of_a_page_that_was_crawled_it_is_not_kept_when_it_was_first_seen() -> None:
    """Only the deadline of a page never crawled depends on that; a store has it of all."""
    planner = Planner(bandwidth=1.0)
    columns = {"crawled_at": np.array([-np.inf, 5.0]), "first_seen": np.array([1.0, 1.0]), "state": np.array([1, 2])}
    planner.load({"page": np.arange(2), "importance": np.ones(2), **columns}, None, 6.0)
    assert planner.pages.first_seen[:2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("importance", [-1.0, np.nan, np.inf, 1e39])
def test_an_impossible_importance_is_refused(importance: float) -> None:
    """The message names argument, bounds and value, and no page is added."""
    pages = Pages()
    with pytest.raises(ValueError, match="importance must be a weight that is not negative and at most 3e38, got"):
        pages.add(0, now=0.0, importance=importance)
    assert pages.n == 0
