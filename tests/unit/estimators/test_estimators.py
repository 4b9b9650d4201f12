"""The contract of every estimator, found by introspection; exact values of each."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crawlsched.estimators as estimators
from crawlsched.estimators import (
    Estimator,
    FrequencyClasses,
    GammaPosterior,
    LastModified,
    LawOfLargeNumbers,
    LearnedRates,
    MaximumLikelihood,
    MomentMatching,
    Momentum,
    OutsideTheorem,
    Posterior,
    StochasticApproximation,
)
from crawlsched.estimators.learned_rates import POINT_ESTIMATORS
from tests.inputs import tries

ALL = [
    made
    for made in vars(estimators).values()
    if isinstance(made, type) and issubclass(made, Estimator) and made is not Estimator
]
FOR_SCHEDULING = [Posterior, GammaPosterior, FrequencyClasses]
every_estimator = pytest.mark.parametrize("made", ALL, ids=lambda made: made.__name__)

N_PAGES = 5


@st.composite
def histories(draw, n_pages=N_PAGES, shortest=1e-3, longest=1e8):
    """Rounds of visits to some distinct pages each."""
    rounds = []
    for _ in range(draw(st.integers(1, 12))):
        pages = draw(st.lists(st.integers(0, n_pages - 1), unique=True, min_size=1, max_size=n_pages))
        n = len(pages)
        logs = draw(st.lists(st.floats(np.log10(shortest), np.log10(longest)), min_size=n, max_size=n))
        changed = draw(st.lists(st.booleans(), min_size=n, max_size=n))
        since = draw(st.lists(st.floats(0, 1.5), min_size=n, max_size=n))
        elapsed = 10.0 ** np.array(logs)
        rounds.append((np.array(pages), elapsed, np.array(changed), elapsed * np.array(since)))
    return rounds


def taught(estimator, history):
    """Return the estimator after a history, all pages of a round at once."""
    for pages, elapsed, changed, since in history:
        estimator.update(pages, elapsed, changed, time_since_modified=since)
    return estimator


def one_history(seed=0, n_pages=N_PAGES, visits=20):
    """Return a history of all pages with rates about one change per visit."""
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(-6, -4, n_pages)
    rounds = []
    for _ in range(visits):
        elapsed = rng.exponential(1e5, n_pages)
        since = rng.exponential(1 / rates)
        rounds.append((np.arange(n_pages), elapsed, since < elapsed, since))
    return rounds


def test_the_estimators_of_the_design_are_all_there():
    """The names that programs outside the project rely on exist, and each is found by introspection."""
    names = {made.__name__ for made in ALL}
    assert names >= {
        "Naive", "BiasReduced", "UniformPrior", "MaximumLikelihood", "MomentMatching", "LastModified",
        "LawOfLargeNumbers", "StochasticApproximation", "Momentum", "Posterior",
    }  # fmt: skip
    assert set(estimators.__all__) >= names | {"SignalQuality", "learn_prior"}
    assert all(hasattr(estimators, name) for name in estimators.__all__)


@every_estimator
@given(history=histories())
@tries(30)
def test_rows_one_by_one_and_an_array_at_once_give_exactly_the_same(made, history):
    """A bank of pages is as many single pages, to the last bit, in updates and in estimates."""
    at_once, one_by_one = taught(made(N_PAGES), history), made(N_PAGES)
    for pages, elapsed, changed, since in history:
        for k, page in enumerate(pages):
            one_by_one.update(int(page), elapsed[k], changed[k], time_since_modified=since[k])
    assert np.array_equal(at_once.change_rate(), [one_by_one.change_rate(page) for page in range(N_PAGES)])
    assert np.array_equal(at_once.change_rate(), one_by_one.change_rate())


@every_estimator
@given(history=histories(shortest=1e-12, longest=1e14))
@tries(60)
def test_the_change_rate_is_finite_and_not_negative_for_every_history(made, history):
    """No history makes an estimate negative, infinite or not a number; those meant for scheduling are positive."""
    estimator = made(N_PAGES)
    for a_round in history:
        taught(estimator, [a_round])
        rates = estimator.change_rate()
        assert rates.shape == (N_PAGES,)
        assert np.isfinite(rates).all()
        assert (rates > 0 if made in FOR_SCHEDULING else rates >= 0).all()


SCALED = {
    Posterior: lambda by: Posterior(N_PAGES, np.geomspace(1e-7, 1e-3, 12) * by),
    FrequencyClasses: lambda by: FrequencyClasses(N_PAGES, np.array([1e-5, 1e-6]) * by),
    GammaPosterior: lambda by: GammaPosterior(N_PAGES, 0.5, 1e6 / by),
    MaximumLikelihood: lambda by: MaximumLikelihood(N_PAGES, 1e-9 * by, 1e-1 * by),
    LawOfLargeNumbers: lambda by: LawOfLargeNumbers(N_PAGES, np.linspace(1e-5, 2e-5, N_PAGES) * by),
    StochasticApproximation: lambda by: StochasticApproximation(N_PAGES, 1e-5 * by, initial_change_rate=1e-5 * by),
    Momentum: lambda by: Momentum(N_PAGES, 1e-5 * by, initial_change_rate=1e-5 * by),
}


@every_estimator
@pytest.mark.parametrize("factor", [60.0, 1 / 86_400])
def test_time_in_another_unit_gives_the_rate_in_that_unit(made, factor):
    """Dividing all times by 60 (and scaling what was given beforehand) multiplies the rate by 60."""
    make = SCALED.get(made, lambda by: made(N_PAGES))
    history = one_history()
    scaled = [(pages, elapsed / factor, changed, since / factor) for pages, elapsed, changed, since in history]
    assert taught(make(factor), scaled).change_rate() == pytest.approx(
        taught(make(1.0), history).change_rate() * factor, rel=1e-9
    )


@every_estimator
def test_a_bank_of_pages_grows_from_none_and_gives_one_some_or_all(made):
    """Old rows stay, and new ones learn like any other; one page gives a number, several an array, repeats included."""
    bank, history = made(0), one_history()
    bank.update([], [], [])
    assert bank.change_rate().shape == (0,)
    bank.resize(N_PAGES)
    new = bank.change_rate()
    before = taught(bank, history).change_rate()
    bank.resize(2 * N_PAGES)
    assert np.array_equal(bank.change_rate(), [*before, *new])
    moved = [(pages + N_PAGES, elapsed, changed, since) for pages, elapsed, changed, since in history]
    assert np.array_equal(taught(bank, moved).change_rate(), [*before, *before])
    assert isinstance(bank.change_rate(3), float)
    assert np.array_equal(bank.change_rate([4, 0, 4]), before[[4, 0, 4]])


def times_of_changes(rate, history):
    """Σ_changed t/(e^{λt} - 1) less Σ_unchanged t: equation (2), with half an unchanged visit where all changed."""
    changed = [mpmath.mpf(t) for t, found in history if found]
    unchanged = mpmath.fsum(t for t, found in history if not found) or mpmath.fsum(changed) / len(changed) / 2
    return mpmath.fsum(t / mpmath.expm1(rate * t) for t in changed) - unchanged


def unchanged_visits(rate, history):
    """Σ e^{-Δτ} less the number of unchanged visits; n/2 of n + 1/2 where all changed."""
    n = mpmath.mpf(len(history))
    unchanged = sum(not found for _, found in history) or n / 2 / (n + 0.5)
    return mpmath.fsum(mpmath.exp(-rate * t) for t, _ in history) - unchanged


@pytest.mark.parametrize(
    ("made", "left_over"), [(MaximumLikelihood, times_of_changes), (MomentMatching, unchanged_visits)]
)
@given(rounds=histories(n_pages=1, shortest=1.0, longest=1e6))
@tries(40)
def test_maximum_likelihood_and_moment_matching_solve_their_equations(made, left_over, rounds):
    """What falls as the rate grows is above 0 just below the estimate and below 0 just above it, with 40 digits."""
    history = [(float(elapsed[0]), bool(found[0])) for _, elapsed, found, _ in rounds]
    estimate = taught(made(1), rounds).change_rate(0)
    if not any(found for _, found in history):
        assert estimate == 0
        return
    with mpmath.workdps(40):
        assert left_over(estimate * (1 - mpmath.mpf(10) ** -11), history) > 0
        assert left_over(estimate * (1 + mpmath.mpf(10) ** -11), history) < 0


def test_maximum_likelihood_keeps_to_its_limits():
    """Estimates are clipped to the limits given; a page that never changed gets the lower one."""
    estimator = MaximumLikelihood(2, min_change_rate=1e-6, max_change_rate=1e-4)
    for _ in range(3):
        estimator.update([0, 1], 1000.0, [False, True])
    assert np.array_equal(estimator.change_rate(), [1e-6, 1e-4])


def test_last_modified_counts_a_change_of_unknown_time_in_the_middle_of_its_interval():
    """Without a time, or with one before the last visit, the change is put halfway."""
    unknown, impossible, halfway = LastModified(1), LastModified(1), LastModified(1)
    for changed in (True, False, True):
        unknown.update(0, 10.0, changed)
        impossible.update(0, 10.0, changed, time_since_modified=25.0)
        halfway.update(0, 10.0, changed, time_since_modified=5.0)
    assert unknown.change_rate(0) == impossible.change_rate(0) == halfway.change_rate(0)


def recursion(found, p, initial, step, carried):
    """Equations (2) and (3) as printed, in plain Python."""
    before = value = initial
    for k, changed in enumerate(found):
        after = value + step(k) * (changed * (value + p) - value) + carried(k) * (value - before)
        before, value = value, after
    return value


@pytest.mark.parametrize(("p", "initial", "step"), [(None, 0.0, {}), (0.02, 0.0, {}), (0.1, 0.3, {"eta": 0.8})])
def test_stochastic_approximation_and_momentum_follow_their_recursions(p, initial, step):
    """The estimates are those of equations (2), (3) and (10) with the paper's defaults and ζ_0 = 0."""
    rng = np.random.default_rng(5)
    elapsed, found = rng.exponential(50.0, 60), rng.random(60) < 0.6
    plain = StochasticApproximation(1, p, **step, initial_change_rate=initial)
    heavy = Momentum(1, p, initial_change_rate=initial)
    assert plain.change_rate(0) == heavy.change_rate(0) == initial
    for k in range(60):
        plain.update(0, elapsed[k], found[k])
        heavy.update(0, elapsed[k], found[k])
    rate = 60 / elapsed.sum() if p is None else p
    assert plain.change_rate(0) == pytest.approx(
        recursion(found, rate, initial, lambda k: (k + 1) ** -step.get("eta", 0.75), lambda k: 0.0), rel=1e-12
    )
    assert heavy.change_rate(0) == pytest.approx(
        recursion(
            found, rate, initial, lambda k: (k + 1) ** -1.3,
            lambda k: ((k + 1) ** -0.75 - (k + 1) ** -1.3) / k**-0.75 if k else 0.0,
        ),
        rel=1e-12,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("alpha", "function"),
    [(1, lambda k: 1.0), (2.5, lambda k: 2.5), ("log k", np.log), ("sqrt k", np.sqrt), ("k^0.75", lambda k: k**0.75)],
)
def test_law_of_large_numbers_follows_equation_1(alpha, function):
    """The estimate is p Î / (k + α_k - Î) for every named sequence and for the same as a function."""
    rng = np.random.default_rng(6)
    named, given_one = LawOfLargeNumbers(1, 0.1, alpha), LawOfLargeNumbers(1, 0.1, function)
    found = rng.random(30) < 0.6
    for k in range(1, 31):
        named.update(0, 10.0, found[k - 1])
        given_one.update(0, 10.0, found[k - 1])
        if k > 1:
            changes = found[:k].sum()
            assert named.change_rate(0) == pytest.approx(0.1 * changes / (k + function(k) - changes), rel=1e-12)
            assert named.change_rate(0) == given_one.change_rate(0)


