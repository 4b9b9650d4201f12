"""How far a page's own announcements can be trusted is learned from its own visits, as Bayes' rule has it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.estimators.page_precision import expected_evidence, judged
from crawlsched.planner import Planner, explain
from tests.planners import crawled_pages, never_rests

HALF = 0.5 * (1.0 + np.polynomial.legendre.leggauss(400)[0])
WEIGHTS = 0.5 * np.polynomial.legendre.leggauss(400)[1]
COUNTS = st.floats(2.0, 300.0)
SIGNALS = st.integers(1, 100)


def moments(true: float, false: float, n_signals: int, known: float, fresh: float) -> tuple[float, float, float]:
    """Return chance, mean and second moment of the precision after a visit, by numerical integration."""
    log_density = (true - 1) * np.log(HALF) + (false - 1) * np.log1p(-HALF)
    prior = WEIGHTS * np.exp(log_density - log_density.max())
    prior /= prior.sum()
    posterior = prior * (known + fresh * (1 - HALF) ** n_signals)
    chance = posterior.sum()
    return chance, posterior @ HALF / max(chance, 1e-300), posterior @ HALF**2 / max(chance, 1e-300)


@given(COUNTS, COUNTS, SIGNALS)
def test_evidence_is_expected_over_all_precisions(true: float, false: float, n_signals: int) -> None:
    """It is -log E[(1 - p)^n], below and beyond the announcements that are taken one by one."""
    fresh, _, _ = moments(true, false, n_signals, 0.0, 1.0)
    if fresh > 1e-200:
        assert expected_evidence(true, false, n_signals) == pytest.approx(-np.log(fresh), rel=1e-6, abs=1e-9)


@given(COUNTS, COUNTS, SIGNALS, st.floats(0.0, 1.0), st.floats(0.0, 0.9), st.booleans())
def test_a_visit_leaves_the_mean_and_variance_that_bayes_rule_gives(
    true: float, false: float, n_signals: int, fresh: float, doubt: float, changed: bool
) -> None:
    """Whatever it found, and also where an unchanged page may only look so."""
    found = (1.0, -fresh) if changed else (doubt, (1.0 - doubt) * fresh)
    chance, mean, square = moments(true, false, n_signals, *found)
    if chance < 1e-6:
        return
    after = judged(true, false, n_signals, *found)
    assert after[0] / sum(after) == pytest.approx(mean, rel=1e-5)
    variance = after[0] * after[1] / (sum(after) ** 2 * (sum(after) + 1))
    assert variance == pytest.approx(square - mean**2, rel=1e-4)


def visited(planner: Planner, page: int, now: float, changed: bool, announced: bool = True) -> None:
    """Let a page be visited and found changed or not, after an announcement or without."""
    if announced:
        planner.signalled([page], 0, now - 1.0)
    planner.force([page], now)
    pick = planner.pick(now, never_rests)
    assert pick.page == page
    planner.crawled(page, now, changed)


def two_pages() -> Planner:
    """Return a planner of two pages of one source: of one all announcements are true, of the other all are false.

    Neither changes without an announcement.
    """
    planner = crawled_pages(2, sources=[0])
    for visit in range(1, 13):
        for page in (0, 1):
            visited(planner, page, 3600.0 * visit - 1800.0 + page, changed=False, announced=False)
            visited(planner, page, 3600.0 * visit + page, changed=page == 0)
    return planner


def test_pages_of_one_source_are_told_apart() -> None:
    """Each by its own visits; and what one announcement raises its crawl value by with it."""
    planner = two_pages()
    trusted, doubted = (explain(planner, page, 50_000.0)["precision"] for page in (0, 1))
    assert trusted > 0.7
    assert doubted < 0.2
    planner.signalled([0, 1], 0, 50_000.0)
    fresh = [explain(planner, page, 50_001.0)["expected_freshness"] for page in (0, 1)]
    assert fresh[0] < 0.3
    assert fresh[1] > 0.7


def test_a_page_that_is_forgotten_takes_its_evidence_along() -> None:
    """What was learned of it is gone, that of the other page is not."""
    planner = two_pages()
    planner.remove([0])
    kept = planner.own_precision.columns(np.arange(2))
    assert kept["true_signals"][0] == kept["false_signals"][0] == 0
    assert kept["false_signals"][1] == pytest.approx(12.0, rel=1e-4)


@pytest.mark.parametrize(("n_useless", "at_most"), [(10, 10), (50, 70)])
def test_a_page_whose_announcements_become_true_is_believed_again_within_a_bounded_number_of_visits(
    n_useless: int, at_most: int
) -> None:
    """Half as far as a page that was always right: 7 and 66 visits after 10 and 50 useless announcements."""
    planner = crawled_pages(2, sources=[0])
    for visit in range(1, n_useless + at_most + 1):
        for page in (0, 1) if visit > n_useless else (0,):
            now = 200.0 * visit + page
            visited(planner, page, now - 100.0, changed=False, announced=False)
            visited(planner, page, now, changed=visit > n_useless)
        reformed, honest = -np.expm1(-planner.announcements.signals(np.arange(2))[1])
        if visit == n_useless:
            assert reformed < 0.2
        if visit > n_useless and reformed >= 0.5 * honest:
            return
    pytest.fail(f"not believed after {at_most} visits: {reformed}, {honest}")


def test_each_source_of_a_page_is_judged_by_itself() -> None:
    """The first one is always wrong of this page, the second always right; on another page it is the other way round.

    What a first source has proved of a page makes its announcements worth less than those of the second, and what both
    say adds up.
    """
    planner = crawled_pages(2, sources=(0, 1))
    for visit in range(1, 21):
        for page in (0, 1):
            right, wrong = (1, 0) if page == 0 else (0, 1)
            now = 8000.0 * visit + 4000.0 * page
            planner.signalled([page], wrong, now - 2001.0)
            planner.crawled(page, now - 2000.0, False)
            planner.signalled([page], right, now - 1.0)
            planner.crawled(page, now, True)

    def precision(page: int, source: int, now: float) -> float:
        before = planner.announcements.evidence(np.array([page]))
        planner.signalled([page], source, now)
        return float(-np.expm1(before - planner.announcements.evidence(np.array([page])))[0])

    now, found = 200_000.0, np.zeros((2, 2))
    for page in (0, 1):
        for source in (0, 1):
            found[page, source] = precision(page, source, now := now + 5000.0)
    assert found[0, 0] == pytest.approx(found[1, 1], abs=0.05)
    assert found[0, 1] == pytest.approx(found[1, 0], abs=0.05)
    assert found[0, 0] < 0.15
    assert found[0, 1] > 0.8
