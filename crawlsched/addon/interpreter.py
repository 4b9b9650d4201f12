"""How the interpreter shares its time while a crawl runs: short turns of its threads, rare searches for garbage."""

from __future__ import annotations

import gc
import sys

__all__ = ["INTERPRETER"]

# Seconds. A request gives the interpreter's lock away about ten times (send, receive, poll), and waits this long for it
# each time while a sitemap is read or a plan made in a thread: with Python's 5 ms slots came a second late.
_SWITCH_INTERVAL = 0.0005
# Objects. Slots that come together make some thousand objects at once, nearly none of them garbage for the collector;
# with Python's 700 it searched at every fourth visit, a tenth of a fast crawl's time.
_YOUNG_OBJECTS = 10_000


class _Interpreter:
    """What is set while any crawl of this process runs, and what it was before then."""

    def __init__(self) -> None:
        self._n = 0
        self._interval = 0.0
        self._thresholds = (0, 0, 0)

    def begin(self) -> None:
        """Set what a crawl wants, if it is the first that runs."""
        if not self._n:
            self._interval, self._thresholds = sys.getswitchinterval(), gc.get_threshold()
            sys.setswitchinterval(min(_SWITCH_INTERVAL, self._interval))
            if self._thresholds[0]:  # 0: somebody wants no collection at all
                gc.set_threshold(max(_YOUNG_OBJECTS, self._thresholds[0]), *self._thresholds[1:])
            # What was loaded stays; going through it again at each full collection would stop the slot clock.
            gc.collect()
            gc.freeze()
        self._n += 1

    def end(self) -> None:
        """Put back what was set before, if it is the last that runs."""
        self._n -= 1
        if not self._n:
            sys.setswitchinterval(self._interval)
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()


INTERPRETER = _Interpreter()