@pytest.mark.parametrize("made", [LawOfLargeNumbers, StochasticApproximation, Momentum])
def test_a_crawl_rate_is_given_for_all_for_each_or_learned(made):
    """One number, one per page, or NaN and None for learning it from the intervals; new rows have it, too."""
    history = one_history(n_pages=2)
    intervals = np.array([elapsed for _, elapsed, _, _ in history])
    learned_rates = len(history) / intervals.sum(axis=0)
    learned = taught(made(2), history).change_rate()
    assert learned == pytest.approx(taught(made(2, learned_rates), history).change_rate(), rel=1e-12)
    mixed = taught(made(2, [np.nan, 7.0]), history)
    assert mixed.change_rate(0) == learned[0]
    assert mixed.change_rate(1) == pytest.approx(learned[1] * 7.0 / learned_rates[1], rel=1e-12)
    one_for_all = made(1, 7.0)
    one_for_all.resize(2)
    one_for_all.update(1, 123.0, True)
    alone = made(1, 7.0)
    alone.update(0, 123.0, True)
    assert one_for_all.change_rate(1) == alone.change_rate(0)


@pytest.mark.parametrize(("eta", "beta"), [(0.8, 0.6), (0.8, 0.5), (1.0, 0.5), (0.8, 0.4), (1.3, 0.6), (1.1, 0.75)])
def test_step_sizes_outside_theorem_3_warn_at_the_line_that_chose_them(eta, beta):
    """Choices that the paper's experiments use, or that nothing is known of, are allowed."""
    with pytest.warns(OutsideTheorem, match="Theorem 3") as caught:
        Momentum(1, eta=eta, beta=beta)
    assert caught[0].filename == __file__


