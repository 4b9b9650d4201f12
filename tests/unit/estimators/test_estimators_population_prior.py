"""The prior learned from the pages themselves: maximum of its likelihood, groups and slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.estimators import Posterior, learn_prior
from tests.inputs import tries

RATES = np.geomspace(1e-7, 1e-3, 16)


def population(rng, shares, n, visits=10, dtype=np.float64):
    """A posterior of n pages whose rates follow `shares` over RATES, visited at random intervals."""
    rates = RATES[rng.choice(RATES.size, size=n, p=shares)]
    posterior = Posterior(n, RATES, dtype=dtype)
    for number in range(visits):
        elapsed = 10.0 ** rng.uniform(3, 7, n)
        posterior.update(np.arange(n), elapsed, rng.random(n) < -np.expm1(-rates * elapsed), n_updates=number)
    return posterior


def evidence_of(log_likelihood, prior):
    """Mean log-likelihood of pages under a prior."""
    return np.log(np.exp(log_likelihood) @ prior).mean()


@given(seed=st.integers(0, 1000), iterations=st.integers(1, 5))
@tries(25)
def test_every_round_raises_the_likelihood(seed, iterations):
    """Expectation-maximisation never goes down (with the pseudo-page counted)."""
    rng = np.random.default_rng(seed)
    likelihood = np.log(rng.random((30, 6)))
    base = np.full(6, 1 / 6)

    def penalised(prior):
        return 30 * evidence_of(likelihood, prior) + base @ np.log(prior)

    before = learn_prior(likelihood, iterations=iterations)
    after = learn_prior(likelihood, iterations=iterations + 1)
    assert penalised(after) >= penalised(before) - 1e-12
    assert penalised(before) >= penalised(base) - 1e-12


def test_groups_are_learned_each_and_shrunk_towards_the_whole():
    """A large group finds its own distribution, a small one stays near the whole, an empty one is the whole."""
    rng = np.random.default_rng(2)
    slow, fast = np.zeros(16), np.zeros(16)
    slow[3], fast[11] = 1, 1
    likelihood = np.concatenate([population(rng, shares, 3000).log_likelihood() for shares in (slow, fast)])
    groups = np.repeat([0, 1], 3000)
    groups[3000] = 2  # a single fast page
    shuffled = rng.permutation(6000)
    found = learn_prior(likelihood[shuffled], groups[shuffled], n_groups=4)
    whole = learn_prior(likelihood[shuffled])
    assert found.shape == (4, 16)
    assert found.sum(axis=1) == pytest.approx(1)
    assert found[0, :7].sum() > 0.98
    assert found[1, 8:].sum() > 0.98
    assert found[3] == pytest.approx(whole)
    assert abs(found[2] - whole).sum() < 0.2
    assert found[2, 8:].sum() > whole[8:].sum()


def test_each_group_may_have_its_own_parent():
    """With a row per group, path patterns shrink towards their site."""
    likelihood = np.zeros((2, 3))  # nothing learned: each group is its parent
    parents = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    assert learn_prior(likelihood, [1, 0], parents) == pytest.approx(parents)


def test_compact_rows_and_many_slices_give_the_same():
    """Rows of uint8 and of float64, in one slice or in several, differ by rounding only."""
    two_humps = np.where(np.arange(16) == 3, 0.7, np.where(np.arange(16) == 11, 0.3, 0.0))
    posterior = population(np.random.default_rng(4), two_humps, 20_000, visits=3, dtype=np.uint8)
    stored, nats = posterior.codes(20_000), posterior.log_likelihood()
    found = learn_prior(stored, iterations=5)
    assert found == pytest.approx(learn_prior(nats, iterations=5), rel=1e-9)
    likelihood, by_hand = np.exp(nats), np.full(16, 1 / 16)
    for _ in range(5):
        joint = likelihood * by_hand
        joint /= joint.sum(axis=1, keepdims=True)
        by_hand = (joint.sum(axis=0) + 1 / 16) / 20_001
    assert found == pytest.approx(by_hand, rel=1e-9)
    groups = np.arange(20_000) % 3
    assert learn_prior(stored, groups, iterations=5) == pytest.approx(learn_prior(nats, groups, iterations=5), rel=1e-9)


def test_a_population_without_pages_is_the_prior():
    """Before the first page there is nothing but the start."""
    assert learn_prior(np.zeros((0, 4))).tolist() == [0.25] * 4
    assert learn_prior(np.zeros((0, 2)), np.zeros(0, dtype=int), [0.3, 0.7], n_groups=2).tolist() == [[0.3, 0.7]] * 2
