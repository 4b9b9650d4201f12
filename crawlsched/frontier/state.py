"""Where pages are filed, as arrays: taken when a crawl ends, and put back when the next begins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.growing import let_go
from crawlsched.frontier.membership import Filing
from crawlsched.frontier.places import BARRED, OUT, OWN_LADDER, RUNNING
from crawlsched.frontier.timers.timing_wheel import NONE

__all__ = ["Filed", "file_anew", "filed", "put_back"]

# Pages put back, and pages filed anew, at once: their intermediate arrays are to stay small, and so are tables of
# buckets, which have room for as many keys as pages come at once.
_PUT_BACK = 2**14
_FILED_AT_ONCE = 2048


class Filed(NamedTuple):
    """Where each page stood.

    Attributes
    ----------
    place : ndarray of int32, shape (n,)
        The level that a sleeping page's value does not reach before its alarm, with a mark for those on the ladder of
        their own host; for others as in `places`.
    alarm : ndarray of uint32, shape (n,)
        The tick in which the alarm rings; 0: there is none.
    start, tick : float
        When the first tick began, POSIX seconds, and how long each is.
    cutoff, calm : int
        Levels.
    """

    place: npt.NDArray[np.int32]
    alarm: npt.NDArray[np.uint32]
    start: float
    tick: float
    cutoff: int
    calm: int


def filed(frontier: Filing, n_pages: int) -> Filed:
    """Return where the pages stand; views, so that it takes no memory to write them down."""
    frontier.reserve(n_pages)
    frontier._looks.finish()  # pages that are being looked at may have no alarms
    standing = frontier._standing
    calendar = standing.calendar
    numbers = float(calendar._start), calendar.tick, int(standing.cutoff), int(standing.calm.level)
    return Filed(standing.place[:n_pages], calendar._alarm[:n_pages], *numbers)


def put_back(frontier: Filing, known: Filed, now: float) -> None:
    """Put pages where they stood, in a frontier that has none; those whose time has come meanwhile are filed anew.

    O(n) in numpy, some 0.3 µs a page.

    Parameters
    ----------
    frontier : Filing
    known : Filed
        Of pages whose columns and parameters are what they were then. Large arrays that stand by themselves are empty
        afterwards: their memory goes back to the machine as that of the frontier's own fills.
    now : float
        POSIX seconds, not before `known` was taken.
    """
    n_pages = known.place.size
    frontier._advance(now)
    frontier.reserve(n_pages)
    standing = frontier._standing
    standing.set_cutoff(known.cutoff)
    standing.calm.suppose(known.calm)
    # A page whose alarm rings in the tick that has begun has to be looked at now.
    until = standing.until
    for begin in range(0, n_pages, _PUT_BACK):
        part = slice(begin, begin + _PUT_BACK)
        place, alarm = known.place[part], known.alarm[part]
        # Which hosts have a ladder of their own is seen anew.
        place = np.where(place > OWN_LADDER // 2, place - OWN_LADDER, place)
        pages = np.arange(begin, begin + place.size)
        rings = known.start + (alarm.astype(np.float64) - 1.0) * known.tick
        waits = (alarm == NONE) | (rings > until)
        kept = waits & ((place > RUNNING) | ((place == BARRED) & (alarm != NONE)))
        _put_back_some(frontier, pages[kept], place[kept], np.where(alarm == NONE, np.inf, rings)[kept], now)
        file_anew(frontier, pages[~kept & (place != OUT)], now)
        let_go(known.place, begin + pages.size)
        let_go(known.alarm, begin + pages.size)


def file_anew(frontier: Filing, pages: npt.NDArray[np.intp], now: float) -> None:
    """File distinct pages by their values, as when a store is read; O(n), some 10 µs a page in numpy.

    Parameters
    ----------
    frontier : Filing
    pages : ndarray of int, shape (n,)
    now : float
        POSIX seconds.
    """
    for at in range(0, pages.size, _FILED_AT_ONCE):
        frontier.file(pages[at : at + _FILED_AT_ONCE], now, falling=True)


def _put_back_some(
    frontier: Filing, pages: npt.NDArray[np.intp], place: npt.NDArray[np.int32], rings: npt.NDArray[Any], now: float
) -> None:
    if not pages.size:
        return
    standing = frontier._standing
    frontier._resting.make_room(frontier._pages.host[pages])
    standing.place[pages] = place
    asleep = place > RUNNING
    if asleep.any():
        standing.ladders.shared.add(pages[asleep], place[asleep])
        standing.ladders.note(standing.ladders.shared)
    alarmed = rings < np.inf
    standing.calendar.set(pages[alarmed], rings[alarmed], standing.rung)
    frontier._deadlines.set(pages)
