"""What expected freshness promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.freshness import expected_freshness, page_freshness
from tests.papers import oracle

RATES = st.floats(1e-12, 1e12)


@given(rate=RATES, change_rate=RATES)
def test_it_is_the_papers_formula(rate, change_rate):
    """The freshness of a page agrees with G(xi; 1, Delta) of problem (5) in 50 digits."""
    exact = oracle.freshness(rate, change_rate)
    assert page_freshness(rate, change_rate) == pytest.approx(float(exact), rel=1e-14)


def test_a_page_never_crawled_is_never_fresh():
    """The limit of no crawls is 0."""
    assert page_freshness(0.0, 1.0) == 0.0
    assert page_freshness(1e-300, 1e300) == 0.0


def test_a_page_that_never_changes_is_always_fresh():
    """The limit of no changes is 1, even without a crawl."""
    np.testing.assert_array_equal(page_freshness([0.0, 1e-300, 1.0], 0.0), 1.0)


def test_importance_weighs_the_mean():
    """The mean over pages is weighted; only ratios of importances matter, however large they are."""
    fresh = page_freshness([1.0, 0.5], [1.0, 2.0])
    expected = (3.0 * fresh[0] + fresh[1]) / 4.0
    assert expected_freshness([1.0, 0.5], [1.0, 2.0], [3.0, 1.0]) == pytest.approx(expected, rel=1e-15)
    assert expected_freshness([1.0, 0.5], [1.0, 2.0], [3e307, 1e307]) == pytest.approx(expected, rel=1e-15)
    assert expected_freshness([1.0, 0.5], [1.0, 2.0]) == pytest.approx(fresh.mean(), rel=1e-15)
