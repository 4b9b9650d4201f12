"""Without compiled code pages are looked at a part with each pick, and stay where they are until the last part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from crawlsched.crawl_value import use_compiled
from crawlsched.frontier import Frontier, filed
from crawlsched.frontier.ladder import IN_FLIGHT, RUNNING
from crawlsched.frontier.look import Look
from crawlsched.frontier.looks import Looks
from crawlsched.frontier.standing import Standing
from crawlsched.planner import Planner
from tests.benchmarks.bench_frontier import BANDWIDTH, Slots
from tests.benchmarks.frontier_collection import collection
from tests.unit.test_frontier_crowds import crowded, pick_the_best

# At least so many make a look; more, where many terms are to be summed.
PARTS = 6


@pytest.fixture(autouse=True)
def _numpy_alone() -> Iterator[None]:
    use_compiled(False)
    yield
    use_compiled(None)


def look_at_sleepers(n: int) -> tuple[Planner, Look, np.ndarray]:
    """Return a planner, a look at `n` of its sleeping pages that is about to begin, and which pages these are."""
    planner = crowded(bandwidth=100.0)
    planner.frontier.advance(0.0)
    pages = np.sort(planner.frontier._ladders.shared.highest_sleepers(n)[:n])
    return planner, Look(planner.frontier._standing, pages), pages


def test_pages_stay_in_their_beds_until_all_is_known_and_then_have_alarms() -> None:
    """Whose alarms have rung gets the next one in the last part; before that nobody is anywhere else."""
    planner, look, pages = look_at_sleepers(60)
    frontier = planner.frontier
    standing = frontier._standing
    standing.calendar.clear(pages)
    before, parts = standing.place[pages].copy(), 0
    while look.go_on():
        assert not standing.calendar.has_alarm(pages).any()
        frontier._check(0.0)
        parts += 1
        if parts < PARTS - 1:
            assert (standing.place[pages] == before).all()
    assert parts >= PARTS - 1
    assert not look.go_on()
    frontier._check(0.0)
    assert standing.calendar.has_alarm(pages[standing.place[pages] > RUNNING]).all()


@pytest.mark.parametrize("parts", range(PARTS))
def test_what_is_announced_while_it_is_looked_at_is_picked_for_what_it_is_worth_now(parts: int) -> None:
    """Half of the pages are announced after each number of parts; the look then puts only the others elsewhere."""
    planner, look, pages = look_at_sleepers(60)
    frontier = planner.frontier
    frontier._looks.look = look
    for _ in range(parts):
        assert look.go_on()
    planner.signalled(pages[::2], 0, 0.0)
    frontier._looks.finish()
    frontier._check(0.0)
    inside, now = np.ones(len(frontier), bool), 0.0
    for _ in range(100):
        now += 0.01
        pick_the_best(planner, inside, now)
    frontier._check(now)


def test_a_look_at_pages_that_have_left_meanwhile_leaves_them_alone() -> None:
    """Those that were discarded stay out, and those in flight stay so."""
    planner, look, pages = look_at_sleepers(60)
    frontier = planner.frontier
    assert look.go_on()
    frontier.discard(pages[:20])
    frontier._standing.leave(pages[20:40])
    frontier._standing.place[pages[20:40]] = IN_FLIGHT
    look.finish()
    assert {frontier.place_of(page) for page in pages[:20].tolist()} == {"out"}
    assert {frontier.place_of(page) for page in pages[20:40].tolist()} == {"in flight"}
    frontier._check(0.0)


def test_a_turn_leaves_little_to_be_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pages looked at for picks in a hundred turns, at most one in twenty is put where it belongs in one go."""
    at_once, by_parts, picking = [0], [0], [False]
    put, look, pick = Standing.put, Look.__init__, Frontier.pick

    def putting(self: Standing, pages: np.ndarray, *arguments: object, **others: object) -> None:
        at_once[0] += pages.size * picking[0]
        put(self, pages, *arguments, **others)  # type: ignore[arg-type]

    def looking(self: Look, standing: Standing, pages: np.ndarray, *arguments: object, **others: object) -> None:
        by_parts[0] += pages.size
        look(self, standing, pages, *arguments, **others)  # type: ignore[arg-type]

    def picks(self: Frontier, *arguments: object) -> object:
        picking[0] = True
        found = pick(self, *arguments)  # type: ignore[arg-type]
        picking[0] = False
        return found

    slots = Slots(collection(100_000, BANDWIDTH, "posterior", 1 / 3))
    slots.run(3200, alone=True)
    monkeypatch.setattr(Standing, "put", putting)
    monkeypatch.setattr(Look, "__init__", looking)
    monkeypatch.setattr(Frontier, "pick", picks)
    slots.run(3200, alone=True)
    assert by_parts[0] > 3200
    assert at_once[0] < by_parts[0] / 20, (at_once, by_parts)


def test_very_many_pages_that_are_filed_end_the_look_that_is_going_on() -> None:
    """Of few it is told, and leaves them out."""
    planner, look, pages = look_at_sleepers(60)
    looks: Looks = planner.frontier._looks
    looks.look = look
    assert look.go_on()
    planner.frontier.file(pages[:10], 0.0)
    assert looks.look is look
    planner.frontier.file(np.arange(1000), 0.0)
    assert looks.look is None
    assert not look.go_on()
    planner.frontier._check(0.0)


def test_where_pages_are_filed_is_told_when_a_look_is_done_with() -> None:
    """Those whose alarms were taken back for it have others then, so that they can be put back by what is told."""
    planner, look, pages = look_at_sleepers(60)
    frontier = planner.frontier
    frontier._standing.calendar.clear(pages)
    frontier._looks.look = look
    assert look.go_on()
    known = filed(frontier, len(frontier))
    assert (known.alarm[pages[known.place[pages] > RUNNING]] > 0).all()
    assert not look.go_on()
