"""Bounds of the noisy-signals crawl value against Lemma 4 in 50-digit arithmetic."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlsched.crawl_value.bounds import element_bounds, noisy_bounds
from crawlsched.crawl_value.terms import noisy_terms
from tests.papers import oracle

# What rounding may take off a bound; the frontier leaves ten times as much.
ROUNDING = 1e-11
# How much higher than the value a bound may be.
HIGHEST = 1.0 / 6.0

rates = st.floats(-9.0, 1.0).map(lambda exponent: 10.0**exponent)
ratios = st.floats(-6.0, 5.0).map(lambda exponent: 10.0**exponent)  # gamma / alpha
weights = st.floats(-4.0, 1.5).map(lambda exponent: 10.0**exponent)  # kappa
shares = st.floats(-9.0, 1.5).map(lambda exponent: 10.0**exponent)  # y / kappa


@settings(max_examples=200, deadline=None)
@given(share=shares, alpha=rates, ratio=ratios, kappa=weights)
@example(share=1.0, alpha=1.0, ratio=6.0, kappa=0.7)
@example(share=2.5, alpha=1e-3, ratio=1e4, kappa=0.03)
def test_neither_the_value_nor_its_slope_exceeds_its_bound_and_the_value_comes_close(share, alpha, ratio, kappa):
    """Up to thirty announcements' worth, with rates and weights over many decades."""
    y, gamma = share * kappa, ratio * alpha
    value, slope = element_bounds(y, alpha, gamma, kappa)
    exact = oracle.general_value(0, mpmath.mpf(y), mpmath.mpf(alpha), mpmath.mpf(gamma), mpmath.mpf(kappa))
    interval = oracle.expected_interval(mpmath.mpf(y), mpmath.mpf(alpha), mpmath.mpf(gamma), mpmath.mpf(kappa))
    assert exact * (1 - ROUNDING) <= value <= exact * (1 + HIGHEST)
    assert slope >= float(mpmath.exp(-mpmath.mpf(y)) * interval) * (1 - ROUNDING)


@settings(max_examples=100, deadline=None)
@given(alpha=rates, ratio=ratios, kappa=weights, share=st.floats(1e-9, 1.0))
def test_while_two_announcements_are_enough_the_bound_is_the_value(alpha, ratio, kappa, share):
    """To 1e-10; of very rare or nearly worthless ones, while one is."""
    enough = 2.0 if ratio >= 0.01 and kappa >= 0.05 else 1.0
    y, gamma = share * enough * kappa, ratio * alpha
    exact = oracle.general_value(0, mpmath.mpf(y), mpmath.mpf(alpha), mpmath.mpf(gamma), mpmath.mpf(kappa))
    assert element_bounds(y, alpha, gamma, kappa)[0] <= exact * (1 + 1e-10)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_a_page_has_the_same_bounds_alone_and_among_others(seed):
    """By plain Python, which numba compiles, and by numpy."""
    rng = np.random.default_rng(seed)
    alpha, kappa = 10.0 ** rng.uniform(-9, 1, (8, 4)), 10.0 ** rng.uniform(-4, 1.5, (8, 1))
    gamma, y = 10.0 ** rng.uniform(-9, 1, (8, 1)), 10.0 ** rng.uniform(-8, 1.5, (8, 4))
    many = np.stack(noisy_bounds(y, alpha, gamma, kappa)[:2])
    columns = (np.broadcast_to(column, y.shape).ravel().tolist() for column in (y, alpha, gamma, kappa))
    alone = np.array([element_bounds(*of_one) for of_one in zip(*columns, strict=True)]).T.reshape(many.shape)
    assert many == pytest.approx(alone, rel=1e-11)
    value, slope = noisy_terms(*(np.broadcast_to(column, y.shape).ravel() for column in (y, alpha, gamma, kappa)))
    assert (many[0].ravel() >= value * (1 - ROUNDING)).all()
    assert (many[1].ravel() >= slope * (1 - 1e-9)).all()
