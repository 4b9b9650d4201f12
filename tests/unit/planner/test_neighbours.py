"""Neighbours: pages that are next in number and change together announce each other, and others do not."""

import json

import numpy as np
import pytest

from crawlsched.pages import LIVE, Pages
from crawlsched.planner import Plan, Planner, plan, planner_arrays, planner_facts, restore_planner
from crawlsched.planner.evidence.neighbours import CHANGED, STRENGTH, UNCHANGED, Neighbours
from crawlsched.simulation import History, replay
from tests.hosts import never_rests

DAY = 86_400.0
SECTION = 16


def crawled_pages(crawled_at: np.ndarray, host: np.ndarray | None = None) -> Pages:
    pages = Pages()
    pages.add(np.zeros(crawled_at.size, np.int32) if host is None else host, 0.0)
    pages.crawled_at[: crawled_at.size] = crawled_at
    pages.state[: crawled_at.size] = LIVE
    return pages


def sections(seed: int, n_pages: int, edits: float, own: float, seconds: float) -> History:
    """Make pages of which each 16 are edited together, and which change on their own, at Poisson times."""
    rng = np.random.default_rng(seed)
    rows, times = [], []
    for begin in range(0, n_pages, SECTION):
        members = np.arange(begin, min(begin + SECTION, n_pages))
        for time in rng.uniform(0.0, seconds, rng.poisson(edits * seconds)):
            rows.append(members)
            times.append(np.full(members.size, time))
    for page in range(n_pages):
        alone = rng.uniform(0.0, seconds, rng.poisson(own * seconds))
        rows.append(np.full(alone.size, page))
        times.append(alone)
    row, time = np.concatenate(rows), np.concatenate(times)
    return numbered(n_pages, row, time, np.arange(n_pages))


def numbered(n_pages: int, row: np.ndarray, time: np.ndarray, numbers: np.ndarray) -> History:
    row = numbers[row]
    order = np.lexsort((time, row))
    return History(
        page=np.arange(n_pages),
        birth=np.zeros(n_pages),
        end=np.full(n_pages, np.inf),
        importance=np.ones(n_pages),
        change_rows=row[order],
        change_times=time[order],
    )


def test_a_change_is_news_of_the_neighbours_as_far_as_it_came_after_their_crawl_and_was_a_surprise() -> None:
    """Found between 0 and 10, unlikely by 0.8, it is of a page crawled at 4 with probability 0.8 times 0.6."""
    crawled_at = np.zeros(40)
    crawled_at[21] = 4.0
    neighbours = Neighbours(crawled_pages(crawled_at))
    neighbours.contest.best[:] = 0.5
    told = neighbours.hear(20, 10.0, 0.8, True, expected=False).tolist()
    assert told == [page for page in range(12, 29) if page != 20]
    assert neighbours.heard[21, STRENGTH] / 255 == pytest.approx(0.48, abs=0.002)
    assert neighbours.heard[19, STRENGTH] / 255 == pytest.approx(0.8, abs=0.002)
    assert neighbours.evidence_one(21) == pytest.approx(-np.log(1 - 0.5 * 0.48), abs=1 / 64)
    assert neighbours.evidence(np.array([11, 19, 20])) == pytest.approx([0, -np.log(1 - 0.5 * 0.8), 0], abs=1 / 64)


def test_what_restless_pages_do_is_no_news() -> None:
    """A change that was nearly sure to be found says nothing of the pages next to it."""
    neighbours = Neighbours(crawled_pages(np.zeros(10)))
    neighbours.contest.best[:] = 0.98
    assert neighbours.hear(5, 10.0, 0.01, True, expected=False).size == 0
    assert not neighbours.heard.any()


def test_pages_of_other_hosts_and_pages_without_a_copy_are_no_neighbours() -> None:
    """Nothing is heard by the next page of another host, nor by one that is not crawled or gone."""
    pages = crawled_pages(np.zeros(6), np.array([0, 0, 1, 0, 0, 0], np.int32))
    pages.crawled_at[3], pages.state[3] = -np.inf, 1
    pages.state[4] = 3
    neighbours = Neighbours(pages)
    neighbours.contest.best[:] = 0.5
    assert neighbours.hear(1, 10.0, 0.9, True, expected=False).tolist() == [0, 5]


