"""What expected freshness promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.freshness import expected_freshness, page_freshness
from tests.papers import bandwidth_oracle

RATES = st.floats(1e-12, 1e12)


@given(rate=RATES, change_rate=RATES)
def test_it_is_the_papers_formula(rate, change_rate):
    """The freshness of a page agrees with G(xi; 1, Delta) of problem (5) in 50 digits."""
    exact = bandwidth_oracle.freshness(rate, change_rate)
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1.0], [1.0]), r"rates contains -1.0; every rates must be finite and 0 or more."),
        (([1.0], [float("nan")]), r"change_rate contains nan; every change_rate must be finite and 0 or more."),
        (([1.0], [1.0], [float("inf")]), r"importance contains inf; every importance must be finite and 0 or more."),
        (([1.0], [1.0], [0.0]), r"importance is 0 for every page; at least one page must matter."),
        (([1.0, 2.0], [1.0, 2.0, 3.0]), r"rates has the shape \(2,\) and change_rate has \(3,\); pass one entry"),
        (([1.0], [1.0, 2.0], [1.0, 2.0, 3.0]), r"importance has the shape \(3,\) but rates and change_rate have \(2,"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    """A wrong argument raises ValueError with one sentence that says what is allowed."""
    with pytest.raises(ValueError, match=message):
        expected_freshness(*arguments)
