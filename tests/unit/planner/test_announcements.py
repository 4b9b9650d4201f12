"""What announcements are worth: for each page, for each site of a source, and where several speak of one page."""

import json
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.change_signals import newest_of_each
from crawlsched.estimators.page_precision import expected_evidence, judged
from crawlsched.pages import Pages
from crawlsched.planner import Plan, Planner, explain, plan
from crawlsched.planner.evidence.further_sources import MOST_SOURCES, FurtherSources
from crawlsched.planner.plans.parameters import SignalGroups
from tests.planners import crawled_pages, never_rests, slots

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


FIRST, SECOND = 0, 1


@pytest.mark.parametrize(
    ("heard", "counts"),
    [
        pytest.param([(FIRST, 100, 90), (SECOND, 300, 200)], [1, 1], id="far apart, they add up"),
        pytest.param([(FIRST, 100, 90), (SECOND, 105, 95)], [1, 0], id="both may announce the same change"),
        pytest.param([(FIRST, 100, 90), 102, (SECOND, 105, 95)], [0, 0], id="the visit has seen that change"),
        pytest.param([(FIRST, 100, 90), 102, (SECOND, 105, 95), (SECOND, 205, 195)], [0, 1], id="and then another"),
    ],
)
def test_a_change_counts_once_whoever_announces_it(heard: list[Any], counts: list[int]) -> None:
    """A source that had not been read since before another one's announcement may announce the same; visits end it.

    Each is (source, when it announced, when it had been read before), or the time of a visit.
    """
    planner = crawled_pages(1, sources=(FIRST, SECOND))
    for what in heard:
        if isinstance(what, tuple):
            planner.signalled([0], what[0], what[1], since=what[2])
        else:
            slots(planner, [what])
    assert [one.n_signals for one in planner.further.of(0)] == counts


def test_the_evidence_of_several_sources_is_the_sum_of_what_each_is_worth() -> None:
    planner = crawled_pages(1, sources=(FIRST, SECOND))
    planner.signalled([0], FIRST, 100.0, since=90.0)
    planner.signalled([0], SECOND, 300.0, since=200.0)
    found = planner.crawled(planner.pick(400.0, never_rests).page, 400.0, True)
    assert found.evidence == pytest.approx(2 * np.log(2))  # before anything is known a precision of one half
    assert (found.source, found.n_signals, found.further) == (FIRST, 1, ((SECOND, 1),))


def test_sources_that_come_together_by_chance_only_count_both() -> None:
    """Each was read often without the other's having announced anything, as it would if they had the same changes."""
    planner = crawled_pages(1, sources=(FIRST, SECOND))
    for turn in range(1, 31):
        planner.signalled([0], FIRST, 1000.0 * turn, since=1000.0 * turn - 500.0)
        planner.signalled([0], SECOND, 1000.0 * turn + 500.0, since=1000.0 * turn + 1.0)
    first, second = (one.n_signals for one in planner.further.of(0))
    planner.signalled([0], FIRST, 31_000.0, since=30_990.0)
    planner.signalled([0], SECOND, 31_005.0, since=30_995.0)
    assert [one.n_signals for one in planner.further.of(0)] == [first + 1, second + 1]


def test_a_page_listens_to_a_bounded_number_of_sources() -> None:
    """Whoever makes up names of sources does not take memory for it."""
    pages = Pages()
    rows = pages.add(host=np.zeros(3, int), now=0.0)
    further = FurtherSources(pages)
    pages.source[rows] = 0
    for source in range(1, 50):
        further.cover(rows, source, 0.0)
    assert [len(further.of(page)) for page in rows] == [MOST_SOURCES] * 3
    further.free(rows)
    assert len(further) == 0
    further.cover(rows, 7, 0.0)
    assert [[one.source for one in further.of(page)] for page in rows] == [[0, 7]] * 3


NEWS, SHOP = 0, 1
_Group = namedtuple("_Group", ("source", "host", "signal_weight", "signal_rate", "n_heard"))


def _group(groups: SignalGroups, source: int, host: int) -> _Group | None:
    """Return the group of a source and a site; None if it has none."""
    row = int(groups.rows(np.array([source]), np.array([host]))[0])
    return None if row < 0 else _Group(*groups.to_list()[row])


def _visits(rng: np.random.Generator, n: int, weight: float, source: int, host: int) -> dict[str, Any]:
    """Return visits to pages of one group, whose announcements are worth `weight` nats."""
    elapsed = rng.exponential(100.0, n)
    n_signals = rng.poisson(0.01 * elapsed)
    changed = rng.random(n) < -np.expm1(-(0.002 * elapsed + weight * n_signals))
    columns = {"elapsed": elapsed, "n_signals": n_signals, "changed": changed}
    return columns | {name: np.full(n, value) for name, value in (("source", source), ("host", host))}


def _joined(*visits: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([each[name] for each in visits]) for name in visits[0]}


def _planner(n_pages: int = 4) -> Planner:
    """Return a planner whose pages are of two sites by turns, all covered by one source."""
    planner = Planner(1.0)
    pages = planner.add(np.where(np.arange(n_pages) % 2 == 0, NEWS, SHOP), 0.0)
    planner.covered(pages, 0, 0.0)
    return planner


# -- learning