def exact_gamma_moments(shape, time, elapsed):
    """Mean and variance of λ^{a-1} e^{-bλ} (1 - e^{-λτ}), by closed integrals with 60 digits."""
    with mpmath.workdps(60):
        a, b, tau = mpmath.mpf(shape), mpmath.mpf(time), mpmath.mpf(elapsed)

        def moment(k):
            return mpmath.gamma(a + k) * (b ** -(a + k) - (b + tau) ** -(a + k))

        mean = moment(1) / moment(0)
        return float(mean), float(moment(2) / moment(0) - mean**2)


@given(log_shape=st.floats(-3, 5), log_time=st.floats(-3, 8), log_elapsed=st.floats(-3, 8))
@tries(200)
def test_a_changed_visit_gives_the_gamma_posterior_the_exact_mean_and_variance(log_shape, log_time, log_elapsed):
    """Moments are matched exactly; the shape never falls by more than rounding."""
    estimator = GammaPosterior(1, 10.0**log_shape, 10.0**log_time)
    elapsed = 10.0**log_elapsed
    estimator.update(0, elapsed, True)
    shape, time = (float(estimator._columns[name][0]) for name in ("shape", "time"))
    mean, variance = exact_gamma_moments(10.0**log_shape, 10.0**log_time, elapsed)
    assert shape / time == pytest.approx(mean, rel=1e-9)
    assert shape / time**2 == pytest.approx(variance, rel=1e-6)


