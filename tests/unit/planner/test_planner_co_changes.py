"""Co-changes: mass edits are found, nothing else is, and what they say of the pages not yet visited is used."""

import json

import numpy as np
import pytest

from crawlsched.planner import DEFAULT_GRID, Plan, Planner, plan
from crawlsched.planner.evidence.co_change_search import excess, find_co_changes
from crawlsched.planner.evidence.co_change_watch import CoChangeWatch, FoundCoChanges
from crawlsched.planner.parameters.co_changes import CoChanges, HostCoChanges
from tests.hosts import never_rests

DAY = 86_400.0


def visits_in_turn(n_pages: int, rounds: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return page, time and time of the visit before, of pages visited in turn once a second."""
    times = np.arange(1.0, rounds * n_pages + 1)
    return (times.astype(int) - 1) % n_pages, times, np.maximum(times - n_pages, 0.0)


def found_by(watch: CoChangeWatch) -> FoundCoChanges:
    """Search the visits to the first host to the end."""
    search = watch.search(0)
    while True:
        try:
            next(search)
        except StopIteration as end:
            return end.value


def changed_between(changes: list[np.ndarray], pages: np.ndarray, before: np.ndarray, times: np.ndarray) -> np.ndarray:
    found = [((changes[p] > b) & (changes[p] <= t)).any() for p, b, t in zip(pages, before, times, strict=True)]
    return np.array(found)


@pytest.mark.parametrize("share", [0.5, 0.8, 1.0])
def test_a_mass_edit_is_found_where_it_was_and_as_large_as_it_was(share: float) -> None:
    """Among 200 quiet pages, 300 visits after the edit, its moment is off by less than 10 visits."""
    rng = np.random.default_rng(1)
    pages, times, before = visits_in_turn(200, 3.5, rng)
    hit = rng.random(200) < share
    changes = [np.append(rng.exponential(4000.0, 1), 400.5 if h else np.inf) for h in hit]
    changed = changed_between(changes, pages, before, times)
    moments, evidence = find_co_changes(pages, before, times, np.full(times.size, 0.05), changed)
    near = np.abs(moments - 400.5) < 10
    assert evidence[near].sum() > 0.8 * evidence.sum()
    assert 1 - np.exp(-evidence[near].sum()) == pytest.approx(share, abs=0.25)


def test_pages_that_change_on_their_own_have_no_co_changes() -> None:
    """In 40 histories of 100 Poisson pages of all rates, nothing is found."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        pages, times, before = visits_in_turn(100, 20, rng)
        rate = rng.lognormal(-6.0, 1.5, 100)[pages]
        expected = rate * (times - before)
        changed = rng.random(times.size) < -np.expm1(-expected)
        assert find_co_changes(pages, before, times, expected, changed)[0].size == 0


def test_bursts_of_single_pages_are_no_co_change() -> None:
    """Five pages of a hundred that change at every visit of theirs, against all expectation, are not an edit of all."""
    rng = np.random.default_rng(3)
    pages, times, before = visits_in_turn(100, 10, rng)
    moments, _ = find_co_changes(pages, before, times, np.full(times.size, 0.01), pages < 5)
    assert moments.size == 0


def test_a_section_that_changed_is_no_co_change_of_the_site() -> None:
    """Thirty neighbouring pages of a thousand, visited one after another and all found changed, are no mass edit."""
    rng = np.random.default_rng(5)
    pages, times, before = visits_in_turn(1000, 2.03, rng)
    section = (pages < 30) & (times > 2000)
    assert section.sum() == 30
    moments, _ = find_co_changes(pages, before, times, np.full(times.size, 0.05), section)
    assert moments.size == 0
    scattered = rng.permutation(1000)[pages]
    assert find_co_changes(scattered, before, times, np.full(times.size, 0.05), section)[0].size


def test_the_excess_is_the_log_likelihood_ratio() -> None:
    """What a co-change explains is the log of the ratio of the probabilities with and without it."""
    assert float(excess(0.3, 0.4)) == pytest.approx(np.log((1 - np.exp(-0.7)) / (1 - np.exp(-0.3))))
    assert float(excess(1e-9, 0.4)) == pytest.approx(np.log((1 - np.exp(-0.5)) / (1 - np.exp(-0.1))))


def test_the_watch_raises_no_alarm_while_pages_do_as_expected() -> None:
    """Among 20,000 visits to Poisson pages the search runs a few times at most."""
    rng, watch = np.random.default_rng(4), CoChangeWatch()
    alarms = 0
    for number in range(20_000):
        expected = float(rng.choice([0.01, 0.1, 0.5, 2.0]))
        alarms += watch.visited(
            0,
            number % 700,
            float(number),
            number + 100.0,
            np.exp(-expected),
            0.0,
            bool(rng.random() < -np.expm1(-expected)),
        )
    assert alarms <= 20


def test_a_co_change_that_was_imagined_is_given_up() -> None:
    """Pages that are said to be stale and are not lead to a search, which finds nothing."""
    watch = CoChangeWatch()
    known = HostCoChanges(0.0, 100.0, np.array([50.0]), np.array([1.6]))
    alarms = [watch.visited(0, number, 10.0, 100.0 + number, 0.99, 1.6, False) for number in range(20)]
    assert any(alarms[:5])
    assert found_by(watch).beside(known).times.size == 0


def test_an_old_co_change_of_which_the_visits_kept_say_nothing_is_kept() -> None:
    """What was found long ago stays, as pages not crawled since are still stale."""
    watch = CoChangeWatch()
    known = HostCoChanges(0.0, 100.0, np.array([50.0]), np.array([1.6]))
    for number in range(20):
        watch.visited(0, number, 60.0 + number, 100.0 + number, 0.99, 0.0, False)
    assert found_by(watch).beside(known).times.tolist() == [50.0]


def test_a_copy_from_before_a_co_change_is_worth_a_visit_and_one_from_after_is_not() -> None:
    """Evidence counts for pages crawled before, on that host alone."""
    found = CoChanges({2: HostCoChanges(0.0, 9.0, np.array([3.0, 5.0]), np.array([0.2, 0.3]))})
    evidence = found.evidence(np.array([2, 2, 2, 2, 0], np.int32), np.array([1.0, 3.0, 4.0, 5.0, 1.0]))
    assert evidence == pytest.approx([0.5, 0.3, 0.3, 0.0, 0.0])
    assert [found.evidence_one(2, t) for t in (1.0, 4.0, 5.0)] == pytest.approx([0.5, 0.3, 0.0])


def mass_edit(n_pages: int, watched: bool) -> tuple[Planner, np.ndarray, list[bool]]:
    """Crawl quiet pages for a year, 20 visits a page; on day 300 all of the first host's change at once."""
    planner = Planner(bandwidth=20 * n_pages / (365 * DAY))
    # Neighbours say much the same: here it is to be seen what the watch does.
    planner.neighbours.visited = lambda *_, **__: np.empty(0, np.int64)  # type: ignore[method-assign]
    if not watched:
        planner.known.co_changes.watch.visited = lambda *_: False  # type: ignore[method-assign]
    host = (np.arange(n_pages) >= n_pages // 2).astype(int)
    planner.load(
        {
            "page": np.arange(n_pages),
            "state": np.full(n_pages, 2),
            "importance": np.ones(n_pages),
            "host": host,
            "crawled_at": np.full(n_pages, DAY),
            "first_seen": np.full(n_pages, DAY),
        },
        None,
        DAY,
    )
    edited, crawled_at, after = 300 * DAY, np.full(n_pages, DAY), []
    times = DAY + np.arange(1, 20 * n_pages) / planner.bandwidth
    for number, now in enumerate(times.tolist()):
        pick = planner.pick(now, never_rests)
        assert pick is not None
        page = pick.page
        changed = host[page] == 0 and crawled_at[page] < edited <= now
        planner.crawled(page, now, changed)
        crawled_at[page] = now
        if now > edited and len(after) < n_pages:
            after.append(bool(changed))
        if number in (64, 200, 1000):
            planner.adopt(plan(planner.snapshot(), planner.bandwidth), now)
    return planner, host, after


def test_after_a_mass_edit_the_pages_it_reached_go_first_and_stay_known_as_quiet() -> None:
    """With the watch nearly all of the next visits go where the edit was, and no page is taken for a restless one."""
    n = 120
    watching, host, found = mass_edit(n, watched=True)
    blind, _, found_blind = mass_edit(n, watched=False)
    assert sum(found[: n // 2 + 20]) > sum(found_blind[: n // 2 + 20])
    assert watching.in_force.parameters.co_changes.hosts.keys() == {0}
    edited = np.flatnonzero(host == 0)
    # By their own visits alone, without the prior.
    rate, rate_blind = (p.posterior.weights(edited) @ DEFAULT_GRID for p in (watching, blind))
    assert np.median(rate) < 0.7 * np.median(rate_blind)


def test_co_changes_survive_in_the_plan_under_their_hosts_names() -> None:
    """A plan made plain brings them back to a process that numbers hosts otherwise, and a planner keeps its own."""
    planner, _, _ = mass_edit(120, watched=True)
    known = planner.in_force.parameters.co_changes.hosts[0]
    made = plan(planner.snapshot(), planner.bandwidth)
    plain = json.loads(json.dumps(made.to_dict(["a.example", "b.example"])))
    restored = Plan.from_dict(plain, {"a.example": 7, "b.example": 3}.__getitem__)
    assert restored.co_changes.hosts[7].times.tolist() == known.times.tolist()
    assert restored.co_changes.hosts[7].evidence.tolist() == known.evidence.tolist()
    assert Plan.from_dict(plain).co_changes.hosts == {}

    begun = Planner(bandwidth=1.0)
    begun.add(7, 0.0)
    begun.adopt(restored, 1.0)
    begun.pick(2.0, never_rests)
    assert begun.values.evidence_around_one(0) == pytest.approx(known.evidence.sum())
    begun.crawled(0, 3.0, None)
    begun.pick(1e9, never_rests)
    begun.crawled(0, 1e9, False)
    assert begun.values.evidence_around_one(0) == 0.0


def test_the_end_of_a_visit_does_not_wait_for_a_search() -> None:
    """Visits that surprise only begin it; slices of work do it, with all visits there were when the first one ran."""
    planner = Planner(bandwidth=1.0)
    pages = planner.add(0, 0.0, n=60)
    for page in pages.tolist():
        planner.crawled(page, page / 60, None)
    for page in pages.tolist():
        planner.crawled(page, 100.0 + page, changed=page >= 20)
    assert not planner.in_force.parameters.co_changes
    slices = 1
    while planner.work(160.0):
        slices += 1
    found = planner.in_force.parameters.co_changes.hosts[0]
    assert slices > 3
    assert found.until == 159.0
    assert float(found.times @ found.evidence / found.evidence.sum()) == pytest.approx(120.0, abs=5.0)
