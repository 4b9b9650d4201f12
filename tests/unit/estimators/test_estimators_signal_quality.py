"""Signal quality: the concave likelihood and its edges, intervals that hold, priors, banks of groups."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.estimators import SignalQuality
from crawlsched.estimators.recall_interval import recall_interval
from crawlsched.estimators.signal_fit import MAX_SIGNAL_WEIGHT
from tests.inputs import tries

visits = st.lists(
    st.tuples(st.floats(-3, 8).map(lambda log: 10.0**log), st.integers(0, 40), st.booleans()), min_size=1, max_size=25
)
priors = st.one_of(st.none(), st.tuples(st.floats(0, 20), st.floats(0, 20)))


def columns(history):
    """Arrays of elapsed, n_signals, changed."""
    return tuple(np.array(column) for column in zip(*history, strict=True))


def simulated(rng, n, rate, weight, signal_rate, mean=10.0):
    """Visits at random intervals under the model."""
    elapsed = rng.exponential(mean, n)
    n_signals = rng.poisson(signal_rate * elapsed)
    return elapsed, n_signals, rng.random(n) < -np.expm1(-(rate * elapsed + weight * n_signals))


def log_likelihood(elapsed, n_signals, changed, rate, weight):
    """The model's, in plain numpy."""
    odds = np.maximum(rate * elapsed + weight * n_signals, 1e-300)
    return np.where(changed, np.log(-np.expm1(-odds)), -odds).sum()


def all_numbers(fit):
    """Every number that a fit gives."""
    return np.array([
        fit.unsignalled_change_rate, fit.signal_weight, fit.signal_rate, *fit.interval, fit.precision,
        *fit.precision_interval, fit.recall, fit.change_rate, fit.false_signal_rate,
    ])  # fmt: skip


@given(history=visits, prior=priors)
@tries(150)
def test_every_history_gives_finite_consistent_numbers(history, prior):
    """Separable data, no announcements, always announcements: finite, in range, and consistent with each other."""
    fit = SignalQuality.fit(*columns(history), prior=prior)
    numbers = all_numbers(fit)
    assert np.isfinite(numbers).all()
    assert (numbers >= 0).all()
    assert fit.signal_weight <= MAX_SIGNAL_WEIGHT
    assert 0 <= fit.precision <= 1
    assert 0 <= fit.recall <= 1
    low, high = fit.interval
    assert low <= fit.signal_weight * (1 + 1e-5) + 1e-6
    assert fit.signal_weight <= high * (1 + 1e-5) + 1e-6
    assert fit.change_rate * fit.recall + fit.false_signal_rate == pytest.approx(fit.signal_rate)
    assert fit.change_rate * (1 - fit.recall) == pytest.approx(fit.unsignalled_change_rate, abs=1e-12 * fit.change_rate)
    assert np.isfinite(all_numbers(SignalQuality.fit_naive(*columns(history)))).all()


def test_the_maximum_is_where_forty_digits_put_it():
    """Against mpmath's root of the two derivatives, to nine digits."""
    elapsed, n_signals, changed = simulated(np.random.default_rng(1), 60, 0.03, 0.8, 0.1)
    fit = SignalQuality.fit(elapsed, n_signals, changed)
    with mpmath.workdps(40):
        rows = [(mpmath.mpf(float(t)), int(n), bool(z)) for t, n, z in zip(elapsed, n_signals, changed, strict=True)]

        def slope(rate, weight):
            by_rate = by_weight = mpmath.mpf(0)
            for t, n, z in rows:
                pull = 1 / mpmath.expm1(rate * t + weight * n) if z else mpmath.mpf(-1)
                by_rate, by_weight = by_rate + pull * t, by_weight + pull * n
            return by_rate, by_weight

        rate, weight = mpmath.findroot(slope, (fit.unsignalled_change_rate, fit.signal_weight))
    assert fit.unsignalled_change_rate == pytest.approx(float(rate), rel=1e-9)
    assert fit.signal_weight == pytest.approx(float(weight), rel=1e-9)


