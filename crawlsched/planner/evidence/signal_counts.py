"""Signal counts: which sources count for a page, and which of their announcements count."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.estimators.page_precision import REMEMBERED
from crawlsched.pages import FREE, Pages
from crawlsched.planner.evidence.announcements import Announcements
from crawlsched.planner.evidence.further_sources import MOST_SIGNALS, FurtherSources, SourceSignals

__all__ = ["SignalCounts"]

# Two sources announce the same changes if they coincide more often than by chance, by more than this factor.
_LIFT = 2.0
# Each pair of sources begins with this number of coincidences. So two sources are taken to announce the same changes
# until a few comparisons show otherwise.
_COINCIDED_BEFORE = 0.5


class SignalCounts:
    """Count announcements, but count announcements of the same change once.

    Notes
    -----
    Announcements of several sources add up, κ_1 n_1 + κ_2 n_2, if each change is announced by at most one source. Two
    announcements of the same change must not both count. Two conditions show that the change is the same. One source
    announced it between `since` and `at`, the last two reads of the other source. And the two sources coincide clearly
    more often than by chance. Such a pair counts once, for the source whose announcements weigh more. If a visit
    between the two announcements has seen the change, the later announcement does not count.
    """

    def __init__(self, pages: Pages, further: FurtherSources, announcements: Announcements) -> None:
        self._pages = pages
        self._further = further
        self._announcements = announcements
        # For each pair of sources: how often they coincided, and how often they would have coincided by chance.
        self._pairs: dict[tuple[int, int], tuple[float, float]] = {}

    def cover(self, rows: IndexArray, source: int, now: float) -> None:
        """Let a source count from now on for the distinct pages that it names."""
        columns = self._pages
        rows = rows[columns.state[rows] != FREE]
        current = columns.source[rows]
        first = rows[current < 0]
        columns.source[first] = source
        columns.signalled_since[first] = now
        columns.n_signals[first] = columns.n_signals_total[first] = 0
        others = rows[(current >= 0) & (current != source)]
        if others.size:
            self._further.cover(others, source, now)

    def take(self, rows: IndexArray, source: int, at: float, since: float) -> IndexArray:
        """Count an announcement for each of some pages; return the pages whose crawl values have to be computed anew.

        The source was read at `at`. The announcements were made between `since` and `at`.
        """
        columns = self._pages
        rows = rows[(columns.crawled_at[rows] <= at) & (columns.state[rows] != FREE)]
        alone = columns.further[rows] == 0
        simple = rows[alone & (columns.source[rows] == source) & (columns.n_signals[rows] < MOST_SIGNALS)]
        columns.n_signals[simple] += 1
        columns.n_signals_total[simple] += 1
        for page in rows[~alone].tolist():
            self._take_beside_others(page, source, at, since)
        return rows

    def announced_by(self, page: int, source: int) -> bool:
        """Whether a source has announced a page since its last crawl."""
        crawled_at = self._pages.crawled_at.item(page)
        for one in self._further.of(page):
            if one.source == source:
                return one.n_signals > 0 or one.signalled_at > max(crawled_at, one.since)
        return self._pages.source.item(page) == source and self._pages.n_signals.item(page) > 0

    def _take_beside_others(self, page: int, source: int, at: float, since: float) -> None:
        heard = self._further.of(page)
        if all(one.source != source for one in heard):  # the page has more sources than can count
            return
        twins = []
        for other in heard:
            if other.source != source:
                together = other.signalled_at >= since
                self._compare(source, other.source, together, _chance(other, since, at))
                if together and self._announce_the_same(source, other.source):
                    twins.append(other)
        self._further.announced(page, source, at)
        if not twins:
            self._further.count(page, source, 1)
            return
        # If no twin is counted any more, a visit has already seen this change.
        counted = [twin for twin in twins if twin.n_signals]
        least = min(counted, key=lambda twin: self._weight(page, twin.source), default=None)
        if least is not None and self._weight(page, least.source) < self._weight(page, source):
            self._further.count(page, least.source, -1)
            self._further.count(page, source, 1)

    def _compare(self, source: int, other: int, together: bool, chance: float) -> None:
        pair = (min(source, other), max(source, other))
        seen, expected = self._pairs.get(pair, (0.0, 0.0))
        seen, expected = seen + together, expected + chance
        fading = min(1.0, REMEMBERED / max(seen, expected, 1.0))
        self._pairs[pair] = seen * fading, expected * fading

    def _announce_the_same(self, source: int, other: int) -> bool:
        """Whether two sources usually announce the same changes."""
        seen, expected = self._pairs.get((min(source, other), max(source, other)), (0.0, 0.0))
        return seen + _COINCIDED_BEFORE > _LIFT * expected

    def _weight(self, page: int, source: int) -> float:
        return self._announcements.source_quality(page, [source])[0][0]


def _chance(other: SourceSignals, since: float, at: float) -> float:
    """Return the probability that a source announces something between two times, at its usual rate."""
    window = max(at - since, 0.0)
    return float(-np.expm1(-other.n_heard * window / max(at - other.since, window, 1e-9)))
