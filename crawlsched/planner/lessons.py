"""Lessons: what a visit that reached content teaches of a page and of its announcements."""

from __future__ import annotations

from math import inf

from crawlsched.pages import GONE, LIVE, MOVED
from crawlsched.planner.knowledge import Knowledge
from crawlsched.planner.observation import Observation

__all__ = ["Lessons"]

# What `Observation(...)` does, in half of the time: each visit makes one.
_make = tuple.__new__


class Lessons:
    """Learn from visits.

    Parameters
    ----------
    known : Knowledge
    """

    def __init__(self, known: Knowledge) -> None:
        self._known = known

    def crawled(
        self,
        page: int,
        now: float,
        changed: bool | None,
        *,
        doubt: float = 0.0,
        time_since_modified: float | None = None,
    ) -> Observation | None:
        """A visit reached content.

        Parameters
        ----------
        page : int
        now : float
            POSIX seconds.
        changed : bool or None
            Whether the content differs from what the visit before saw; None where that cannot be told.
        doubt, time_since_modified
            As for `Posterior.update_one`.

        Returns
        -------
        Observation or None
            What was learned; None if nothing: a first visit, one that cannot be compared, or the return of a page that
            had been gone.
        """
        known = self._known
        now, columns = known.at(now), known.pages
        crawled_at, state = columns.crawled_at.item(page), columns.state.item(page)
        n_signals, covered_further = columns.n_signals.item(page), columns.further.item(page)
        elapsed, observation = now - crawled_at, None
        has_rare_facts = columns.rare.item(page)
        if changed is not None and now > crawled_at > -inf and state not in (GONE, MOVED):
            further: tuple[tuple[int, int], ...] = ()
            if covered_further:
                further = tuple((other.source, other.n_signals) for other in known.further.of(page)[1:])
            evidence = known.announcements.evidence_one(page) if n_signals or further else 0.0
            parameters = known.in_force.of(page)
            prior, power = parameters.priors[parameters.group(columns.host.item(page))], parameters.learning_rate
            if n_signals or (further and any(n for _, n in further)):
                unchanged = known.posterior.unchanged_one(page, elapsed, prior, power)
                known.announcements.visited(page, changed, doubt, unchanged, evidence)
            # A count of updates only spreads rounding, and nearly every crawl is one.
            known.posterior.update_one(
                page,
                elapsed,
                changed,
                evidence,
                doubt=doubt,
                time_since_modified=time_since_modified,
                prior=prior,
                n_updates=columns.n_crawls.item(page),
            )
            if known.learned is not None:
                known.learned.observe(page, elapsed, changed, n_signals, time_since_modified)
            source = columns.source.item(page)
            found = page, now, elapsed, n_signals, source, evidence, changed, further, time_since_modified
            observation = _make(Observation, found)
        if known.planned is not None:
            known.planned.crawled(page, now)
        # What stands there already is not written once more: this is done in each slot.
        if changed:
            columns.n_changes.count_one(page)
        columns.n_crawls.count_one(page)
        columns.crawled_at[page] = now
        if n_signals or covered_further:
            known.announcements.forget(page)
        if state != LIVE:
            columns.state[page] = LIVE
        if has_rare_facts:
            columns.reached(page)
        known.end_visit(page, now)
        return observation
