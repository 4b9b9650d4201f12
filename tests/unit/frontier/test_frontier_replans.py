"""The frontier while a plan is adopted in slices: the best page by the parameters in force for each."""

from __future__ import annotations

import numpy as np
import pytest

from crawlsched.frontier import Frontier, Pick
from crawlsched.frontier.frontier import HostFreeAt
from crawlsched.frontier.places import BARRED
from crawlsched.planner.parameters import in_force
from crawlsched.simulation import History, replay


@pytest.mark.parametrize("seed", range(3))
def test_pages_that_stand_behind_others_are_picked_as_by_brute_force_while_plans_are_adopted(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of pages begin alike; a turn within a slice keeps those that have adopted apart from the others."""
    n, slots, rng = 3000, 400, np.random.default_rng(seed)
    monkeypatch.setattr(in_force, "PLAN_SLICE", 64)
    worse: list[tuple[int, int]] = []
    pick = Frontier.pick

    def checked(frontier: Frontier, now: float, free: HostFreeAt) -> Pick | None:
        frontier.advance(now)
        pages = np.flatnonzero(frontier._standing.place > BARRED)
        if not pages.size:  # at the end
            return pick(frontier, now, free)
        values = frontier.values.many(pages).at(now)
        best = int(pages[values.argmax()])
        picked = pick(frontier, now, free)
        if picked is None or picked.page != best:
            worse.append((-1 if picked is None else picked.page, best))
        return picked

    monkeypatch.setattr(Frontier, "pick", checked)
    rows, times = np.sort(rng.integers(0, n, 4 * n)), rng.random(4 * n) * 1e6
    order = np.lexsort((times, rows))
    history = History(
        page=np.arange(n),
        birth=np.zeros(n),
        end=np.full(n, 1e6),
        importance=np.ones(n),
        change_rows=rows,
        change_times=times[order],
    )
    replay(history, slots / 1e6, "posterior", start=0.0, end=1e6)
    assert worse == []
