"""An observation: what one visit taught."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Observation"]


class Observation(NamedTuple):
    """What one visit taught.

    Attributes
    ----------
    page : int
    time : float
        POSIX seconds.
    elapsed : float
        Seconds since the visit before.
    n_signals : int
        ChangeSignals in between.
    source : int
        Where they came from; -1 if no source covers the page.
    evidence : float
        What they took off the log-probability of freshness, nats.
    changed : bool
        Whether the page had changed.
    further : tuple of (int, int)
        Further sources that cover the page, and how many ChangeSignals each of them made.
    time_since_modified : float or None
        Seconds from the last modification to the visit, where that is known.
    """

    page: int
    time: float
    elapsed: float
    n_signals: int
    source: int
    evidence: float
    changed: bool
    further: tuple[tuple[int, int], ...] = ()
    time_since_modified: float | None = None
