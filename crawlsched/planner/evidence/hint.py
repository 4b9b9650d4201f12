"""A hint: weak evidence that pages have changed since they were crawled."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["NOBODY", "Hint", "Visit"]

#: No page.
NOBODY = np.empty(0, np.int64)


class Visit(NamedTuple):
    """A visit that could be compared with the one before, and what was to be expected of it.

    Attributes
    ----------
    page : int
    now : float
        POSIX seconds.
    changed : bool
    doubt : float
        Probability that a change was not noticed; as for `Posterior.update_one`.
    unchanged : float
        Probability of no change by the page's own rate alone.
    announced, around : float
        Evidence of announcements, and of all other hints together, nats.
    is_planned : bool
        Whether there was a plan, by which anything can be expected.
    """

    page: int
    now: float
    changed: bool
    doubt: float
    unchanged: float
    announced: float
    around: float
    is_planned: bool


class Hint(Protocol):
    """One source of evidence: announcements, neighbours. Evidence is in nats: hints add up.

    A copy of age τ is fresh with probability exp(-r τ - Σ evidence). Each idea has its own file, and a line of the list
    in `crawlsched.planner.knowledge`.
    """

    def evidence(self, pages: IndexArray) -> FloatArray:
        """Return what was heard since each page's crawl, nats."""

    def evidence_one(self, page: int) -> float:
        """Return the same for one page."""

    def visited(self, visit: Visit, evidence: float) -> npt.NDArray[np.int64]:
        """Learn from a visit, of whose page there was so much evidence; return pages whose evidence it changed."""

    def forget(self, page: int) -> None:
        """A page was crawled, or is gone: what was heard before says nothing of it any more."""

    def free(self, pages: IndexArray) -> None:
        """Forget pages for good."""