def test_the_interval_is_where_the_profile_likelihood_has_fallen_by_its_quantile():
    """At both ends twice the logarithm has fallen by 3.84, the rate being fitted anew by brute force."""
    elapsed, n_signals, changed = simulated(np.random.default_rng(3), 300, 0.02, 1.0, 0.1)
    fit = SignalQuality.fit(elapsed, n_signals, changed)
    rates = fit.unsignalled_change_rate * np.geomspace(0.2, 5, 4000)

    def profile(weight):
        return max(log_likelihood(elapsed, n_signals, changed, rate, weight) for rate in rates)

    best = profile(fit.signal_weight)
    for end in fit.interval:
        assert 2 * (best - profile(end)) == pytest.approx(3.8415, abs=0.01)


def test_useless_announcements_are_ignored_by_arithmetic():
    """Announcements in step with time, at every poll, or independent of changes: weight 0 or next to it."""
    rng = np.random.default_rng(4)
    elapsed = np.full(500, 10.0)
    changed = rng.random(500) < 0.3
    stamped = SignalQuality.fit(elapsed, np.ones(500), changed)
    assert stamped.signal_weight == 0
    assert stamped.precision == stamped.recall == 0
    assert stamped.false_signal_rate == stamped.signal_rate == pytest.approx(0.1)
    assert stamped.unsignalled_change_rate == pytest.approx(-np.log(1 - changed.mean()) / 10)
    in_step = SignalQuality.fit(np.arange(1, 501) * 1.0, np.arange(1, 501) * 3, changed)
    assert in_step.signal_weight == 0
    times, n_signals, found = simulated(rng, 20_000, 0.05, 0.0, 0.2)
    independent = SignalQuality.fit(times, n_signals, found)
    assert independent.signal_weight < 0.03
    assert independent.interval[0] == 0


def test_without_announcements_nothing_is_known_of_them():
    """The change rate is that of maximum likelihood; the weight is 0 and its interval everything."""
    rng = np.random.default_rng(5)
    elapsed = rng.exponential(10.0, 400)
    changed = rng.random(400) < -np.expm1(-0.05 * elapsed)
    fit = SignalQuality.fit(elapsed, np.zeros(400), changed)
    assert fit.change_rate == fit.unsignalled_change_rate == pytest.approx(0.05, rel=0.2)
    assert fit.interval == (0.0, MAX_SIGNAL_WEIGHT)
    assert fit.precision_interval == (0.0, pytest.approx(1.0))
    empty = SignalQuality.fit([], [], [])
    assert all_numbers(empty)[:4].tolist() == [0, 0, 0, 0]


def test_separable_data_get_half_an_unchanged_visit():
    """All announced visits changed and no other: weight log(2X + 1) by X announcements, unbounded above."""
    for x in (1, 4, 30):
        fit = SignalQuality.fit([10.0] * (x + 50), [1] * x + [0] * 50, [1] * x + [0] * 50)
        assert fit.signal_weight == pytest.approx(np.log(2 * x + 1), rel=1e-6)
        assert fit.unsignalled_change_rate == pytest.approx(0, abs=1e-9)
        assert fit.interval[1] == MAX_SIGNAL_WEIGHT
    every = SignalQuality.fit([10.0] * 8, [0] * 8, [1] * 8)
    assert every.unsignalled_change_rate == pytest.approx(np.log(17) / 10)


def test_a_prior_shrinks_towards_its_precision():
    """Pseudo-announcements: alone they are the precision, with few visits near it, with many far from it."""
    assert SignalQuality.fit([], [], [], prior=(8.0, 2.0)).precision == pytest.approx(0.8)
    assert SignalQuality.fit([10.0], [0], [False], prior=(8.0, 2.0)).precision == pytest.approx(0.8)
    rng = np.random.default_rng(6)
    data = simulated(rng, 5000, 0.02, -np.log(0.7), 0.1)  # precision 0.3
    few = SignalQuality.fit(*(column[:10] for column in data), prior=(80.0, 20.0))
    many = SignalQuality.fit(*data, prior=(80.0, 20.0))
    assert few.precision > 0.7
    assert many.precision == pytest.approx(0.3, abs=0.06)
    certain = SignalQuality.fit([10.0] * 3, [1] * 3, [1] * 3, prior=(5.0, 0.0))
    assert certain.precision > 0.9


