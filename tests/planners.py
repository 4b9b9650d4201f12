"""Planners in tests, and hosts that never rest."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.frontier import Frontier
from crawlsched.frontier.due_times import ASIDE, CANDIDATE, FILED, NEW, OVERDUE, SOON, WAITING
from crawlsched.frontier.new_pages import NewPages
from crawlsched.pages import LIVE
from crawlsched.planner import Pick, Planner


def never_rests(host: int, now: float) -> float:
    """Say that a host may be asked now."""
    return now


def crawled_pages(n: int, sources: Iterable[int] = (), **parameters: Any) -> Planner:
    """Return a planner of so many pages, all crawled for the first time at 0 and covered by sources since then."""
    planner = Planner(1.0, **parameters)
    planner.add(0, 0.0, n=n)
    for page in range(n):
        planner.crawled(page, 0.0, None)
    for source in sources:
        planner.covered(np.arange(n), source, 0.0)
    return planner


def slots(
    planner: Planner,
    times: Iterable[float],
    changed: Callable[[int, float], bool] = lambda page, now: True,
    free_at: Callable[[int, float], float] = never_rests,
) -> list[Pick | None]:
    """Let slots pass at these times, of which each visit ends at once; return what went."""
    picks = []
    for now in times:
        picks.append(pick := planner.pick(now, free_at))
        if pick is not None:
            is_known = planner.pages.crawled_at[pick.page] > -np.inf
            planner.crawled(pick.page, now, changed(pick.page, now) if is_known else None)
    return picks


def load_crawled(planner: Planner, n: int, now: float = 0.0, **columns: npt.ArrayLike) -> None:
    """Load pages with a copy, as a store has them: of one host, of the weight 1 and crawled at 0 by default."""
    given = {"state": np.uint8(LIVE), "host": 0, "importance": 1.0, "crawled_at": 0.0, "first_seen": 0.0, **columns}
    planner.load({"page": np.arange(n), **{name: np.resize(one, n) for name, one in given.items()}}, None, now)


def check_lines(new: NewPages, waiting: npt.NDArray[np.intp]) -> None:
    """Exactly these pages are in the lines of new pages, each in the right line."""
    found = []
    for line in new._lines[1:]:
        page = line.first
        while page >= 0:
            assert new._key(page) == (line.priority, line.host, line.part)
            found.append(page)
            page = new._next.item(page)
    assert sorted(found) == waiting.tolist()
    assert len(new) == len(found) == new.of_host.total()


def check_places(frontier: Frontier, now: float) -> None:
    """Every page stands where its place says, and only there; nobody in the column is due before the order ends."""
    due, places = frontier._due, frontier._due.place
    order = {page for time, page in due._heap if due.at[page] == time}
    assert set(np.flatnonzero(places == SOON).tolist()) <= order
    assert not (due.at[places == WAITING] < due._complete_until).any()
    check_lines(frontier.new, np.flatnonzero(places == NEW))
    going = frontier._queue.going.pages.tolist()
    aside = [page for lines in frontier._queue.aside.values() for page in lines.pages.tolist()]
    assert sorted(going) == np.flatnonzero(places == CANDIDATE).tolist()
    assert sorted(aside) == np.flatnonzero(places == ASIDE).tolist()
    assert frontier._queue.n_aside == len(aside)
    assert all(host in frontier._resting for host in frontier._queue.aside)
    assert set(np.flatnonzero(places == FILED).tolist()) <= frontier._filed
    assert all(page in frontier._overdue for page in np.flatnonzero(places == OVERDUE).tolist())
    assert (frontier._eligible_at(np.array(going + aside, np.intp)) <= now).all()
