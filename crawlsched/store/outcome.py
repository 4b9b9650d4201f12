"""Outcome: how a visit ended; the one list, also for the column ``observations.outcome``."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Outcome"]


class Outcome(StrEnum):
    """How a visit ended; each visit ends in exactly one of these."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    NOT_MODIFIED = "not_modified"
    FLAPPING = "flapping"
    PROBED = "probed"
    WRONG = "wrong"
    GONE = "gone"
    MOVED = "moved"
    ERROR = "error"
    REFUSED = "refused"
    DROPPED = "dropped"