def test_neighbours_found_unchanged_after_a_change_take_it_back() -> None:
    """The share of changed ones falls from 1/2 to 1/3 and 1/4; who had heard of no change has nothing to take back."""
    neighbours = Neighbours(crawled_pages(np.zeros(8)))
    neighbours.contest.best[:7] = [0.0, 0.2, 0.6, 0.6, 0.6, 0.6, 0.6]
    for page, changed in enumerate((False, True, False, False)):
        neighbours.hear(page, 10.0, 0.9, changed, expected=False)
    assert neighbours.heard[7].tolist()[:2] == [1, 2]
    assert neighbours.evidence_one(7) == pytest.approx(-np.log(1 - 0.2 * 0.9), abs=1 / 64)


def test_a_visit_ends_what_was_heard_before_it() -> None:
    """Of a page that was just crawled nothing is known from before, by its own visit or when it is forgotten."""
    neighbours = Neighbours(crawled_pages(np.zeros(8)))
    neighbours.contest.best[:] = 0.5
    neighbours.hear(2, 10.0, 0.9, True, expected=False)
    neighbours.hear(3, 11.0, 0.9, False, expected=False)
    neighbours.forget(4)
    neighbours.free(np.array([5]))
    assert neighbours.evidence(np.arange(8)).astype(bool).tolist() == [True] * 2 + [False] * 4 + [True] * 2


def test_many_visits_stay_within_their_byte() -> None:
    """After a thousand visits to neighbours, nine in ten of them changed, the share is still about nine tenths."""
    neighbours = Neighbours(crawled_pages(np.zeros(2)))
    neighbours.make_room(2)
    for visit in range(1000):
        neighbours._pages.crawled_at[0] = float(visit)
        neighbours.heard[0] = 1, 0, 255, 0
        neighbours.hear(0, visit + 1.0, 0.9, visit % 10 > 0, expected=False)
    changed, unchanged = (int(neighbours.heard[1, column]) for column in (CHANGED, UNCHANGED))
    assert changed < 255
    assert changed / (changed + unchanged) == pytest.approx(0.9, abs=0.02)


def test_worth_is_the_maximum_of_the_likelihood() -> None:
    """What visits at one height are worth is what brute force over both probabilities finds."""
    rng = np.random.default_rng(4)
    neighbours, likelihood = Neighbours(Pages()), np.zeros((8, 12))
    worth = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.9, 0.98])
    more_often = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4])
    for _ in range(1280):
        fresh, strength = rng.uniform(0.5, 1.0), rng.uniform()
        changed = bool(rng.random() > fresh * 0.9 * (1 - 0.4 * strength))
        neighbours.contest.foretold(3, strength, fresh, changed)
        unchanged = fresh * (1 - more_often[:, None]) * (1 - worth * strength)
        likelihood += np.log(1 - unchanged if changed else unchanged)
    likelihood[:, 1:] -= 10.0
    best = np.unravel_index(likelihood.argmax(), likelihood.shape)
    assert neighbours.contest.best[3] == worth[best[1]] in (0.3, 0.4, 0.5)
    assert not np.delete(neighbours.contest.best, 3).any()


def test_pages_that_change_more_often_than_expected_are_not_blamed_on_their_neighbours() -> None:
    """Where visits find 20 % more changed than foretold, with news or without, neighbours stay worth nothing."""
    rng = np.random.default_rng(5)
    neighbours = Neighbours(Pages())
    for _ in range(6400):
        fresh = rng.uniform(0.5, 1.0)
        heard = int(rng.integers(15))
        strength = rng.uniform() if heard < 14 else 0.0
        neighbours.contest.foretold(heard, strength, fresh, bool(rng.random() > fresh * 0.8))
    assert not neighbours.contest.best.any()


def test_pages_that_never_change_are_judged_apart_from_those_that_do() -> None:
    """Where half of the pages change together by the clock and the others never do, only the first are told of it."""
    planner, now = Planner(1.0), 0.0
    planner.add(0, 0.0, n=32)
    rng, seen, changed_at = np.random.default_rng(9), np.full(32, -1.0), 0.0
    for visit in range(1, 2001):
        now = float(visit)
        changed_at = now if rng.random() < 0.01 else changed_at
        pick = planner.pick(now, never_rests)
        assert pick is not None
        page = pick.page
        changed = page % 2 == 0 and changed_at > seen[page]
        planner.crawled(page, now, changed if seen[page] >= 0.0 else None)
        seen[page] = now
        if visit % 64 == 0:
            planner.adopt(plan(planner.snapshot(), 1.0, previous=planner.plan), now)
    worth = planner.neighbours.contest.best
    assert worth[:7].max() >= 0.2, worth
    assert worth[7:].max() <= 0.02, worth
    assert planner.pages.n_crawls[1:32:2].mean() < 0.7 * planner.pages.n_crawls[0:32:2].mean()