@pytest.mark.parametrize(("rate", "weight", "signal_rate"), [(0.02, 0.2, 0.05), (0.005, 1.0, 0.1), (0.1, 3.0, 0.02)])
def test_a_bank_forgets_little_of_what_it_saw(rate, weight, signal_rate):
    """Sums over 84 cells give the fit of all visits to 2 %, whatever their order and however they came."""
    rng = np.random.default_rng(8)
    data = simulated(rng, 30_000, rate, weight, signal_rate)
    groups = rng.integers(0, 3, 30_000)
    bank, piecewise = SignalQuality(3), SignalQuality(3)
    bank.update(groups, *data)
    for part in np.array_split(rng.permutation(30_000), 7):
        piecewise.update(groups[part], *(column[part] for column in data))
    for group in range(3):
        whole = SignalQuality.fit(*(column[groups == group] for column in data))
        found = bank.fit_group(group)
        assert found.signal_weight == pytest.approx(whole.signal_weight, rel=0.02, abs=0.01)
        assert found.unsignalled_change_rate == pytest.approx(whole.unsignalled_change_rate, rel=0.02)
        assert found.signal_rate == pytest.approx(whole.signal_rate)
        assert all_numbers(piecewise.fit_group(group)) == pytest.approx(all_numbers(found), rel=1e-4)
    assert sum(column.nbytes for column in bank._columns.values()) < 3 * 3500
    pooled = bank.fit_group([0, 1, 2])
    assert pooled.signal_weight == pytest.approx(SignalQuality.fit(*data).signal_weight, rel=0.02)


def test_a_bank_takes_announcements_at_every_poll_for_useless_too():
    """In a cell of three or four of them longer visits find more changes and hear no more: that is no evidence."""
    rng = np.random.default_rng(10)
    elapsed = rng.exponential(4.0, 100_000) + 0.01
    n_signals = np.floor(elapsed + rng.random(100_000))
    bank = SignalQuality(1)
    bank.update(np.zeros(100_000, dtype=int), elapsed, n_signals, rng.random(100_000) < -np.expm1(-0.3 * elapsed))
    assert bank.fit_group(0).signal_weight < 0.01
    assert bank.fit_group(0).interval[0] == 0
    assert bank.fit_group(0).unsignalled_change_rate == pytest.approx(0.3, rel=0.03)


RUNS, VISITS = 240, 500
DAY = 86_400.0


def _visits(rng: np.random.Generator, precision: float, recall: float) -> tuple[np.ndarray, ...]:
    """Twenty pages that change once a day are visited at random; changes and announcements are simulated one by one."""
    elapsed = rng.exponential(0.7 * DAY, VISITS)
    changes = rng.poisson(elapsed / DAY)
    false = rng.poisson(recall * (1 - precision) / precision / DAY * elapsed)
    return rng.integers(0, 20, VISITS), elapsed, rng.binomial(changes, recall) + false, changes > 0


@pytest.mark.parametrize("seed", [1, 2])
def test_the_truth_lies_within_the_intervals(seed: int) -> None:
    """For precision and recall anywhere between 0.15 and 0.9, in 95 % of runs but for three standard errors."""
    rng = np.random.default_rng(seed)
    inside = np.zeros((RUNS // 2, 3), bool)
    for run in range(RUNS // 2):
        precision, recall = rng.uniform(0.15, 0.9, 2)
        pages, *visits = _visits(rng, precision, recall)
        fit = SignalQuality.fit(*visits)
        low, high = fit.precision_interval
        _, least, most = recall_interval(pages, *visits) or (0.5, 0.0, 1.0)
        rarest, most_often = fit.false_signal_rate_interval(float(visits[1].sum()))
        false_rate = recall * (1 - precision) / precision / DAY
        inside[run] = low <= precision <= high, least <= recall <= most, rarest <= false_rate <= most_often
    error = np.sqrt(0.05 * 0.95 / inside.shape[0])
    # That of recall is a little too narrow: 92 % of 1,500 runs.
    assert (inside.mean(axis=0) >= np.array([0.95, 0.92, 0.95]) - 3 * error).all(), inside.mean(axis=0)


def test_without_announcements_or_without_silence_nothing_is_known() -> None:
    """A crawl that comes only when it is called sees nothing of what it was not called for."""
    pages, elapsed, changed = list(range(20)), [10.0] * 20, [True, False] * 10
    assert recall_interval(pages, elapsed, [0] * 20, changed) is None
    assert recall_interval(pages, elapsed, [1] * 20, changed) is None
