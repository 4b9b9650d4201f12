"""What is known of the announcements of pages: how often they come, what one is worth, and what there were."""

from __future__ import annotations

from functools import lru_cache
from math import exp

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.crawl_value.sources import merge_sources
from crawlsched.estimators.page_precision import expected_evidence, expected_evidences
from crawlsched.pages import Pages
from crawlsched.planner.evidence.further_sources import FurtherSources
from crawlsched.planner.evidence.page_precision import OwnPrecision, beta, learned
from crawlsched.planner.parameters.in_force import InForce

__all__ = ["Announcements"]

# A page's signal rate is its own count of signals with so many added at the rate of its source.
_SIGNALS_OF_A_RATE = 2.0
# With less than this a signal tells nothing, and its page is treated as one without signals.
_LEAST_WEIGHT = 1e-4
# Up to so many pages of several sources are merged one by one: in a crawl most of them were a moment ago.
_FEW = 32


class Announcements:
    """The announcements of pages as things stand, by the parameters in force.

    Parameters
    ----------
    pages : Pages
    in_force : InForce
        The parameters of each page.
    further : FurtherSources
        What sources beside its first one say of a page.
    own_precision : OwnPrecision
        What visits found of the announcements of each page's first source.

    Notes
    -----
    What is known of the first source of a page on its site is where its own precision begins.
    """

    def __init__(self, pages: Pages, in_force: InForce, further: FurtherSources, own_precision: OwnPrecision) -> None:
        self._pages = pages
        self._in_force = in_force
        self._further = further
        self._own = own_precision

    # -- what was announced

    def evidence(self, pages: IndexArray) -> FloatArray:
        """Return what was announced since each page's crawl, nats."""
        _, weight, heard = self.known(pages)
        return weight * heard

    def evidence_one(self, page: int) -> float:
        """Return the same for one page."""
        return self.signals_one(page)[1] * self.heard_one(page)

    def visited(self, page: int, changed: bool, doubt: float, unchanged: float, announced: float) -> None:
        """Learn from a visit after announcements how far those of its page can be trusted.

        Parameters
        ----------
        page : int
        changed : bool
        doubt : float
            Probability that a change was not noticed; as for `Posterior.update_one`.
        unchanged : float
            Probability of no change by the page's own rate alone.
        announced : float
            Evidence of all announcements together, nats.
        """

        def found(told: float) -> tuple[float, float]:
            # What the other sources said explains its part of what was found.
            fresh = unchanged * exp(-max(announced - told, 0.0))
            return (1.0, -fresh) if changed else (doubt, (1.0 - doubt) * fresh)

        if n_signals := self._pages.n_signals.item(page):
            of_source = self.source_quality_one(page, self._pages.source.item(page))[0]
            told = self._own.evidence_one(page, of_source, float(n_signals))
            self._own.learn(page, of_source, float(n_signals), *found(told))
        for one in self._further.of(page)[1:]:
            if one.n_signals:
                of_source, before = self.source_quality_one(page, one.source)[0], (one.true_signals, one.false_signals)
                right, wrong = beta(of_source)
                told = expected_evidence(right + before[0], wrong + before[1], one.n_signals)
                self._further.judge(one.row, *learned(of_source, before, one.n_signals, *found(told)))

    def forget(self, page: int) -> None:
        """A visit has seen whatever was announced of a page."""
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
        """Return signal rates (per second) and signal weights (nats); 0 both for pages whose signals tell nothing.

        The rate is counted per page, so it is 0 before the first announcement: a page that a source names and has never
        announced is worth what it would be without the source.
        """
        rate, weight, _ = self.known(pages)
        return rate, weight

    def known(self, pages: IndexArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what `signals` returns, and `heard_one` of each page."""
        columns = self._pages
        rate, weight = np.zeros((2, pages.size))
        sources, further = columns.source[pages], columns.further[pages]
        heard: FloatArray = columns.n_signals[pages].astype(np.float64)
        if sources.max(initial=-1) >= 0:
            total = columns.n_signals_total[pages].astype(np.float64)
            time = columns.crawled_at[pages] - columns.signalled_since[pages]
            counted = np.maximum(total - heard, 0.0)
            for parameters, part in self._in_force.by_parameters(pages):
                rows = (sources >= 0 if part is None else (sources >= 0) & part).nonzero()[0]
                of_group, towards = parameters.signal_quality(columns, pages[rows], sources[rows])
                true, false = self._own.betas(pages[rows], of_group)
                # As `OwnPrecision.weight_one`.
                weights = -np.log(false / (true + false))
                several = ((heard[rows] > 1.0) & (further[rows] == 0)).nonzero()[0]
                if several.size:
                    chosen = rows[several]
                    evidence = expected_evidences(true[several], false[several], heard[chosen])
                    heard[chosen] = evidence / weights[several]
                weights[weights < _LEAST_WEIGHT] = 0.0
                weight[rows] = weights
                live = ((weights > 0.0) & (towards > 0.0) & (total[rows] > 0.0)).nonzero()[0]
                chosen = rows[live]
                # Counted up to the last crawl: what has come since is evidence, and the rate must not change between
                # events.
                counts, since = counted[chosen] + _SIGNALS_OF_A_RATE, np.maximum(time[chosen], 0.0)
                since[~np.isfinite(since)] = 0.0
                rate[chosen] = counts / (since + _SIGNALS_OF_A_RATE / towards[live])
        several = further.nonzero()[0]
        if several.size > _FEW:
            self._know_several(pages, several, rate, weight, heard)
        else:
            for row in several.tolist():
                rate[row], merged, told = self._of_several(pages.item(row))
                weight[row], heard[row] = merged, told / merged if merged > 0 else 0.0
        return rate, weight, heard

    def _know_several(
        self, pages: IndexArray, rows: IndexArray, rate: FloatArray, weight: FloatArray, heard: FloatArray
    ) -> None:
        """Fill in what is known of many pages of several sources; those of equally many are merged at once."""
        alike: dict[int, list[tuple[int, list[float], list[float], float]]] = {}
        for row, page in zip(rows.tolist(), pages[rows].tolist(), strict=True):
            found = self._each_of_several(page)
            alike.setdefault(len(found[0]), []).append((row, *found))
        for n_sources, some in alike.items():
            of, rates, weights, evidence = (np.array(column) for column in zip(*some, strict=True))
            if n_sources > 1:
                rate[of], weight[of] = merge_sources(rates, weights)
            else:
                rate[of], weight[of] = (rates[:, 0], weights[:, 0]) if n_sources else (0.0, 0.0)
            heard[of] = np.divide(evidence, weight[of], out=np.zeros(of.size), where=weight[of] > 0.0)

    def gathered(self, pages: IndexArray) -> FloatArray:
        """Return rates and weights as `signals`, and evidence since the last crawl, nats; shape (3, n)."""
        columns, found = self._pages, np.zeros((3, pages.size))
        # Few pages have ever been announced; of the others nothing counts but their changes.
        rows = ((columns.n_signals_total[pages] > 0) | (columns.further[pages] > 0)).nonzero()[0]
        if rows.size:
            rate, weight, heard = self.known(pages[rows])
            found[:, rows] = rate, weight, weight * heard
        return found

    def signals_one(self, page: int) -> tuple[float, float]:
        """Return what `signals` returns, to the last bit, for one page."""
        columns = self._pages
        if columns.further.item(page):
            return self._of_several(page)[:2]
        source = columns.source.item(page)
        if source < 0:
            return 0.0, 0.0
        of_group, rate = self.source_quality_one(page, source)
        weight = self._own.weight_one(page, of_group)
        if weight < _LEAST_WEIGHT:
            return 0.0, 0.0
        total = columns.n_signals_total.item(page)
        if total == 0 or rate <= 0:
            return 0.0, weight
        time = max(columns.crawled_at.item(page) - columns.signalled_since.item(page), 0.0)
        counted = max(float(total) - columns.n_signals.item(page), 0.0)
        if not time < np.inf:
            time = 0.0
        return (counted + _SIGNALS_OF_A_RATE) / (time + _SIGNALS_OF_A_RATE / rate), weight

    def source_quality_one(self, page: int, source: int) -> tuple[float, float]:
        """Return what `Parameters.signal_quality` knows of a source and a page."""
        return self._in_force.of(page).signal_quality_one(source, self._pages.host.item(page))

    def heard_one(self, page: int) -> float:
        """Return how many announcements, of the weight that `signals` gives, there were since a page's last crawl.

        Their evidence by the weight of one: of several that is less than their number, since how far they can be
        trusted is not known for certain.
        """
        n = self.counted_one(page)
        if n <= 1.0 or self._pages.source.item(page) < 0 or self._pages.further.item(page):
            return n
        own = page, self.source_quality_one(page, self._pages.source.item(page))[0]
        return self._own.evidence_one(*own, n) / self._own.weight_one(*own)

    def is_silent(self, page: int) -> bool:
        """Whether no source has announced a page since its last crawl."""
        return not (self._pages.n_signals.item(page) or self._pages.further.item(page))

    def counted(self, pages: IndexArray) -> FloatArray:
        """Return how many announcements there were since the last crawl, where what each is worth is known for certain.

        A whole number, unless several sources cover the page: then it is their evidence by its weight.
        """
        n: FloatArray = self._pages.n_signals[pages].astype(np.float64)
        for row in np.flatnonzero(self._pages.further[pages]).tolist():
            n[row] = self.counted_one(int(pages[row]))
        return n

    def counted_one(self, page: int) -> float:
        """Return what `counted` returns for one page."""
        if not self._pages.further.item(page):
            return float(self._pages.n_signals.item(page))
        _, weight, evidence = self._of_several(page)
        return evidence / weight if weight > 0 else 0.0

    def _of_several(self, page: int) -> tuple[float, float, float]:
        """Return signal rate, signal weight and evidence of a page that several sources cover."""
        rates, weights, evidence = self._each_of_several(page)
        if len(rates) <= 1:
            return (rates[0], weights[0], evidence) if rates else (0.0, 0.0, 0.0)
        return *_merged(tuple(rates), tuple(weights)), evidence

    def _each_of_several(self, page: int) -> tuple[list[float], list[float], float]:
        """Return the rates and the weights of those sources of a page that tell something, and all that they told."""
        crawled_at = self._pages.crawled_at.item(page)
        rates, weights, evidence = [], [], 0.0
        for place, one in enumerate(self._further.of(page)):
            weight, rate = self.source_quality_one(page, one.source)
            if place == 0:
                told = self._own.evidence_one(page, weight, one.n_signals)
                weight = self._own.weight_one(page, weight)
            else:
                true, false = beta(weight)
                true, false = true + one.true_signals, false + one.false_signals
                weight, told = -float(np.log(false / (true + false))), expected_evidence(true, false, one.n_signals)
            if weight < _LEAST_WEIGHT or one.n_signals_total == 0:
                continue
            time = max(crawled_at - one.signalled_since, 0.0) if crawled_at > -np.inf else 0.0
            counted = max(one.n_signals_total - one.n_signals, 0) + _SIGNALS_OF_A_RATE
            rates.append(counted / (time + _SIGNALS_OF_A_RATE / rate))
            weights.append(weight)
            evidence += told
        return rates, weights, evidence


@lru_cache(maxsize=8192)
def _merged(rates: tuple[float, ...], weights: tuple[float, ...]) -> tuple[float, float]:
    # Between two crawls of a page they stay as they are, and are asked for often.
    rate, weight = merge_sources(rates, weights)
    return float(rate), float(weight)
