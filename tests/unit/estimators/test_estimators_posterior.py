"""The gridded posterior: Bayes' rule exactly, compactly, page by page and forgetting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.estimators import DEFAULT_RATES, DEFAULT_RATES_ID, Posterior, grid_id
from crawlsched.estimators.probabilities import rate_quantile
from tests.inputs import tries

DAY = 86_400.0
all_kinds = pytest.mark.parametrize("dtype", [np.float64, np.uint8], ids=["exact", "8 bits"])

visits = st.lists(
    st.tuples(
        st.floats(0, 8).map(lambda log: 10.0**log),
        st.booleans(),
        st.one_of(st.just(0.0), st.floats(0, 50), st.just(np.inf)),
    ),
    min_size=1,
    max_size=30,
)


# One for each of three pages; in powers of two, so that making them add up to 1 changes nothing.
PRIORS = np.repeat([[3 / 64, 1 / 64], [1 / 64, 3 / 64], [1 / 32, 1 / 32]], 16, axis=1)


def bayes(rates, prior, history):
    """Prior times the probability of each visit, normalised at every step; what is in doubt may have changed."""
    weights = np.array(prior, dtype=float) / np.sum(prior)
    for elapsed, changed, evidence, doubt in history:
        fresh = np.exp(-rates * elapsed - evidence)
        weights = weights * (1 - fresh) if changed else weights * (doubt + (1 - doubt) * fresh)
        weights = weights / weights.sum()
    return weights


@given(history=visits, doubt=st.sampled_from([0.0, 0.05, 0.6]))
@tries(60)
def test_weights_are_bayes_rule(history, doubt):
    """Prior times likelihood of every visit, announcements and doubt included; a later prior is as good."""
    rates = np.array([1e-6, 1e-5, 3e-5, 1e-4])
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    posterior, told_later = Posterior(2, rates, prior=prior), Posterior(2, rates)
    seen = [
        (min(elapsed, 1e5), changed, evidence if changed else min(evidence, 50.0))
        for elapsed, changed, evidence in history
    ]
    for visit in seen:
        for one in (posterior, told_later):
            one.update_one(1, *visit, doubt=0.0 if visit[1] else doubt)
    expected = bayes(rates, prior, [(*visit, doubt) for visit in seen])
    assert posterior.weights(1) == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert posterior.change_rate(1) == pytest.approx(expected @ rates, rel=1e-7)
    assert posterior.weights(0) == pytest.approx(prior)
    assert np.array_equal(told_later.weights(1, prior), posterior.weights(1))


@all_kinds
@given(
    history=visits,
    renewal=st.sampled_from([0.0, 0.01]),
)
@tries(60)
def test_one_page_at_a_time_is_exactly_the_same(dtype, history, renewal):
    """update_one is update, to the last bit, with or without renewal, with a prior of its own for each page."""
    arrays, single = (Posterior(4, dtype=dtype, renewal=renewal) for _ in range(2))
    for n, (elapsed, changed, evidence) in enumerate(history):
        seen = [(3, elapsed, changed), (1, elapsed / 7, not changed), (2, elapsed, changed)]
        arrays.update(*zip(*seen, strict=True), evidence=evidence, prior=PRIORS, n_updates=n)
        for visit, prior in zip(seen, PRIORS, strict=True):
            single.update_one(*visit, evidence, prior=prior, n_updates=n)
    assert np.array_equal(arrays.log_likelihood(), single.log_likelihood())
    assert np.array_equal(arrays.weights([1, 2, 3])[1], arrays.weights(2))


@all_kinds
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), n=st.integers(1, 700))
@tries(40)
def test_it_never_matters_when_what_was_learned_is_read(dtype, data, seed, n):
    """Visits that are learned from together, hundreds at most, teach to the last bit what each by itself teaches."""
    rng, n_pages = np.random.default_rng(seed), data.draw(st.sampled_from([3, 1000]))
    read_rarely, read_always = (Posterior(n_pages, dtype=dtype, renewal=0.01) for _ in range(2))
    for count, page in enumerate(rng.integers(0, n_pages, n).tolist()):
        elapsed, evidence = 10.0 ** rng.uniform(0, 8), rng.choice([0.0, 0.7, np.inf])
        visit = page, elapsed, bool(rng.random() < 0.5), evidence
        dated = elapsed / 2 if rng.random() < 0.02 else None
        for posterior in (read_rarely, read_always):
            posterior.update_one(
                *visit, doubt=0.1 * (page == 0), time_since_modified=dated, prior=PRIORS[page % 3], n_updates=count
            )
        read_always.change_rate(page)
    assert np.array_equal(read_rarely.log_likelihood(), read_always.log_likelihood())


def test_a_row_that_is_set_has_no_part_of_a_visit_before():
    """Nor do new rows change what visits have taught."""
    posterior, other = Posterior(2), Posterior(2)
    for page in (0, 1):
        posterior.update_one(page, DAY, True)
    posterior.resize(3)
    posterior.rows_from_bytes([0], other.rows_to_bytes([0]))
    other.update_one(1, DAY, True)
    assert np.array_equal(posterior.weights([0, 1]), other.weights())

    posterior, other = (Posterior(1, dtype=np.uint8) for _ in range(2))
    posterior.update_one(0, DAY, True)
    posterior.unpack([0], other.packed([0]))
    assert np.array_equal(posterior.weights(), other.weights())


@pytest.mark.parametrize("n_visits", [3, 30, 300])
def test_eight_bits_leave_rates_and_weights_where_they_are(n_visits):
    """Rates learned in 8 bits differ by 4 % and 0.1 % on average, far less than what the visits leave open."""
    rng = np.random.default_rng(n_visits)
    n = 1000
    true = np.exp(rng.uniform(np.log(1e-6), np.log(1e-4), n))
    exact, compact = (Posterior(n, dtype=dtype, renewal=0.003) for dtype in (np.float64, np.uint8))
    for number in range(n_visits):
        elapsed = rng.exponential(1e5, n)
        changed = rng.random(n) < -np.expm1(-true * elapsed)
        for posterior in (exact, compact):
            posterior.update(np.arange(n), elapsed, changed, n_updates=number)
    off = np.log(compact.change_rate() / exact.change_rate())
    assert off.std() < 0.04
    assert abs(off.mean()) < 0.001 + 3 * off.std() / np.sqrt(n)
    assert off.std() < np.log(exact.change_rate() / true).std() / 4
    assert abs(compact.weights() - exact.weights()).sum(axis=1).mean() / 2 < 0.02


def test_what_is_remembered_against_a_rate_is_32_nats():
    """However long a rate was contradicted, evidence of 32 nats for it makes it as likely as any."""
    compact = Posterior(1, [1 / DAY, 100 / DAY], dtype=np.uint8)
    for n in range(1000):
        compact.update_one(0, DAY, False, n_updates=n)
    assert compact.log_likelihood(0).tolist() == [0.0, -65535 / 2048]
    for n in range(80):  # each tells the faster rate by log(1 / (1 - 1/e)) = 0.459 nats
        compact.update_one(0, DAY, True, n_updates=1000 + n)
    assert compact.change_rate(0) > 90 / DAY


@pytest.mark.parametrize("elapsed", [1.0, 60.0, 777.0])
def test_thousands_of_tiny_updates_sum_up_right_on_average_in_eight_bits(elapsed):
    """Steps are coarser, so what is left is a walk; over 200 pages its mean is 0 within its error."""
    n, pages = 3_000, np.arange(200)
    compact = Posterior(pages.size, dtype=np.uint8)
    for number in range(n):
        compact.update(pages, elapsed, np.zeros(pages.size, bool), n_updates=number)
    right = -(DEFAULT_RATES - DEFAULT_RATES[0]) * elapsed * n
    off = (compact.log_likelihood() - right)[:, right > -31]
    assert (abs(off.mean(axis=0)) < 4 * off.std(axis=0) / np.sqrt(pages.size) + 0.05).all()
    assert off.std(axis=0).max() < 0.5


@all_kinds
def test_no_rate_is_excluded_for_good(dtype):
    """A page that changed at a thousand visits and then stops is believed to have stopped, and the other way round."""
    posterior = Posterior(2, dtype=dtype, renewal=0.003 if dtype == np.float64 else 0.0)
    for n in range(1000):
        posterior.update([0, 1], 3600.0, [True, False], n_updates=n)
    before = posterior.change_rate()
    assert np.isfinite(posterior.log_likelihood()).all()
    for n in range(200):
        posterior.update([0, 1], 3600.0, [False, True], n_updates=n)
    after = posterior.change_rate()
    assert after[0] < before[0] / 100
    assert after[1] > before[1] * 100


def test_compact_rows_are_the_same_to_the_last_bit_after_they_were_stored():
    """As steps in 16 bits, of which there are more than codes. Rows that nobody counts the updates of are refused."""
    posterior, again = Posterior(3, dtype=np.uint8), Posterior(3, dtype=np.uint8)
    for n in range(50):
        posterior.update(range(3), 1000.0 * (1 + n % 7), np.arange(3) == n % 3, n_updates=n)
    again.unpack([2, 0, 1], posterior.packed([2, 0, 1]))
    assert again.rows_to_bytes(range(3)) == posterior.rows_to_bytes(range(3))
    with pytest.raises(ValueError, match="n_updates must be"):
        posterior.update(0, 1.0, False)


def test_quantiles_cover_the_true_rate_as_often_as_they_say():
    """With pages drawn from the prior, the rate lies below the q-quantile with probability q."""
    rng = np.random.default_rng(9)
    n = 4000
    rates = np.geomspace(1e-7, 1e-4, 60)
    true = np.exp(rng.uniform(np.log(1e-7), np.log(1e-4), n))
    posterior = Posterior(n, rates)
    for _ in range(5):
        posterior.update(np.arange(n), 2 * DAY, rng.random(n) < -np.expm1(-true * 2 * DAY))
    for q in (0.1, 0.5, 0.9):
        covered = (true < rate_quantile(posterior.weights(), rates, q)).mean()
        assert abs(covered - q) < 4 * np.sqrt(q * (1 - q) / n) + 0.01


def test_a_prior_that_excludes_what_visits_point_at_gives_the_next_best():
    """Where prior and likelihood hardly overlap, the weights are compared in logarithms and add up to 1."""
    posterior = Posterior(1, [1e-6, 1e-5, 1e-4])
    for _ in range(50):
        posterior.update_one(0, 1e6, False)
    assert posterior.weights(0, [0.0, 0.5, 0.5]) == pytest.approx([0, 1, 0])
    assert posterior.weights(0, [0.0, 0.0, 1.0]).tolist() == [0, 0, 1]


def test_the_default_grid_has_its_name():
    """Rows in databases depend on it: a change of the grid must change its name, and this test."""
    assert DEFAULT_RATES_ID == "32-a40363c2"
    assert Posterior(0).rates_id == DEFAULT_RATES_ID
    assert DEFAULT_RATES.size == 32
    assert pytest.approx(1 / 30) == DEFAULT_RATES[-1]
    assert pytest.approx(1 / (3 * 365 * DAY)) == DEFAULT_RATES[0]
    assert grid_id(DEFAULT_RATES * (1 + 1e-13)) == DEFAULT_RATES_ID
    assert grid_id(DEFAULT_RATES * 1.001) != DEFAULT_RATES_ID
    assert not any(rates.flags.writeable for rates in (DEFAULT_RATES, Posterior(0, [1.0, 2.0]).rates))


@all_kinds
def test_weights_of_many_pages_are_those_of_each(dtype):
    """Each page by the prior of its group; also where a prior leaves nothing of what visits say."""
    rng = np.random.default_rng(5)
    posterior = Posterior(20, dtype=dtype)
    for n in range(30):
        posterior.update(np.arange(20), 10.0 ** rng.uniform(2, 7, 20), rng.random(20) < 0.5, n_updates=n)
    priors = rng.dirichlet(np.ones(posterior.rates.size), 3)
    pages, groups = rng.permutation(20)[:12], rng.integers(3, size=12)
    found = posterior.weights_many(pages, priors, groups, 0.5)
    each = [posterior.weights(page, priors[group], 0.5) for page, group in zip(pages, groups, strict=True)]
    np.testing.assert_allclose(found, each, rtol=1e-12)
    fresh = np.exp(-posterior.rates * DAY)
    one = [posterior.unchanged_one(page, DAY, priors[group], 0.5) for page, group in zip(pages, groups, strict=True)]
    np.testing.assert_allclose(one, found @ fresh, rtol=1e-12)
    assert posterior.unchanged_one(7, DAY) == pytest.approx(posterior.weights(7) @ fresh)
    priors[1] = np.where(np.arange(posterior.rates.size) == 3, 1e-300, 0.0)
    assert np.isfinite(posterior.weights_many(pages, priors, groups, 0.5)).all()
    assert posterior.unchanged_one(7, DAY, priors[1]) == pytest.approx(fresh[3])
    assert posterior.weights_many(pages[:0], priors, groups[:0]).shape == (0, posterior.rates.size)


def test_of_more_pages_than_are_worked_on_at_once_each_is_learned_as_if_alone() -> None:
    """Visits, what announcements say, priors and estimates: none is taken for that of another page, or left out."""
    rng, n = np.random.default_rng(8), 20_000
    seen = 10.0 ** rng.uniform(2, 7, n), rng.random(n) < 0.5
    evidence, priors = rng.exponential(1.0, n), rng.dirichlet(np.ones(32), n)
    every, some = Posterior(n, renewal=0.1), Posterior(n, renewal=0.1)
    for _ in range(2):
        every.update(np.arange(n), *seen, evidence=evidence, prior=priors)
        for page in range(0, n, 999):
            some.update_one(page, seen[0][page], seen[1][page], evidence[page], prior=priors[page])
    np.testing.assert_allclose(every.weights(range(0, n, 999)), some.weights(range(0, n, 999)))
    np.testing.assert_allclose(every.change_rate()[::999], some.change_rate(range(0, n, 999)))
