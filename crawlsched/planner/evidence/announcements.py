"""The announcements of pages: their rates, their weights, and those since the last crawl."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.crawl_value.noisy import merge_sources
from crawlsched.estimators.page_precision import EXTREME, OF_THE_SOURCE, beta, expected_evidence, learned
from crawlsched.pages import Pages
from crawlsched.planner.evidence.further_sources import FurtherSources
from crawlsched.planner.plans.in_force import InForce

__all__ = ["COLUMNS", "Announcements", "OwnPrecision"]

#: The names of the columns in a store.
COLUMNS = ("true_signals", "false_signals")


class OwnPrecision:
    """Count how many announcements of each page visits found true, and how many false; 8 bytes a page.

    Notes
    -----
    The precision of a page has a prior by its source or group. For a mean m it is Beta(4 m, 4 (1 - m)), so it counts as
    much as four announcements. After visits it is Beta(4 m + true, 4 (1 - m) + false); see `judged`. The counts are
    stored without the prior, so that a new m of the source applies to all its pages immediately.

    In the noisy-signals paper each page has a precision of its own. On recorded histories that gains nothing
    (docs/notes/learning.md).
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.counts: npt.NDArray[np.float32] = np.zeros((0, len(COLUMNS)), np.float32)

    def of(self, page: int) -> tuple[float, float]:
        """Return how many announcements of a page were true and how many false, as visits found."""
        if page >= self.counts.shape[0]:
            return 0.0, 0.0
        true, false = self.counts[page].tolist()
        return true, false

    def put(self, page: int, counts: tuple[float, float]) -> None:
        """Set how many announcements of a page were true and how many false."""
        self._make_room(page + 1)
        self.counts[page] = counts

    def _make_room(self, n_pages: int) -> None:
        if self.counts.shape[0] < n_pages:
            self.counts = grown(self.counts, max(n_pages, self._pages.capacity))

    def free(self, pages: IndexArray) -> None:
        """Forget what was learned of pages."""
        self.counts[pages[pages < self.counts.shape[0]]] = 0

    def columns(self, pages: IndexArray) -> dict[str, npt.NDArray[np.float32]]:
        """Return the counts of some pages, by the names of the columns in a store."""
        found = np.zeros((pages.size, len(COLUMNS)), np.float32)
        there = np.flatnonzero(pages < self.counts.shape[0])
        found[there] = self.counts[pages[there]]
        return dict(zip(COLUMNS, found.T, strict=True))

    def load(self, pages: IndexArray, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Load columns of pages from a store. If none of these pages was ever announced, that takes no memory."""
        if all(name in columns for name in COLUMNS):
            counts = np.column_stack([columns[name] for name in COLUMNS])
            rows = np.flatnonzero(counts.any(axis=1))
            self.free(pages)
            if rows.size:
                self._make_room(int(pages[rows].max()) + 1)
                self.counts[pages[rows]] = counts[rows]

    def betas(self, pages: IndexArray, of_source: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both parameters of the Beta distribution of each page's precision: prior plus counts.

        `of_source` is the mean weight of an announcement of the page's source, in nats.
        """
        mean = np.clip(-np.expm1(-of_source), EXTREME, 1.0 - EXTREME)
        true, false = self.columns(pages).values()
        return OF_THE_SOURCE * mean + true, OF_THE_SOURCE * (1.0 - mean) + false


# A page's rate is computed as if it had this number of further announcements, at its source's rate. So the rate of a
# page with few announcements is near that of its source.
_SIGNALS_OF_A_RATE = 2.0
# An announcement with less weight is no evidence. Its page is treated as a page without announcements.
_LEAST_WEIGHT = 1e-4


class Announcements:
    """The announcements of pages, weighed by the parameters in force."""

    def __init__(self, pages: Pages, in_force: InForce, further: FurtherSources, own_precision: OwnPrecision) -> None:
        self._pages = pages
        self._in_force = in_force
        self._further = further
        self._own = own_precision

    # -- what was announced

    def evidence(self, pages: IndexArray) -> FloatArray:
        """Return the evidence of the announcements since the last crawl of each page, in nats."""
        evidence: FloatArray = self.known(pages)[1:].prod(axis=0)
        return evidence

    def is_silent(self, page: int) -> bool:
        """Whether no source has announced a page since its last crawl."""
        return not (self._pages.n_signals.item(page) or self._pages.further.item(page))

    def counted(self, pages: IndexArray) -> FloatArray:
        """Return the number of announcements since the last crawl, for rules that take weights as exact."""
        n: FloatArray = self._pages.n_signals[pages].astype(np.float64)
        several = np.flatnonzero(self._pages.further[pages])
        if several.size:
            n[several] = self.known(pages[several])[2]
        return n

    def visited(self, page: int, changed: bool, doubt: float, unchanged: float, announced: float) -> None:
        """Update the precision of a page's announcements after a visit that followed announcements.

        `doubt` is the probability that a change was not noticed. `unchanged` is the probability that nothing changed
        without an announcement. `announced` is the evidence of all announcements together, in nats.
        """

        def judged(source: int, before: tuple[float, float], n_signals: int) -> tuple[float, float]:
            of_source = self.source_quality(page, [source])[0][0]
            # The announcements of other sources explain a part of the finding.
            own = expected_evidence(*beta(of_source, before), n_signals)
            fresh = unchanged * exp(-max(announced - own, 0.0))
            found = (1.0, -fresh) if changed else (doubt, (1.0 - doubt) * fresh)
            return learned(of_source, before, n_signals, *found)

        if n_signals := self._pages.n_signals.item(page):
            source, before = self._pages.source.item(page), self._own.of(page)
            self._own.put(page, judged(source, before, n_signals))
        for one in self._further.of(page)[1:]:
            if one.n_signals:
                before = one.true_signals, one.false_signals
                self._further.judge(one.row, judged(one.source, before, one.n_signals))

    def forget(self, page: int) -> None:
        """Clear the announcements of a page, since a visit has seen what they announced."""
        if self._pages.n_signals.item(page):
            self._pages.n_signals[page] = 0
        if self._pages.further.item(page):
            self._further.crawled(page)

    def free(self, pages: IndexArray) -> None:
        """Forget pages for good."""
        self._further.free(pages)
        self._own.free(pages)

    # -- what is known of announcements

    def signals(self, pages: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Return signal rates (per second) and signal weights (nats); both are 0 if signals are no evidence.

        Rates are per page, so a source that has never announced a page does not change the page's crawl value.
        """
        rate, weight, _ = self.known(pages)
        return rate, weight

    def known(self, pages: IndexArray) -> FloatArray:
        """Return signal rates, signal weights, and the effective number of announcements since the last crawl; (3, n).

        The effective number is the evidence divided by the weight of one announcement. Since the precision of
        announcements is uncertain, the effective number of several announcements is below their number.
        """
        columns, found = self._pages, np.zeros((3, pages.size))
        sources, further = columns.source[pages], columns.further[pages]
        rows = ((sources >= 0) & (further == 0)).nonzero()[0]
        if rows.size:
            of = pages[rows]
            of_source, towards = self._in_force.parameters.signal_quality(columns.host[of], sources[rows])
            true, false = self._own.betas(of, of_source)
            weight, heard = -np.log(false / (true + false)), columns.n_signals[of].astype(np.float64)
            total = columns.n_signals_total[of].astype(np.float64)
            several = (heard > 1.0).nonzero()[0]
            each = zip(true[several].tolist(), false[several].tolist(), heard[several].tolist(), strict=True)
            evidence = np.array([expected_evidence(*one) for one in each])
            # A rate must not change between events, so only signals before the last crawl are counted.
            time = columns.crawled_at[of] - columns.signalled_since[of]
            time = np.where(np.isfinite(time), np.maximum(time, 0.0), 0.0)
            rate = (np.maximum(total - heard, 0.0) + _SIGNALS_OF_A_RATE) / (time + _SIGNALS_OF_A_RATE / towards)
            heard[several] = evidence / weight[several]
            tells = weight >= _LEAST_WEIGHT
            found[:, rows] = np.where(tells & (total > 0.0), rate, 0.0), np.where(tells, weight, 0.0), heard
        several = further.nonzero()[0]
        if several.size:
            by_page = [self._each_source(page) for page in pages[several].tolist()]
            quality = np.zeros((2, several.size, max(len(rates) for rates, _, _ in by_page) + 1))
            for row, (rates, weights, _) in enumerate(by_page):
                quality[:, row, : len(rates)] = rates, weights
            rate, weight = merge_sources(*quality)
            evidence = np.array([nats for _, _, nats in by_page])
            heard = np.divide(evidence, weight, out=np.zeros(several.size), where=weight > 0.0)
            found[:, several] = rate, weight, heard
        return found

    def gathered(self, pages: IndexArray) -> FloatArray:
        """Return signal rates, signal weights, and the evidence (nats) since the last crawl; shape (3, n)."""
        columns, found = self._pages, np.zeros((3, pages.size))
        # Few pages have ever been announced. For all other pages these numbers are 0.
        rows = ((columns.n_signals_total[pages] > 0) | (columns.further[pages] > 0)).nonzero()[0]
        if rows.size:
            rate, weight, heard = self.known(pages[rows])
            found[:, rows] = rate, weight, weight * heard
        return found

    def source_quality(self, page: int, sources: list[int]) -> tuple[list[float], list[float]]:
        """Return weights and rates of sources on the site of a page, as `Parameters.signal_quality` does."""
        hosts = np.full(len(sources), self._pages.host.item(page))
        weights, rates = self._in_force.parameters.signal_quality(hosts, np.array(sources, np.intp))
        return weights.tolist(), rates.tolist()

    def _each_source(self, page: int) -> tuple[list[float], list[float], float]:
        """Return rates and weights of the sources whose announcements are evidence, and the sum of the evidence."""
        crawled_at = self._pages.crawled_at.item(page)
        rates, weights, evidence = [], [], 0.0
        sources = self._further.of(page)
        known = zip(sources, *self.source_quality(page, [one.source for one in sources]), strict=True)
        for place, (one, of_source, towards) in enumerate(known):
            own = self._own.of(page) if place == 0 else (one.true_signals, one.false_signals)
            true, false = beta(of_source, own)
            weight = -float(np.log(false / (true + false)))
            if weight >= _LEAST_WEIGHT and one.n_signals_total:
                time = max(crawled_at - one.signalled_since, 0.0) if crawled_at > -np.inf else 0.0
                counted = max(one.n_signals_total - one.n_signals, 0) + _SIGNALS_OF_A_RATE
                rates.append(counted / (time + _SIGNALS_OF_A_RATE / towards))
                weights.append(weight)
                evidence += expected_evidence(true, false, one.n_signals)
        return rates, weights, evidence
