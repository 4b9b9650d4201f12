"""Which pages are looked at with which pick, where numpy alone would take too long for all that a turn brings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.frontier.evaluation.evaluation import Look
from crawlsched.frontier.placement import Standing
from crawlsched.frontier.places import BARRED
from crawlsched.frontier.sleeping.crowded_levels import Crowds

__all__ = ["OPENED", "SOON", "WOKEN", "Looks"]


#: So many pages at least are looked at when a ladder is opened, since numpy needs some to be worth its while.
OPENED = 96
#: And so many of them are to be awake then, with numpy alone.
WOKEN = 20
# A look is at up to so many portions of pages, at more if there would not be looks enough until the turn ends.
_PORTIONS, _MOST_PORTIONS = 2, 5
# Those that are awake, or were crawled just now, are looked at together if they are no more portions than this.
_PORTIONS_AGAIN = 3
# A look takes about such a part of a turn.
_TAKES = 0.4
#: Beds are opened ahead when so few pages are awake that are worth more than what sleeps there.
SOON = 24
# In this last part of a turn those are looked at who are awake; in this very last one no look begins at pages whose
# alarms ring in the next one, since most of it would have to be done when the turn ends.
_LATE, _TOO_LATE = 0.75, 0.2


class Looks:
    """Looks at pages, one after the other, a part of one with each pick; without compiled code only.

    Parameters
    ----------
    standing : Standing
    crowds : Crowds
    bar : callable
        ``bar(pages)`` leaves pages out once more that may not be crawled before some time.

    Attributes
    ----------
    look : Look or None
        The one that is going on.

    Notes
    -----
    What is known of those that were crawled just now holds for the next two turns, and of those that are awake for as
    many or some more: they are looked at while it does. Whose alarms ring in the next two turns is looked at together
    with them, and so are the highest beds before a pick has to open them. Of all these the next turn can do without,
    but of those whose alarms ring in it: then nearly nothing is left to be done at once.
    """

    def __init__(self, standing: Standing, crowds: Crowds, bar: Callable[[IndexArray], None]) -> None:
        self._standing = standing
        self._crowds = crowds
        self._bar = bar
        self.look: Look | None = None
        self._has_waited = False
        # Whether the look may go on in the next turn, since no page rises above its level in it; and whether it does.
        self._can_wait = self._waits = False
        # Whether it is still to be found who of those awake is to be looked at in this turn, and who is left of them.
        self._is_owed = False
        self._again: list[IndexArray] = []
        # Those in beds that are being opened, last ones first.
        self._opening: list[IndexArray] = []

    # -- turns

    def turn(self, now: float) -> None:
        """Do what is left of the look that is going on, as far as it cannot wait for the turn of `now`; O(n).

        In that turn, which begins, some that are awake, or were crawled just now, are to be looked at.
        """
        self._is_owed, self._again = True, []
        if self.look is None:
            return
        standing = self._standing
        n_turns = standing.calendar.number(now) - standing.calendar.number(standing.rung)
        # Compiled code waits for nothing, and after a while without turns nothing holds any more.
        if self._waits or standing.at_once == np.inf or standing.calendar.end(now) > standing.holds:
            self.finish()
        elif n_turns > 1 or not self._can_wait:
            self.look.settle()
        self._waits = True

    def finish(self) -> None:
        """Do what is left of the look that is going on; O(n log n)."""
        if self.look is not None:
            self.look.finish()
            self.look = None

    def leave_out(self, pages: IndexArray) -> None:
        """Let a look leave pages alone that are being filed; O(n log n)."""
        if self.look is not None:
            self.look.leave_out_many(pages)

    # -- picks

    def go_on(self) -> bool:
        """Do one more part of the look that is going on, or find what to look at next; return whether there was any.

        Not in a pick that has cost as much itself, but in the next one then, whatever that has cost. O(n).
        """
        awake = self._standing.awake
        self._has_waited = awake.has_evaluated and not self._has_waited
        awake.has_evaluated = False
        if self._has_waited:
            return True
        if self.look is None:
            self._can_wait, self._waits = True, False
            self.look = self._next()
            return self.look is not None
        if not self.look.go_on():
            self.look = None
        return True

    def _next(self) -> Look | None:
        """Return the next look, the most urgent one; None if there is nothing to look at."""
        standing, portion = self._standing, self._standing.values.portion
        left = (standing.until - standing.now) / (standing.ticks * standing.calendar.tick)
        if self._is_owed and left < _LATE:
            self._is_owed = False
            again = np.concatenate([standing.fresh.still(standing.place), standing.fading()])
            self._again = self._divided(again, _PORTIONS_AGAIN)
        # The first ones are to be looked at in this turn, all of them before the next one ends.
        n_first = standing.calendar.n_ahead()
        n_all = n_first + standing.calendar.n_ahead(1) + sum(pages.size for pages in self._again)
        need = max(n_first / (max(left - _TOO_LATE, 0.0) // _TAKES + 1.0), n_all * _TAKES / (left + 1.0))
        most = min(max(_PORTIONS * portion, int(need) + 1), _MOST_PORTIONS * portion)
        if self._again:
            pages = self._again.pop()
            return Look(standing, np.concatenate([pages, self._ringing(most - pages.size, left)]))
        if self._opening:
            return Look(standing, self._opening.pop(), falling=True, waking=0 if self._opening else WOKEN)
        if self._open_ahead():
            return None
        if not self._is_owed and (ringing := self._ringing(most, left)).size:
            return Look(standing, ringing)
        if self._crowds.are_unforeseen(portion):
            self._crowds.foresee(standing.cutoff, portion)
            return None
        if self._crowds.beds and self._crowds.owed >= portion:
            return Look(standing, self._crowds.some(most), falling=True)
        ringing = self._ringing(most, left, most)
        return Look(standing, ringing) if ringing.size else None

    def _ringing(self, n: int, left: float, least: int = 1) -> IndexArray:
        """Return up to `n` pages that sleep, and whose alarms ring in one of the next two ticks.

        But for those of a tick in which no more than `least` do. A portion more, if these are all: a look at few takes
        nearly as many picks as one at many.
        """
        standing = self._standing
        calendar, portion = standing.calendar, standing.values.portion
        rung = np.empty(0, np.intp)
        if n > 0 and left >= _TOO_LATE:
            rung = calendar.ahead(n, least if least > 1 else 0, portion)
            self._can_wait = not rung.size
        if n > rung.size:
            rung = np.concatenate([rung, calendar.ahead(n - rung.size, least, portion if not rung.size else 0, 1)])
        barred = standing.place[rung] == BARRED
        if barred.any():
            self._bar(rung[barred])
            rung = rung[~barred]
        return rung

    def _open_ahead(self) -> bool:
        """Begin to open the highest beds, if soon no page is awake that is worth more than what sleeps there."""
        standing = self._standing
        highest = standing.ladders.highest()
        if highest is None or np.count_nonzero(standing.awake.bounds(standing.now) > -highest[0]) > SOON:
            return False
        ladder = highest[2]
        pages, lowest = ladder.coming(OPENED, standing.at_once)
        if lowest is None:
            return False
        standing.come_down(lowest - 1, ladder.host)
        self._opening = self._divided(pages, _PORTIONS)
        return True

    def _divided(self, pages: IndexArray, portions: int) -> list[IndexArray]:
        n = -(-pages.size // (portions * self._standing.values.portion))
        return np.array_split(pages, n) if n else []