def test_sites_are_learned_where_a_source_has_several() -> None:
    """Two sites of one source get what their own visits show; the one site of another source is that source."""
    rng = np.random.default_rng(5)
    visits = _joined(
        _visits(rng, 2000, 3.0, 0, NEWS), _visits(rng, 2000, 0.0, 0, SHOP), _visits(rng, 2000, 1.0, 1, NEWS)
    )
    groups = plan(_planner().snapshot(), 1.0, visits).signal_groups
    assert len(groups) == 2
    for host, weight in ((NEWS, 3.0), (SHOP, 0.0)):
        group = _group(groups, 0, host)
        assert group[:2] == (0, host)
        assert -np.expm1(-group.signal_weight) == pytest.approx(-np.expm1(-weight), abs=0.05)
    assert _group(groups, 1, NEWS) is None


def test_a_site_that_changes_often_is_believed_beside_one_that_is_stamped_and_never_changes() -> None:
    """Taken together announcements and changes have nothing to do with each other; that must not count against it."""
    rng = np.random.default_rng(3)
    news = _visits(rng, 400, 1.0, 0, NEWS)
    fast = rng.random(400) < -np.expm1(-(0.006 * news["elapsed"] + 1.0 * news["n_signals"]))
    shop = _visits(rng, 400, 0.0, 0, SHOP)
    stamped = shop | {"n_signals": shop["n_signals"] + 2, "changed": np.zeros(400, bool)}
    made = plan(_planner().snapshot(), 1.0, _joined(news | {"changed": fast}, stamped))
    assert -np.expm1(-made.signal_weights[0]) < 0.1
    believed, other = _group(made.signal_groups, 0, NEWS), _group(made.signal_groups, 0, SHOP)
    assert -np.expm1(-believed.signal_weight) == pytest.approx(-np.expm1(-1.0), abs=0.15)
    assert -np.expm1(-other.signal_weight) < 0.02


@pytest.mark.parametrize(("before", "after"), [(0.0, 2.5), (2.5, 0.0)])
def test_a_site_that_changes_its_ways_is_known_again_within_bounded_visits(before: float, after: float) -> None:
    """However long it lied or was honest: a thousand visits that heard of its source are all that counts."""
    rng = np.random.default_rng(12)

    def both(n: int, of_shop: float) -> dict[str, Any]:
        visits = _joined(_visits(rng, n, 2.5, 0, NEWS), _visits(rng, n, of_shop, 0, SHOP))
        mixed = rng.permutation(2 * n)
        return {name: column[mixed] for name, column in visits.items()}

    newest_first = _joined(both(2000, after), both(20_000, before))
    heard = newest_of_each(newest_first, 1000)
    shop = _group(plan(_planner().snapshot(), 1.0, heard).signal_groups, 0, SHOP)
    assert -np.expm1(-shop.signal_weight) == pytest.approx(-np.expm1(-after), abs=0.06)


def test_there_are_never_more_than_512_groups() -> None:
    """Those with most visits after an announcement have one."""
    n_sites = 600
    n = np.arange(n_sites) // 2 + 20
    host = np.repeat(np.arange(n_sites), n)
    rng = np.random.default_rng(7)
    visits = _visits(rng, host.size, 1.0, 0, 0) | {"host": host, "n_signals": np.ones(host.size, int)}
    groups = plan(_planner().snapshot(), 1.0, visits).signal_groups
    assert len(groups) == 512
    kept = [row[1] for row in groups.to_list()]
    assert min(kept) >= n_sites - 512 - 1


def test_visits_whose_pages_were_forgotten_count_for_the_source_only() -> None:
    """Their place is not known any more."""
    rng = np.random.default_rng(8)
    visits = _joined(_visits(rng, 500, 3.0, 0, -1), _visits(rng, 500, 3.0, 0, NEWS))
    made = plan(_planner().snapshot(), 1.0, visits)
    assert len(made.signal_groups) == 0
    assert made.signal_weights[0] > 2.0
    planner = _planner(3)
    planner.remove([1])
    assert planner.hosts([0, 1, 2]).tolist() == [NEWS, -1, NEWS]


def test_a_group_announces_at_a_rate_of_its_own() -> None:
    """Counted in its own pages, beside one announcement at the rate of its source."""
    planner = _planner(40)
    shop = np.arange(1, 40, 2)
    for now in np.arange(100.0, 2000.0, 100.0):
        planner.signalled(shop, 0, now)
    rng = np.random.default_rng(9)
    visits = _joined(_visits(rng, 500, 3.0, 0, NEWS), _visits(rng, 500, 0.0, 0, SHOP))
    groups = plan(planner.snapshot(), 1.0, visits).signal_groups
    news, shop_group = _group(groups, 0, NEWS), _group(groups, 0, SHOP)
    assert shop_group.signal_rate == pytest.approx(0.01, rel=0.1)
    assert news.signal_rate < 0.001


# -- what crawl values go by


def test_a_plan_keeps_its_groups_as_text_with_hosts_by_name() -> None:
    """Another process numbers hosts otherwise; one that knows no names does without."""
    rng = np.random.default_rng(11)
    visits = _joined(_visits(rng, 500, 3.0, 0, NEWS), _visits(rng, 500, 0.0, 0, SHOP))
    made = plan(_planner().snapshot(), 1.0, visits)
    data = json.loads(json.dumps(made.to_dict(["a.example", "b.example"])))
    read = Plan.from_dict(data, {"a.example": 3, "b.example": 7}.__getitem__)
    assert len(read.signal_groups) == 2
    group, original = _group(read.signal_groups, 0, 7), _group(made.signal_groups, 0, SHOP)
    assert group[2:] == original[2:]
    assert len(Plan.from_dict(data).signal_groups) == 0
