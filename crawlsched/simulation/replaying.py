"""Replaying: one policy crawls a history, slot by slot."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from math import inf
from time import perf_counter

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.simulation.arms import NO_PAGE, Arm
from crawlsched.simulation.brute_force import Judged
from crawlsched.simulation.history import History, SimulationError, Window, slot_times, visiting
from crawlsched.simulation.measuring import freshness, timeliness
from crawlsched.simulation.policies import make_arm

__all__ = ["Replayed", "crawl", "replay"]


@dataclass(frozen=True, eq=False)
class Replayed:
    """The result of a replay."""

    # Importance-weighted share of the measured time in which living pages were fresh; nan if no page lived in that
    # time.
    freshness: float
    timeliness: dict[str, float]  # how old copies grew, and how soon changes were seen: see `timeliness`
    policy: str
    estimator: str | None  # where change rates came from; None for a policy that uses none
    bandwidth: float  # crawls per second
    seconds: float  # how long the replay took
    rows: IndexArray  # the page crawled at each slot, as its row in the history; shape (n_crawls,)
    times: FloatArray  # POSIX seconds; shape (n_crawls,)
    changed: npt.NDArray[np.bool_]  # whether the page had changed since its previous crawl; shape (n_crawls,)
    # For the policy ``frontier``: the value of each page picked, divided by the highest value; shape (n_crawls,)
    worth: FloatArray | None = None


def replay(
    history: History,
    bandwidth: float,
    policy: str = "posterior",
    estimator: str | None = None,
    *,
    start: float | None = None,
    end: float | None = None,
    measure_from: float | None = None,
    seed: int = 0,
    signal_delay: float = 0.0,
) -> Replayed:
    """Let a policy crawl a history.

    Parameters
    ----------
    bandwidth : float
        Crawls per second, R.
    policy : str
        One of `POLICIES`.
    estimator : str, optional
        One of `ESTIMATOR_NAMES`; by default `default_estimator` of the policy.
    signal_delay : float
        Seconds after a crawl in which the planner's policies discard announcements (GREEDY-NCIS-D of the noisy-signals
        paper).

    Notes
    -----
    Slots are at start + j/R, j = 1, 2, ..., up to and including the end. A page is there at time t if birth < t < end.
    Every slot crawls one page if any is there. Pages begin with a fresh copy at max(birth, start). A change or a signal
    at exactly t is seen by a crawl or a decision at t.

    Examples
    --------
    Two pages, crawled in turn every second; the first changes at 2.5 and is seen at 3:

    >>> import numpy as np
    >>> history = History(
    ...     page=np.array([7, 9]), birth=np.zeros(2), end=np.full(2, 4.0), importance=np.ones(2),
    ...     change_rows=np.array([0]), change_times=np.array([2.5]))
    >>> done = replay(history, bandwidth=1.0, policy="round_robin")
    >>> history.page[done.rows], done.times, done.changed
    (array([7, 9, 7]), array([1., 2., 3.]), array([False, False,  True]))
    >>> done.freshness
    0.9375
    """
    if not 0.0 < bandwidth < inf:
        raise SimulationError(f"bandwidth must be crawls per second above 0 and finite, got {bandwidth!r}.")
    window = history.window(start, end, measure_from)
    began = perf_counter()
    if not 0.0 <= signal_delay < inf:
        raise SimulationError(f"signal_delay must be seconds, 0 or more and finite, got {signal_delay!r}.")
    arm, used = make_arm(history, window, bandwidth, policy, estimator, seed, signal_delay)
    rows, times, changed = crawl(history, window, slot_times(window, bandwidth), arm)
    share = freshness(history, window, rows, times)
    timely = timeliness(history, window, rows, times)
    worth = np.array(arm.worth) if isinstance(arm, Judged) else None
    return Replayed(share, timely, policy, used, bandwidth, perf_counter() - began, rows, times, changed, worth)


def crawl(
    history: History, window: Window, slots: Iterable[float], arm: Arm
) -> tuple[IndexArray, FloatArray, npt.NDArray[np.bool_]]:
    """Let an arm crawl a history at given times; return rows, times, and whether each crawl found a change."""
    begins = np.maximum(history.birth, window.start)
    visit_at = visiting(history, begins)
    events = _events(history, window, begins, arm)
    next_time = next(events)
    rows: list[int] = []
    times: list[float] = []
    changed: list[bool] = []
    for now in slots:
        if now >= next_time:
            next_time = events.send(now)
        row = arm.pick(now)
        if row != NO_PAGE:
            visit = visit_at(row, now)
            arm.crawled(visit)
            rows.append(row)
            times.append(now)
            changed.append(visit.changed)
    return np.array(rows, np.intp), np.array(times, np.float64), np.array(changed, np.bool_)


_BIRTH, _END, _SIGNAL = range(3)


def _events(history: History, window: Window, begins: FloatArray, arm: Arm) -> Generator[float, float, None]:
    """Pass births, ends and announcements to an arm in the order of time.

    The caller sends a time to this generator. It passes the events up to this time that were not passed before, and
    yields the time of the next event; inf if there is none.
    """
    ends = history.end
    there = np.flatnonzero((ends > window.start) & (history.birth < window.end))
    # A page is there after its birth, but not yet at the time of its birth.
    rows, times = [there, there], [np.nextafter(begins[there], inf), ends[there]]
    if history.signal_rows is not None and history.signal_times is not None:
        heard = history.signal_rows, history.signal_times
        # A page's first copy contains the changes that were announced up to the time of this copy.
        new = (heard[1] > begins[heard[0]]) & (heard[1] < ends[heard[0]])
        rows, times = [*rows, heard[0][new]], [*times, heard[1][new]]
    kinds = np.repeat(np.arange(len(rows)), [some.size for some in rows])
    order = np.argsort(np.concatenate(times), kind="stable")
    all_times = np.append(np.concatenate(times)[order], inf)
    all_rows, kinds = np.concatenate(rows)[order], kinds[order]
    at = 0
    while True:
        now = yield all_times.item(at)
        until = min(int(all_times.searchsorted(now, side="right")), all_rows.size)
        come, of = all_rows[at:until], kinds[at:until]
        at = until
        are_signals = of == _SIGNAL
        if not are_signals.all():
            _begin_and_end(arm, history, begins, come[of == _BIRTH], come[of == _END], now)
        announced = come[are_signals]
        announced = announced[ends[announced] > now]
        # Each announcement counts: a page that was announced twice is passed on twice.
        while announced.size and len(set(announced.tolist())) < announced.size:
            distinct, first = np.unique(announced, return_index=True)
            arm.signalled(distinct, now)
            announced = np.delete(announced, first)
        if announced.size:
            arm.signalled(announced, now)


def _begin_and_end(
    arm: Arm, history: History, begins: FloatArray, born: IndexArray, ended: IndexArray, now: float
) -> None:
    living = born[history.end[born] > now]
    if living.size:
        arm.begin(living, begins[living], now)
    # No arm sees pages that began and ended between two slots.
    ended = ended[(begins[ended] < now) & ~np.isin(ended, born)]
    if ended.size:
        arm.end(ended, now)