@pytest.mark.statistics
def test_sections_that_are_edited_together_are_found_out_and_kept_fresher() -> None:
    """The default keeps pages fresher that change with the next ones in number than the same pages in random order."""
    n_pages, seconds = 128, 400.0
    window, ahead = {"start": 0.0, "end": seconds, "measure_from": seconds / 2}, []
    numbers = np.random.default_rng(2).permutation(n_pages)
    for seed in range(1, 5):  # of a single site the difference is off by 0.03
        together = sections(seed, n_pages, edits=1 / 150, own=1 / 1500, seconds=seconds)
        shuffled = numbered(n_pages, together.change_rows, together.change_times, numbers)
        one, other = (replay(history, 3.0, **window) for history in (together, shuffled))
        ahead.append(one.freshness - other.freshness)
    assert np.mean(ahead) > 0.02


def planner_with_sections(n_pages: int, bandwidth: float, rounds: int, check: bool = False) -> Planner:
    """Crawl pages of which each 16 change together, planning now and then; check picks against brute force."""
    rng = np.random.default_rng(6)
    planner = Planner(bandwidth)
    planner.add(0, 0.0, n=n_pages)
    changed_at, before = np.full(n_pages, -np.inf), np.full(n_pages, -np.inf)
    for visit in range(rounds * n_pages):
        now = visit / bandwidth
        if rng.random() < 0.05:
            begin = int(rng.integers(n_pages // SECTION)) * SECTION
            changed_at[begin : begin + SECTION] = now
        pick = planner.pick(now, never_rests)
        assert pick is not None
        if check:
            others = np.array([page for page in range(n_pages) if page != pick.page])
            assert pick.crawl_value >= planner.values.value_at(others, now).max() * 0.95
        first = before[pick.page] == -np.inf
        planner.crawled(pick.page, now, None if first else bool(changed_at[pick.page] > before[pick.page]))
        before[pick.page] = now
        if visit % n_pages == n_pages - 1:
            planner.adopt(plan(planner.snapshot(), bandwidth, previous=planner.plan), now)
            while planner.work(now):
                pass
    return planner


def test_every_pick_is_the_best_page_by_what_its_neighbours_say() -> None:
    """Brute force over all pages finds nothing better, while neighbours are believed."""
    planner = planner_with_sections(48, 0.01, 20, check=True)
    assert planner.neighbours.contest.best.any()


def test_a_restart_remembers_what_neighbours_are_worth_and_what_they_said() -> None:
    """A plan, as JSON, brings what was learned; what was heard comes back either way; older plans know nothing."""
    planner = planner_with_sections(48, 0.01, 20)
    pages = np.arange(48)
    evidence = planner.neighbours.evidence(pages)
    assert evidence.any()
    data = json.loads(json.dumps(planner.plan.to_dict()))
    restored, read = Planner(0.01), Planner(0.01)
    for again in (restored, read):
        again.adopt(Plan.from_dict(data), 0.0)
        again.work(0.0)
        assert again.neighbours.contest.losses == pytest.approx(planner.plan.neighbour_losses)
    arrays = {name: np.array(array) for name, array in planner_arrays(planner).items()}
    restore_planner(restored, planner_facts(planner), arrays, planner.now)
    columns = planner.columns(pages)
    read.load(columns, columns["log_likelihood"], planner.now)
    read.load_neighbours(planner.neighbours.heard[:48].copy(), planner.now)
    for again in (restored, read):
        assert (again.neighbours.evidence(pages) == evidence).all()
        assert (again.values.value_at(pages, planner.now) == planner.values.value_at(pages, planner.now)).all()
        again.frontier._check(planner.now)
    del data["neighbour_losses"]
    assert Plan.from_dict(data).neighbour_losses is None