def test_an_unchanged_visit_adds_its_time_to_the_gamma_posterior():
    """The time is added exactly, and the shape stays."""
    estimator = GammaPosterior(1, 2.0, 100.0)
    estimator.update(0, 7.0, False)
    assert estimator._columns["shape"].tolist() == [2.0]
    assert estimator._columns["time"].tolist() == [107.0]


def test_frequency_classes_multiply_prior_and_likelihood():
    """Probabilities are Bayes' rule."""
    classes = FrequencyClasses(2, [1e-5, 1e-6, 1e-7], prior=[1, 2, 1])
    for elapsed, changed in [(1e6, True), (2e6, False), (1e5, True)]:
        classes.update(0, elapsed, changed)
    rates = np.array([1e-5, 1e-6, 1e-7])
    weight = np.array([1, 2, 1]) * -np.expm1(-rates * 1e6) * np.exp(-rates * 2e6) * -np.expm1(-rates * 1e5)
    assert classes.probabilities(0) == pytest.approx(weight / weight.sum(), rel=1e-12)
    assert classes.probabilities()[1] == pytest.approx([0.25, 0.5, 0.25])


@pytest.mark.parametrize("name", POINT_ESTIMATORS)
def test_a_forgotten_page_is_as_one_that_was_never_visited(name):
    """Nothing is left of its visits, and the page beside it keeps what is known of it."""
    learned, anew = LearnedRates(name, 2, 1 / 3600), LearnedRates(name, 1, 1 / 3600)
    for changed in (True, False, True):
        learned.observe(np.array([0, 1]), np.array([10.0, 20.0]), np.array([changed, True]))
    beside = learned.packed(np.array([1]))
    learned.forget(np.array([0]))
    for rates in (learned, anew):
        rates.observe(0, 100.0, True)
        rates.observe(0, 30.0, False)
    assert learned.packed(np.array([0])) == anew.packed(np.array([0]))
    assert learned.packed(np.array([1])) == beside
