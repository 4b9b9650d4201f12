"""Several sources of one page add up where they announce different changes, and count once where the same ones."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from crawlsched.change_signals import attributed
from crawlsched.pages import Pages
from crawlsched.planner import Planner, explain, plan
from crawlsched.planner.evidence.further_sources import MOST_SOURCES, FurtherSources
from tests.hosts import never_rests

FIRST, SECOND = 0, 1


def _crawled_page(n_sources: int, now: float = 0.0) -> Planner:
    planner = Planner(1.0)
    planner.add(0, now)
    planner.pick(now, never_rests)
    planner.crawled(0, now, None)
    for source in range(n_sources):
        planner.covered([0], source, now)
    return planner


def _counts(planner: Planner) -> list[int]:
    return [one.n_signals for one in planner.further.of(0)]


def test_announcements_far_apart_add_up() -> None:
    """Each source counts its own, and the evidence is the sum of what each is worth."""
    planner = _crawled_page(2)
    planner.signalled([0], FIRST, 100.0, since=90.0)
    planner.signalled([0], SECOND, 300.0, since=200.0)
    assert _counts(planner) == [1, 1]
    planner.pick(400.0, never_rests)
    found = planner.crawled(0, 400.0, True)
    assert found is not None
    assert found.evidence == pytest.approx(2 * np.log(2))  # before anything is known a precision of one half
    assert (found.source, found.n_signals, found.further) == (FIRST, 1, ((SECOND, 1),))
    assert _counts(planner) == [0, 0]


def test_announcements_of_the_same_change_count_once() -> None:
    """The second source had not been read since before the first one announced, so it may be the same change."""
    planner = _crawled_page(2)
    planner.signalled([0], FIRST, 100.0, since=90.0)
    planner.signalled([0], SECOND, 105.0, since=95.0)
    assert sum(_counts(planner)) == 1


def test_a_change_that_a_visit_has_seen_is_no_news_from_another_source() -> None:
    """What the second source announces was announced before the visit by the first."""
    planner = _crawled_page(2)
    planner.signalled([0], FIRST, 100.0, since=90.0)
    planner.pick(102.0, never_rests)
    planner.crawled(0, 102.0, True)
    planner.signalled([0], SECOND, 105.0, since=95.0)
    assert _counts(planner) == [0, 0]
    planner.signalled([0], SECOND, 205.0, since=195.0)
    assert _counts(planner) == [0, 1]


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


def test_what_is_stored_comes_back() -> None:
    """Counts of all sources, and when each announced last."""
    planner = _crawled_page(3)
    planner.signalled([0], SECOND, 50.0, since=45.0)
    planner.signalled([0], FIRST, 100.0, since=90.0)
    rows = planner.further.stored(np.array([0]))
    again = Planner(1.0)
    again.load(planner.columns([0]), None, 200.0)
    again.load_further([(page, source, *row) for (page, source), row in rows.items()], 200.0)
    assert sorted(one[:6] for one in again.further.of(0)) == sorted(one[:6] for one in planner.further.of(0))
    assert sorted(again.further.of(0), key=lambda one: one.source)[0].signalled_at == 100.0
    before, after = (explain(one, 0, 300.0).crawl_value for one in (planner, again))
    assert after == pytest.approx(before)


# -- a simulation with known truth


@dataclass
class Truth:
    """Pages that change at random, and what two sources announce of that: (time, page, source)."""

    changes: list[tuple[float, int]]
    announced: list[tuple[float, int, int]]


def _world(announce: Callable[[np.random.Generator], tuple[bool, bool]], seed: int) -> Truth:
    rng = np.random.default_rng(seed)
    changes, announced = [], []
    for page in range(N_PAGES):
        for time in np.cumsum(rng.exponential(1 / CHANGE_RATE, 400)).tolist():
            if time > END:
                break
            changes.append((time, page))
            for source, told in enumerate(announce(rng)):
                if told:
                    announced.append((time + float(rng.exponential(DELAY)), page, source))
        for source in (FIRST, SECOND):
            for time in rng.uniform(0.0, END, rng.poisson(FALSE_RATE * END)).tolist():
                announced.append((time, page, source))
    return Truth(sorted(changes), sorted(announced))


N_PAGES, CHANGE_RATE, FALSE_RATE, DELAY = 120, 1 / 150.0, 1 / 1500.0, 0.5
BANDWIDTH, END, MEASURED_FROM = 0.6, 5000.0, 2500.0


def _run(truth: Truth, seed: int, sources: tuple[int, ...]) -> tuple[float, float, list[float]]:
    """Crawl with the production planner; return true and predicted freshness, and the weights learned."""
    planner = Planner(BANDWIDTH)
    pages = planner.add(0, 0.0, n=N_PAGES)
    for source in sources:
        planner.covered(pages, source, 0.0)
    fresh = np.zeros(N_PAGES, bool)
    visits: list[tuple[int, float, int, int, bool]] = []
    made = None
    true, predicted = [], []
    events = [(time, 0, page, -1) for time, page in truth.changes]
    events += [(time, 1, page, source) for time, page, source in truth.announced if source in sources]
    events += [(slot / BANDWIDTH, 2, -1, -1) for slot in range(1, int(END * BANDWIDTH))]
    heapq.heapify(events)
    changed_since = np.zeros(N_PAGES, bool)
    while events:
        now, kind, page, source = heapq.heappop(events)
        if kind == 0:
            fresh[page], changed_since[page] = False, True
        elif kind == 1:
            # Read at most ten delays after the change, and asked for all the time.
            planner.signalled([page], source, now, since=now - 10 * DELAY)
        else:
            pick = planner.pick(now, never_rests)
            assert pick is not None
            page = pick.page
            first = planner.pages.crawled_at[page] == -np.inf
            found = planner.crawled(page, now, None if first else bool(changed_since[page]))
            fresh[page], changed_since[page] = True, False
            if found is not None:
                heard = attributed([(found.source, found.n_signals), *found.further])
                visits.extend((page, found.elapsed, n, one, found.changed) for one, n in heard)
            n_visits = len(visits)
            if n_visits and (made is None or now - made.time > 500.0) and now > 300.0:
                columns = zip(*visits, strict=True)
                named = zip(("page", "elapsed", "n_signals", "source", "changed"), columns, strict=True)
                made = plan(planner.snapshot(), BANDWIDTH, {name: np.array(c) for name, c in named}, made)
                planner.adopt(made, now)
            if now > MEASURED_FROM and int(now * BANDWIDTH) % 20 == 0:
                true.append(float(fresh.mean()))
                predicted.append(_expected_freshness(planner, pages, now))
    assert made is not None
    return float(np.mean(true)), float(np.mean(predicted)), made.signal_weights.tolist()


def _expected_freshness(planner: Planner, pages: np.ndarray, now: float) -> float:
    """Return the mean of exp(-α τ - κ n), expected over the rates α that are still possible."""
    elapsed = now - planner.pages.crawled_at[pages]
    stale = np.exp(-planner.posterior.rates * elapsed[:, np.newaxis])
    _, signal_weight = planner.announcements.signals(pages)
    heard = np.exp(-signal_weight * planner.announcements.known(pages)[2])
    return float((np.vecdot(planner.values.weights(pages), stale) * heard).mean())


def _disjoint(rng: np.random.Generator) -> tuple[bool, bool]:
    draw = rng.random()
    return draw < 0.45, 0.45 <= draw < 0.9


def _coincident(rng: np.random.Generator) -> tuple[bool, bool]:
    told = rng.random() < 0.45
    return told, told


@pytest.mark.statistics
def test_disjoint_sources_add_up_and_the_prediction_is_calibrated() -> None:
    """With both sources pages are clearly fresher than with one, and as fresh as the planner says."""
    truths = {seed: _world(_disjoint, seed) for seed in (1, 3, 4)}
    one, _, _ = _run(truths[1], 1, (FIRST,))
    runs = [_run(truth, seed, (FIRST, SECOND))[:2] for seed, truth in truths.items()]
    assert runs[0][0] > one + 0.02
    both, predicted = np.mean(runs, axis=0)
    assert predicted == pytest.approx(both, abs=0.06)


@pytest.mark.statistics
def test_coincident_sources_count_once_and_the_prediction_is_calibrated() -> None:
    """A second source that says the same brings nothing, costs nothing, and does not make the planner too sure."""
    truth = _world(_coincident, 2)
    one, _, _ = _run(truth, 2, (FIRST,))
    both, predicted, _ = _run(truth, 2, (FIRST, SECOND))
    assert both == pytest.approx(one, abs=0.03)
    assert predicted == pytest.approx(both, abs=0.06)
