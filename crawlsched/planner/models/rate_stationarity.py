"""Persistence: whether pages keep to their change rates for good, as far as visits show it."""

from __future__ import annotations

from math import exp, log

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators import Posterior
from crawlsched.planner.models.log_losses import KEPT, LEAST_PROBABILITY

__all__ = ["Persistence", "first_persistence_losses", "rates_stay"]


# So many pages are watched: their visits decide, in a dozen rounds, and take 64 bytes a page.
_WATCHED = 512
# That rates may change is believed until the other has foretold visits better by so many nats: more than chance would
# ask for, since pages that change together are one piece of evidence and count as many here.
_LEAD = 10.0


class Persistence:
    """Compare how well visits are foretold if rates never change with how well they are if rates may.

    Parameters
    ----------
    rates : ndarray, shape (K,)
        The grid of change rates, per second.
    losses : ndarray, shape (2,), optional
        As `losses` of an earlier one.

    Attributes
    ----------
    n_visits : int
        How many visits it has compared itself.

    Notes
    -----
    A `Posterior` with renewal is ready for rates that change, and knows less of those that do not. Of the first 512
    pages visited a second posterior is kept, without renewal, and both foretell each visit from those before. The sums
    of logarithmic losses say which of the two pages are like, as for powers of the likelihood (`LearningRate`); that
    rates stay has to foretell visits better by 10 nats.

    What visits teach is of use for longer where rates stay; how long is what `Exploration` asks. What is believed of
    single pages does not depend on the answer: after a hundred rounds without a change there may be one.

    Examples
    --------
    A page that is always found changed; a posterior with renewal is never quite sure that the next visit will, too:

    >>> rates, prior = np.array([0.2, 1.0]), np.array([0.5, 0.5])
    >>> posterior = Posterior(1, rates, dtype=np.uint8, renewal=0.3, counts_updates=False)
    >>> persistence = Persistence(rates)
    >>> for visit in range(300):
    ...     fresh = float(posterior.weights_one(0, prior) @ np.exp(-5.0 * rates))
    ...     persistence.foretold(0, prior, 1.0, fresh, 5.0, 0.0, changed=True)
    ...     posterior.update_one(0, 5.0, changed=True, prior=prior, n_updates=visit)
    ...     persistence.visited(0, 5.0, True, 0.0, posterior, n_updates=visit)
    >>> rates_stay(persistence.losses)
    True
    """

    def __init__(self, rates: FloatArray, losses: FloatArray | None = None) -> None:
        self._rates: FloatArray = np.array(rates)
        self._losses: list[float] = (first_persistence_losses() if losses is None else losses).tolist()
        self.n_visits = 0
        self._staying = Posterior(0, rates, dtype=np.uint16, counts_updates=False)
        self._rows: dict[int, int] = {}  # of the pages watched
        self._free: list[int] = []

    @property
    def losses(self) -> FloatArray:
        """Sum of the logarithmic losses if rates may change, and if they stay, beyond that of the better, nats."""
        return np.array(self._losses)

    def foretold(
        self, page: int, prior: FloatArray, power: float, fresh: float, elapsed: float, evidence: float, changed: bool
    ) -> None:
        """Compare with what was to be expected of it what a visit found, if its page is watched; O(K).

        Parameters
        ----------
        page : int
        prior : ndarray, shape (K,)
            Probability of each rate before the first visit.
        power : float
            To which likelihoods are taken.
        fresh : float
            Probability that the page has not changed, by its age alone, as the posterior with renewal has it.
        elapsed : float
            Seconds since the visit before.
        evidence : float
            Nats that announcements and other pages since take off the log-probability that it had not changed.
        changed : bool
            What the visit found.
        """
        row = self._rows.get(page)
        if row is None:
            return
        staying = float(np.vecdot(self._staying.weights_one(row, prior, power), np.exp(self._rates * -elapsed)))
        explained = exp(-evidence)
        for which, by_age in enumerate((fresh, staying)):
            found = 1.0 - by_age * explained if changed else by_age * explained
            self._losses[which] = self._losses[which] * KEPT - log(max(found, LEAST_PROBABILITY))
        least = min(self._losses)
        self._losses = [loss - least for loss in self._losses]
        self.n_visits += 1

    def visited(
        self,
        page: int,
        elapsed: float,
        changed: bool,
        evidence: float,
        posterior: Posterior,
        *,
        doubt: float = 0.0,
        time_since_modified: float | None = None,
        n_updates: int = 0,
    ) -> None:
        """Learn from a visit what the posterior with renewal has just learned, without renewal; O(K).

        Parameters
        ----------
        page : int
        elapsed, changed, evidence, doubt, time_since_modified, n_updates
            As for `Posterior.update_one`.
        posterior : Posterior
            With a row for each page, compact, that does not count updates. A page that is watched from now on begins
            with what is known.
        """
        row = self._rows.get(page)
        if row is not None:
            visit = row, elapsed, changed, evidence
            self._staying.update_one(*visit, doubt=doubt, time_since_modified=time_since_modified, n_updates=n_updates)
        elif len(self._rows) < _WATCHED:
            if not self._free:
                before = self._staying.n_pages
                self._staying.resize(min(2 * before + 32, _WATCHED))
                self._free = list(range(before, self._staying.n_pages))
            row = self._rows[page] = self._free.pop()
            self._staying.unpack([row], posterior.packed([page]))

    def forget(self, pages: IndexArray) -> None:
        """Watch others instead of pages that are there no more."""
        for page in self._rows.keys() & set(pages.tolist()):
            self._free.append(self._rows.pop(page))


def first_persistence_losses() -> FloatArray:
    """Return the losses of both before the first visit."""
    return np.array([0.0, _LEAD])


def rates_stay(losses: FloatArray) -> bool:
    """Whether visits have shown that pages keep to their rates."""
    return bool(losses[1] < losses[0])
