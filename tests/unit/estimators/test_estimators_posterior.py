"""The gridded posterior: Bayes' rule exactly, compactly, page by page and forgetting."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.estimators import DEFAULT_RATES, DEFAULT_RATES_ID, Posterior, grid_id
from crawlsched.estimators.probabilities import rate_quantile
from tests.inputs import tries

DAY = 86_400.0
all_kinds = pytest.mark.parametrize("dtype", [np.float64, np.uint16, np.uint8], ids=["exact", "16 bits", "8 bits"])

visits = st.lists(
    st.tuples(
        st.floats(0, 8).map(lambda log: 10.0**log),
        st.booleans(),
        st.one_of(st.just(0.0), st.floats(0, 50), st.just(np.inf)),
    ),
    min_size=1,
    max_size=30,
)


def bayes(rates, prior, history):
    """Prior times the probability of each visit, normalised at every step."""
    weights = np.array(prior, dtype=float) / np.sum(prior)
    for elapsed, changed, evidence in history:
        fresh = np.exp(-rates * elapsed) * np.exp(-evidence)
        weights = weights * (1 - fresh) if changed else weights * np.exp(-rates * elapsed)
        weights = weights / weights.sum()
    return weights


def simulated(rng, change_rate, n_visits, mean_elapsed):
    """Visits to one page at random intervals."""
    elapsed = rng.exponential(mean_elapsed, n_visits)
    return [(float(t), bool(rng.random() < -np.expm1(-change_rate * t)), 0.0) for t in elapsed]


@given(history=visits)
@tries(60)
def test_weights_are_bayes_rule(history):
    """Prior times likelihood of every visit, announcements included, divided by the sum."""
    rates = np.array([1e-6, 1e-5, 3e-5, 1e-4])
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    posterior = Posterior(2, rates, prior=prior)
    for elapsed, changed, evidence in history:
        posterior.update_one(1, min(elapsed, 1e5), changed, evidence)
    expected = bayes(rates, prior, [(min(t, 1e5), c, e) for t, c, e in history])
    assert posterior.weights(1) == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert posterior.change_rate(1) == pytest.approx(expected @ rates, rel=1e-7)
    assert posterior.weights(0) == pytest.approx(prior)


@all_kinds
@given(history=visits, half_life=st.sampled_from([None, 1e5]), discount=st.sampled_from([None, 0.9]))
@tries(30)
def test_one_page_at_a_time_is_exactly_the_same(dtype, history, half_life, discount):
    """update_one is update, to the last bit, forgetting included."""
    arrays = Posterior(4, dtype=dtype, half_life=half_life, discount=discount)
    single = Posterior(4, dtype=dtype, half_life=half_life, discount=discount)
    for elapsed, changed, evidence in history:
        arrays.update([3, 1, 2], [elapsed, elapsed / 7, elapsed], [changed, not changed, changed], evidence=evidence)
        single.update_one(1, elapsed / 7, not changed, evidence)
        single.update_one(2, elapsed, changed, evidence)
        single.update_one(3, elapsed, changed, evidence)
    assert np.array_equal(arrays.log_likelihood(), single.log_likelihood())
    assert np.array_equal(arrays.weights([1, 2, 3])[1], arrays.weights(2))


def test_n_signals_alone_teach_nothing_and_evidence_does():
    """What an announcement is worth is said by evidence; an announced change says less about unannounced ones."""
    plain, counted, announced, proven = (Posterior(1) for _ in range(4))
    plain.update(0, DAY, True)
    counted.update(0, DAY, True, n_signals=3)
    announced.update(0, DAY, True, n_signals=3, evidence=1.0)
    proven.update(0, DAY, True, evidence=np.inf)
    assert np.array_equal(plain.weights(), counted.weights())
    assert proven.change_rate(0) < announced.change_rate(0) < plain.change_rate(0)
    assert proven.weights(0) == pytest.approx(np.full(32, 1 / 32))
    unchanged, announced_unchanged = Posterior(1), Posterior(1)
    unchanged.update(0, DAY, False)
    announced_unchanged.update(0, DAY, False, evidence=2.0)
    assert np.array_equal(unchanged.weights(), announced_unchanged.weights())


def test_a_new_prior_applies_to_all_that_was_learned():
    """The state holds no prior: asking with another one is as if it had been there from the start."""
    rng = np.random.default_rng(1)
    prior = rng.random(32)
    late, early = Posterior(3), Posterior(3, prior=prior)
    for elapsed, changed, evidence in simulated(rng, 1 / DAY, 20, DAY):
        late.update_one(1, elapsed, changed, evidence)
        early.update_one(1, elapsed, changed, evidence)
    assert late.weights(prior=prior) == pytest.approx(early.weights(), rel=1e-12)
    each = np.stack([np.ones(32), prior, prior])
    assert np.array_equal(late.weights([0, 1, 1], each)[1], late.weights(1, prior))
    assert late.weights(0, np.ones(32)) == pytest.approx(np.full(32, 1 / 32))


@pytest.mark.parametrize("n_visits", [10, 300, 3000])
@pytest.mark.parametrize("per_visit", [0.001, 0.1, 1.0, 5.0])
def test_the_compact_form_stays_within_its_bound_over_long_histories(n_visits, per_visit):
    """Rounding adds up to less than 5 + 2 sqrt(visits) steps, and to 0.01 in the weights and the rate."""
    rng = np.random.default_rng(int(1000 * per_visit) + n_visits)
    n, change_rate = 64, 1 / DAY
    exact, compact = Posterior(n), Posterior(n, dtype=np.uint16)
    with_floor = np.zeros((n, 32))
    for _ in range(n_visits):
        elapsed = rng.exponential(per_visit * DAY, n)
        changed = rng.random(n) < -np.expm1(-change_rate * elapsed)
        for posterior in (exact, compact):
            posterior.update(np.arange(n), elapsed, changed)
        expected = np.multiply.outer(elapsed, DEFAULT_RATES)
        with_floor += np.where(changed[:, None], np.log(-np.expm1(-expected)), -expected)
        with_floor = np.maximum(with_floor - with_floor.max(axis=1, keepdims=True), -65535 / 2048)
    steps = abs(compact.log_likelihood() - with_floor).max() * 2048
    assert steps < 5 + 2 * np.sqrt(n_visits)
    assert abs(compact.weights() - exact.weights()).sum(axis=1).max() / 2 < 0.01
    assert compact.change_rate() == pytest.approx(exact.change_rate(), rel=0.01)


@pytest.mark.parametrize("n_visits", [3, 30, 300])
def test_eight_bits_leave_rates_and_weights_where_they_are(n_visits):
    """Rates learned in 8 bits differ by 4 % and 0.1 % on average, far less than what the visits leave open."""
    rng = np.random.default_rng(n_visits)
    n = 1000
    true = np.exp(rng.uniform(np.log(1e-6), np.log(1e-4), n))
    exact, compact = (Posterior(n, dtype=dtype, renewal=0.003) for dtype in (np.float64, np.uint8))
    for _ in range(n_visits):
        elapsed = rng.exponential(1e5, n)
        changed = rng.random(n) < -np.expm1(-true * elapsed)
        for posterior in (exact, compact):
            posterior.update(np.arange(n), elapsed, changed)
    off = np.log(compact.change_rate() / exact.change_rate())
    assert off.std() < 0.04
    assert abs(off.mean()) < 0.001 + 3 * off.std() / np.sqrt(n)
    assert off.std() < np.log(exact.change_rate() / true).std() / 4
    assert abs(compact.weights() - exact.weights()).sum(axis=1).mean() / 2 < 0.02


@pytest.mark.parametrize("dtype", [np.uint16, np.uint8])
def test_what_is_remembered_against_a_rate_is_32_nats(dtype):
    """However long a rate was contradicted, evidence of 32 nats for it makes it as likely as any."""
    compact = Posterior(1, [1 / DAY, 100 / DAY], dtype=dtype)
    for _ in range(1000):
        compact.update_one(0, DAY, False)
    assert compact.log_likelihood(0).tolist() == [0.0, -65535 / 2048]
    for _ in range(80):  # each tells the faster rate by log(1 / (1 - 1/e)) = 0.459 nats
        compact.update_one(0, DAY, True)
    assert compact.change_rate(0) > 90 / DAY


@pytest.mark.parametrize("elapsed", [1.0, 60.0, 777.0])
def test_thousands_of_tiny_updates_sum_up_right_on_average_in_eight_bits(elapsed):
    """Steps are coarser, so what is left is a walk; over 200 pages its mean is 0 within its error."""
    n, pages = 3_000, np.arange(200)
    compact = Posterior(pages.size, dtype=np.uint8)
    for _ in range(n):
        compact.update(pages, elapsed, np.zeros(pages.size, bool))
    right = -(DEFAULT_RATES - DEFAULT_RATES[0]) * elapsed * n
    off = (compact.log_likelihood() - right)[:, right > -31]
    assert (abs(off.mean(axis=0)) < 4 * off.std(axis=0) / np.sqrt(pages.size) + 0.05).all()
    assert off.std(axis=0).max() < 0.5


@pytest.mark.parametrize("elapsed", [1.0, 60.0, 777.0])
def test_ten_thousand_tiny_unchanged_updates_sum_up_right(elapsed):
    """Each is far below half a step for most rates, so that rounding to nearest would lose it for ever."""
    n = 10_000
    compact = Posterior(3, dtype=np.uint16)
    for _ in range(n):
        compact.update_one(2, elapsed, False)
    right = -(DEFAULT_RATES - DEFAULT_RATES[0]) * elapsed * n
    above = right > -31.9
    lost_by_rounding = (DEFAULT_RATES * elapsed * 2048 < 0.5) & (right < -0.1)
    assert lost_by_rounding.any()
    assert abs(compact.log_likelihood(2) - right)[above].max() < 4 / 2048
    assert abs(compact.log_likelihood(2) - right)[above & (right < -0.5)] == pytest.approx(0, abs=4 / 2048)


def test_tiny_updates_sum_up_right_when_every_process_sees_one():
    """Rows packed away and unpacked after each visit go on where they were: the offset travels with the row."""
    row = Posterior(1, dtype=np.uint16).packed(0)
    for _ in range(2000):
        fresh = Posterior(1, dtype=np.uint16)
        fresh.unpack(0, row)
        fresh.update_one(0, 60.0, False)
        row = fresh.packed(0)
    right = -(DEFAULT_RATES - DEFAULT_RATES[0]) * 60.0 * 2000
    above = right > -31
    assert abs(fresh.log_likelihood(0) - right)[above].max() < 4 / 2048


def test_the_counter_of_updates_wraps_without_harm():
    """After 65536 updates the offsets begin again, and rounding stays right on average."""
    compact = Posterior(2, dtype=np.uint16)
    compact._columns["updates"][:] = 65_530
    for _ in range(20):
        compact.update_one(0, 1000.0, False)
        compact.update([1], 1000.0, False)
    assert compact._columns["updates"].tolist() == [14, 14]
    assert abs(compact.log_likelihood(0)[:20] + 20_000 * (DEFAULT_RATES - DEFAULT_RATES[0])[:20]).max() < 4 / 2048


@all_kinds
def test_no_rate_is_excluded_for_good(dtype):
    """A page that changed at a thousand visits and then stops is believed to have stopped, and the other way round."""
    posterior = Posterior(2, dtype=dtype, discount=0.97 if dtype == np.float64 else None)
    for _ in range(1000):
        posterior.update([0, 1], 3600.0, [True, False])
    before = posterior.change_rate()
    assert np.isfinite(posterior.log_likelihood()).all()
    for _ in range(200):
        posterior.update([0, 1], 3600.0, [False, True])
    after = posterior.change_rate()
    assert after[0] < before[0] / 100
    assert after[1] > before[1] * 100


@pytest.mark.parametrize(("dtype", "size"), [(np.uint16, 66), (np.uint8, 34)])
def test_a_compact_page_takes_66_bytes_or_34(dtype, size):
    """Two bytes or one for each of 32 rates and two for the count; in a store it is always the same."""
    columns = Posterior(1000, dtype=dtype)._columns
    assert columns["log_likelihood"].nbytes + columns["updates"].nbytes == 1000 * size
    assert Posterior(1000, dtype=dtype).packed(np.arange(1000)).nbytes == 66_000


@pytest.mark.parametrize("dtype", [np.uint16, np.uint8])
def test_whoever_counts_updates_elsewhere_saves_two_bytes_a_page_and_learns_the_same(dtype):
    """The planner knows how often each page was crawled: told so, rows are the same to the last bit."""
    counting, told = Posterior(3, dtype=dtype), Posterior(3, dtype=dtype, counts_updates=False)
    for n_updates in range(50):
        for page in range(3):
            visit = page, 1000.0 * (1 + n_updates % 7), n_updates % 3 == page
            counting.update_one(*visit)
            told.update_one(*visit, n_updates=n_updates)
    assert "updates" not in told._columns
    assert np.array_equal(told.packed(range(3)), counting.packed(range(3))[:, :-1])
    again = Posterior(3, dtype=dtype, counts_updates=False)
    again.unpack(range(3), told.packed(range(3)))
    assert np.array_equal(again.codes(3), told.codes(3))


def test_rows_that_count_no_updates_take_none_without_being_told():
    """An array of visits says nothing of how many there were before."""
    told = Posterior(3, dtype=np.uint8, counts_updates=False)
    with pytest.raises(
        ValueError,
        match=re.escape("counts_updates must be True for update() of uint8 rows, got False; use update_one()."),
    ):
        told.update([0, 1], 1000.0, True)
    assert not told.codes(3).any()


@pytest.mark.parametrize("change", [10.0, 0.1])
def test_with_a_discount_a_tenfold_change_of_rate_is_followed_within_ten_visits(change):
    """Ten visits after the rate changed tenfold, the median page is within a factor of two; without, it is not."""
    rng = np.random.default_rng(4)
    n, elapsed = 400, DAY
    rate = np.full(n, (0.2 if change > 1 else 2.0) / DAY)
    forgetting, remembering = Posterior(n, discount=0.8), Posterior(n)
    for k in range(110):
        if k == 100:
            rate *= change
        changed = rng.random(n) < -np.expm1(-rate * elapsed)
        for posterior in (forgetting, remembering):
            posterior.update(np.arange(n), elapsed, changed)
    followed = np.median(forgetting.change_rate() / rate)
    assert 0.5 < followed < 2
    assert not 0.5 < np.median(remembering.change_rate() / rate) < 2


def test_the_half_life_counts_seconds_of_observation():
    """After one half-life the evidence counts half; the update itself counts in full."""
    posterior = Posterior(1, half_life=10 * DAY)
    posterior.update_one(0, DAY, True)
    before = posterior.log_likelihood(0)
    posterior.update_one(0, 10 * DAY, False)
    expected = before / 2 - DEFAULT_RATES * 10 * DAY
    assert posterior.log_likelihood(0) == pytest.approx(expected - expected.max(), rel=1e-12)


def test_quantiles_rise_and_lie_where_the_weights_do():
    """They increase with q, span the grid, and the median of a long history is near the rate."""
    rng = np.random.default_rng(2)
    posterior = Posterior(2)
    for elapsed, changed, _ in simulated(rng, 1 / DAY, 400, DAY):
        posterior.update_one(1, elapsed, changed)
    quantiles = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
    found = np.array([rate_quantile(posterior.weights(), posterior.rates, q) for q in quantiles])
    assert (np.diff(found, axis=0) > 0).all()
    assert 0.7 < found[3, 1] * DAY < 1.4
    step = DEFAULT_RATES[1] / DEFAULT_RATES[0]
    assert found[0, 0] == pytest.approx(DEFAULT_RATES[0] / np.sqrt(step))
    assert found[-1, 0] == pytest.approx(DEFAULT_RATES[-1] * np.sqrt(step))
    assert found[3, 0] == pytest.approx(np.sqrt(DEFAULT_RATES[0] * DEFAULT_RATES[-1]))  # equal weights: the middle


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


def test_a_fine_grid_finds_the_rate_and_the_default_one_to_half_a_step():
    """The posterior mean converges up to the grid: 27 % for 32 rates over nine decades, 2 % for a fine grid."""
    rng = np.random.default_rng(3)
    n = 100
    true = np.exp(rng.uniform(np.log(2e-6), np.log(2e-4), n))
    fine, default = Posterior(n, np.geomspace(1e-6, 1e-3, 300)), Posterior(n)
    for _ in range(1500):
        elapsed = rng.exponential(1 / true)
        changed = rng.random(n) < -np.expm1(-true * elapsed)
        fine.update(np.arange(n), elapsed, changed)
        default.update(np.arange(n), elapsed, changed)
    error = fine.change_rate() / true - 1
    assert abs(error.mean()) < 4 * error.std() / np.sqrt(n) + 0.005
    assert error.std() < 0.05
    assert abs(np.log(default.change_rate() / true)).max() < np.log(DEFAULT_RATES[1] / DEFAULT_RATES[0]) / 2 + 0.1


def test_a_prior_that_excludes_what_visits_point_at_gives_the_next_best():
    """Where prior and likelihood hardly overlap, the weights are compared in logarithms and add up to 1."""
    posterior = Posterior(1, [1e-6, 1e-5, 1e-4])
    for _ in range(50):
        posterior.update_one(0, 1e6, False)
    assert posterior.weights(0, [0.0, 0.5, 0.5]) == pytest.approx([0, 1, 0])
    assert posterior.weights(0, [0.0, 0.0, 1.0]).tolist() == [0, 0, 1]


def test_every_code_of_eight_bits_goes_to_the_store_and_back():
    """Each of 256 codes is another number of steps, and the nearest code to that number."""
    rows = np.zeros((8, 33), np.uint16)
    posterior = Posterior(8, dtype=np.uint8)
    posterior._columns["log_likelihood"][:] = np.arange(256, dtype=np.uint8).reshape(8, 32)
    rows = posterior.packed(np.arange(8))
    assert np.unique(rows[:, :-1]).size == 256
    assert rows[:, :-1].max() == 65535
    again = Posterior(8, dtype=np.uint8)
    again.unpack(np.arange(8), rows)
    assert np.array_equal(again.codes(8), posterior.codes(8))
    steps = rows[:, :-1] / -2048
    assert again.log_likelihood() == pytest.approx(steps, abs=1 / 2048)


def test_packed_rows_go_there_and_back():
    """Compact rows travel with their counter; exact ones as bytes only; wrong shapes are refused."""
    posterior = Posterior(4, dtype=np.uint16)
    posterior.update([1, 3], DAY, [True, False])
    rows = posterior.packed([3, 1])
    assert rows.dtype == np.uint16
    assert rows.shape == (2, 33)
    other = Posterior(4, dtype=np.uint16)
    other.unpack([3, 1], rows)
    assert np.array_equal(other.codes(4), posterior.codes(4))
    assert np.array_equal(other._columns["updates"], posterior._columns["updates"])
    with pytest.raises(
        ValueError, match=re.escape("packed must be an array of uint16 with shape (1, 33), got uint16 with")
    ):
        other.unpack(0, rows)
    with pytest.raises(
        ValueError, match=re.escape("dtype must be uint16 or uint8 for packed(), got float64; exact rows travel by")
    ):
        Posterior(1).packed(0)


def test_the_default_grid_has_its_name():
    """Rows in databases depend on it: a change of the grid must change its name, and this test."""
    assert DEFAULT_RATES_ID == "32-a40363c2"
    assert Posterior(0).rates_id == DEFAULT_RATES_ID
    assert DEFAULT_RATES.size == 32
    assert pytest.approx(1 / 30) == DEFAULT_RATES[-1]
    assert pytest.approx(1 / (3 * 365 * DAY)) == DEFAULT_RATES[0]
    assert grid_id(DEFAULT_RATES * (1 + 1e-13)) == DEFAULT_RATES_ID
    assert grid_id(DEFAULT_RATES * 1.001) != DEFAULT_RATES_ID
    assert not DEFAULT_RATES.flags.writeable


def test_the_dither_is_spread_evenly_for_every_page():
    """Any 100 updates in a row leave gaps below 3/100: rounding errors of equal steps cancel."""
    from crawlsched.estimators.log_weights import dither, dither_one

    for page in (0, 1, 12_345, 10**9):
        offsets = np.array([dither_one(page, count) for count in range(500, 600)])
        assert np.diff(np.sort(np.concatenate([offsets, [0, 1]]))).max() < 0.03
        assert np.array_equal(offsets, dither(np.full(100, page), np.arange(500, 600, dtype=np.uint16)))
    assert dither_one(7, 9) == float(Fraction((7 * 0x85EBCA6B + 9 * 0x9E3779B9) % 2**32, 2**32))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Posterior(1, [1.0]), "rates must be a one-dimensional array of at least 2 rates, got shape (1,)."),
        (lambda: Posterior(1, [2.0, 1.0]), "rates must be positive, finite and increasing (changes per second), got"),
        (lambda: Posterior(1, [0.0, 1.0]), "rates must be positive, finite and increasing (changes per second), got"),
        (lambda: Posterior(1, prior=[1.0]), "prior must have one probability per rate, shape (32,), got shape (1,)."),
        (
            lambda: Posterior(1, [1, 2], prior=[0, 0]),
            "prior must hold finite probabilities that are not negative and not",
        ),
        (lambda: Posterior(1, dtype=np.int8), "dtype must be numpy.float64, numpy.uint16 or numpy.uint8, got int8."),
        (lambda: Posterior(1, half_life=0), "half_life must be seconds above 0 and finite, got 0."),
        (lambda: Posterior(1, discount=1.1), "discount must be a factor above 0 and at most 1, got 1.1."),
        (
            lambda: Posterior(1).update(0, 1.0, True, evidence=-1),
            "evidence must be nats that are not negative, got -1.0.",
        ),
        (lambda: Posterior(1).update_one(1, 1.0, True), "pages must lie between 0 and 0, got 1; resize() makes room"),
        (lambda: Posterior(1).update_one(-1, 1.0, True), "pages must lie between 0 and 0, got -1; resize() makes room"),
        (lambda: Posterior(1).update_one(0, -1.0, True), "elapsed must be seconds above 0 and finite, got -1.0."),
        (
            lambda: Posterior(1).update_one(0, 1.0, True, np.nan),
            "evidence must be nats that are not negative, got nan.",
        ),
        (
            lambda: Posterior(2).weights(prior=np.ones((3, 32))),
            "prior must have one probability per rate, shape (32,) or",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_one_sentence(make, message):
    """Each message names argument, value and what is allowed."""
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


@given(steps=st.floats(0.0, 70_000.0), offset=st.floats(0.0, 1.0, exclude_max=True))
def test_eight_bits_are_rounded_by_what_two_codes_stand_for(steps, offset):
    """A code goes up where at least 1 - offset of the way to what the next one stands for is done."""
    from crawlsched.estimators.log_weights import encoded

    squares = [k * k * 257 / 255 for k in range(256)]
    code = min(np.interp(steps, squares, range(256)) + offset, 255)
    if abs(code - round(code)) > 1e-9:
        assert encoded(np.array([-steps / 2048]), offset, "uint8").tolist() == [int(code)]


@pytest.mark.parametrize("dtype", [np.uint16, np.uint8, np.float64])
def test_weights_of_many_pages_are_those_of_each(dtype):
    """Each page by the prior of its group; also where a prior leaves nothing of what visits say."""
    rng = np.random.default_rng(5)
    posterior = Posterior(20, dtype=dtype)
    for _ in range(30):
        posterior.update(np.arange(20), 10.0 ** rng.uniform(2, 7, 20), rng.random(20) < 0.5)
    priors = rng.dirichlet(np.ones(posterior.rates.size), 3)
    pages, groups = rng.permutation(20)[:12], rng.integers(3, size=12)
    found = posterior.weights_many(pages, priors, groups, 0.5)
    each = [posterior.weights(page, priors[group], 0.5) for page, group in zip(pages, groups, strict=True)]
    np.testing.assert_allclose(found, each, rtol=1e-12)
    priors[1] = np.where(np.arange(posterior.rates.size) == 3, 1e-300, 0.0)
    assert np.isfinite(posterior.weights_many(pages, priors, groups, 0.5)).all()
    assert posterior.weights_many(pages[:0], priors, groups[:0]).shape == (0, posterior.rates.size)
