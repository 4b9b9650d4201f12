"""The shards of a collection learn as one: each plan is made with an extract of what the others have learned."""

from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import update

from crawlsched.jobs.crawl_jobs import make_plan
from crawlsched.planner import Plan, Planner
from crawlsched.planner.evidence.contest import Contest
from crawlsched.planner.plans.plan import extract, plan
from crawlsched.sharing import MOST_ROWS, Extract
from crawlsched.store import Store, models

NOW, DAY = 1_700_000_000.0, 86_400.0
NOTHING = {name: np.empty(0) for name in ("page", "elapsed", "n_signals", "source", "changed", "host", "part")}


def crawled(rates: np.ndarray, seed: int, n_visits: int = 12) -> Planner:
    """A planner of pages on two hosts that were visited once a day, and changed at their rates."""
    rng, planner = np.random.default_rng(seed), Planner(bandwidth=1.0)
    planner.add(np.arange(rates.size) % 2, NOW)
    for day in range(n_visits + 1):
        changed = rng.random(rates.size) < -np.expm1(-rates * DAY)
        for page in range(rates.size):
            planner.crawled(page, NOW + day * DAY, bool(changed[page]) if day else None)
    return planner


def population(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(np.log(1 / (4 * DAY)), 1.0, n)


def test_two_shards_of_five_hundred_pages_learn_what_one_of_a_thousand_does() -> None:
    """The prior of all pages, to the rounding of sums: what they hand each other is all that they know."""
    rates = population(1000, 1)
    parts = [crawled(rates[:500], 2), crawled(rates[500:], 3)]
    snapshots = [part.snapshot() for part in parts]
    alone = [plan(snapshot, 1.0) for snapshot in snapshots]
    extracts = [extract(*both) for both in zip(snapshots, alone, strict=True)]
    one = replace(
        snapshots[0],
        n_pages=1000,
        pages=np.arange(1000),
        log_likelihood=np.concatenate([snapshot.log_likelihood for snapshot in snapshots]),
        hosts=np.concatenate([snapshots[0].hosts, snapshots[1].hosts + 2]),
        importance=np.ones(1000),
        host_limits=np.full(1000, np.inf),
    )
    whole = plan(one, 1.0)
    for snapshot, other, by_itself in zip(snapshots, reversed(extracts), alone, strict=True):
        together = plan(snapshot, 1.0, others=[other])
        assert together.priors[0] == pytest.approx(whole.priors[0], abs=1e-9)
        assert np.abs(by_itself.priors[0] - whole.priors[0]).sum() > 0.02
    # Hosts are drawn towards the whole, so they are known as in one shard, too.
    assert plan(snapshots[0], 1.0, others=extracts[1:]).priors[1:] == pytest.approx(whole.priors[1:3], abs=1e-9)


def test_large_shards_learn_from_samples() -> None:
    """Of more pages than an extract holds, each row stands for several: the prior is that of all, nearly."""
    rates = population(4000, 4)
    parts = [crawled(rates[:1000], 5, 6), crawled(rates[1000:], 6, 6)]
    snapshots = [part.snapshot() for part in parts]
    other = extract(snapshots[1], plan(snapshots[1], 1.0))
    assert len(other.log_likelihood) == MOST_ROWS < other.n_pages
    together = plan(snapshots[0], 1.0, others=[other]).priors[0]
    alone = plan(snapshots[0], 1.0).priors[0]
    of_all = plan(crawled(rates, 7, 6).snapshot(), 1.0).priors[0]
    mean = np.log(snapshots[0].rates)
    assert abs(together @ mean - of_all @ mean) < 0.15
    assert np.abs(together - of_all).sum() < 0.35
    assert np.abs(alone - together).sum() > 0.01


def test_a_shard_of_five_pages_begins_with_what_the_others_know(shared) -> None:
    """After its first plan it has the prior of the whole, the worth of announcements, and how far neighbours count."""
    first, second = (shared.store(shard) for shard in (0, 1))
    known = crawled(population(600, 8), 9)
    rng = np.random.default_rng(0)
    snapshot = replace(known.snapshot(), neighbour_losses=rng.random((15, 8, 12)))
    told = np.arange(200) % 2
    visits = {
        "page": np.arange(200),
        "elapsed": np.full(200, DAY),
        "n_signals": told,
        "source": np.zeros(200, np.int64),
        "changed": rng.random(200) < np.where(told, 0.9, 0.1),
        "host": np.zeros(200, np.int64),
        "part": np.zeros(200, np.int64),
    }
    of_first = make_plan(first, snapshot, visits, ["a", "b"], 1.0, NOW)
    small = crawled(population(5, 8), 10, 1)
    new = make_plan(second, small.snapshot(), NOTHING, ["c", "d"], 1.0, NOW)
    alone = plan(small.snapshot(), 1.0)
    assert np.abs(new.priors[0] - of_first.priors[0]).sum() < 0.1
    assert np.abs(alone.priors[0] - of_first.priors[0]).sum() > 0.5
    assert -np.expm1(-new.signal_weights[-1]) == pytest.approx(-np.expm1(-of_first.signal_weights[-1]), abs=0.01)
    assert -np.expm1(-new.signal_weights[-1]) > 0.7 > -np.expm1(-alone.signal_weights[-1])
    assert new.losses_elsewhere == pytest.approx(snapshot.neighbour_losses, rel=1e-6)
    # And the first one hears of the five at its next plan.
    again = make_plan(first, snapshot, visits, ["a", "b"], 1.0, NOW + 300.0)
    assert 0.0 < np.abs(again.priors[0] - of_first.priors[0]).sum() < 0.05


@pytest.mark.parametrize("column", ["log_likelihood", "neighbour_losses"])
def test_a_damaged_extract_costs_what_that_shard_knows(shared, caplog, column: str) -> None:
    """No plan fails by it, and a sentence says which shard it is."""
    first, second = (shared.store(shard) for shard in (0, 1))
    known = crawled(population(40, 8), 9, 2)
    make_plan(second, known.snapshot(), NOTHING, ["a", "b"], 1.0, NOW)
    assert [other.n_pages for other in first.extracts(known.grid, 32)] == [40]
    with second.database.writing() as connection:
        damaged = update(models.extracts).where(models.extracts.c.collection == second.key[1])
        connection.execute(damaged.values({column: b"no array"}))
    assert first.extracts(known.grid, 32) == []
    assert "What shard 1 has learned is left out: its row in the database is damaged" in caplog.text
    make_plan(first, known.snapshot(), NOTHING, ["a", "b"], 1.0, NOW)


def test_a_collection_of_one_process_leaves_no_extract(database_url) -> None:
    """There is nobody to read it."""
    store = Store.open(database_url, "alone", upgrade=True)
    planner = crawled(population(20, 1), 1, 2)
    make_plan(store, planner.snapshot(), NOTHING, ["a", "b"], 1.0, NOW)
    assert store.extracts(planner.grid, 32) is None
    store.close()


def test_announcements_of_all_shards_are_added_up() -> None:
    """A source that nothing is known of is worth what all shards' sources are."""
    snapshot = crawled(population(10, 1), 1, 1).snapshot()
    rows = np.zeros((0, 32), np.uint8)
    made = plan(snapshot, 1.0, others=[Extract(0, rows, (30.0, 40.0)), Extract(0, rows, (20.0, 60.0))])
    assert -np.expm1(-made.signal_weights[-1]) == pytest.approx(50.5 / 101.0)


def contest_of(visits: np.ndarray) -> Contest:
    """A contest about visits after hints that are true in three of ten cases, on pages that hardly change."""
    contest = Contest(2, np.array([0.0, 0.3, 0.9]), 10.0, np.array([0.0, 0.1]))
    for at, is_true in enumerate(visits):
        contest.foretold(at % 2, 0.9, 0.98, bool(is_true))
    return contest


def test_eight_shards_find_what_hints_are_worth_as_soon_as_one_process_does() -> None:
    """Sixty-four visits of each shard are too few for any, and enough for all: they are added up."""
    visits = np.random.default_rng(3).random((8, 64)) < 0.27
    whole = contest_of(visits.ravel())
    parts = [contest_of(part) for part in visits[:, :64]]
    assert whole.best.tolist() == [0.3, 0.3]
    assert all(part.best.tolist() != [0.3, 0.3] for part in parts)
    snapshots = [crawled(population(8, 1), 1, 1).snapshot() for _ in parts]
    snapshots = [replace(s, neighbour_losses=p.losses) for s, p in zip(snapshots, parts, strict=True)]
    extracts = [extract(snapshot, plan(snapshot, 1.0)) for snapshot in snapshots]
    for at, part in enumerate(parts):
        made = plan(snapshots[at], 1.0, others=extracts[:at] + extracts[at + 1 :])
        part.hear(made.losses_elsewhere)
        assert part.best.tolist() == whole.best.tolist()
        # What is heard is not taken for its own, and not handed on.
        assert extract(snapshots[at], made).neighbour_losses == pytest.approx(part.losses)


def test_a_shard_that_has_moved_hands_on_what_it_knew(shared) -> None:
    """Its new process has seen no visit yet, and goes on with the plan of the one before."""
    store = shared.store(0)
    losses = np.random.default_rng(0).random((15, 8, 12))
    planner = crawled(population(40, 8), 9, 2)
    snapshots = [replace(planner.snapshot(), neighbour_losses=its) for its in (losses, None)]
    before = make_plan(store, snapshots[0], NOTHING, ["a", "b"], 1.0, NOW)
    make_plan(store, snapshots[1], NOTHING, ["a", "b"], 1.0, NOW + 300.0, before)
    (told,) = shared.store(1).extracts(planner.grid, 32)
    assert told.neighbour_losses == pytest.approx(losses, rel=1e-6)


def test_new_pages_of_a_host_that_may_be_asked_only_so_often_are_no_demand() -> None:
    """A shard would be given a share for them that it cannot use: the limit is in its curve already."""
    planner = Planner(bandwidth=1.0)
    planner.add([0] * 30 + [1] * 50, NOW)
    for page in (0, 1, 2, 70, 71):
        planner.crawled(page, NOW + 1.0, None)
    limits = np.array([np.inf, 0.01])
    snapshot = planner.snapshot(lambda: limits)
    assert (snapshot.n_pages, snapshot.n_held) == (5, 48)
    made = plan(snapshot, 1.0)
    assert made.n_held == 48
    assert Plan.from_dict(made.to_dict()).n_held == 48
    assert planner.snapshot().n_held == 0
