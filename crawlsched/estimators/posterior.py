"""The gridded posterior: for each page, the probability of each of some fixed change rates, given what visits found."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from sys import float_info
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.blocks import blocks
from crawlsched.columns.numerics import LONGEST, SHORTEST, TINY
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.log_weights import (
    decoded,
    dither,
    dither_one,
    encoded,
    from_steps,
    relative_likelihoods,
    to_steps,
)
from crawlsched.estimators.observations import Observations, check_observations, check_rows, per_page
from crawlsched.estimators.probabilities import check_prior, posterior_probabilities, visit_log_likelihood
from crawlsched.slot_clock import DAY

__all__ = ["DEFAULT_RATES", "DEFAULT_RATES_ID", "Posterior", "RenewalProcess", "grid_id"]

# At most this number of visits are noted before they are learned from.
_MOST_NOTED = 256

#: 32 change rates (per second) in equal ratios of 1.62, from once in three years to once in 30 seconds.
#:
#: Neighbours have to be close enough to represent every rate between them. One visit distinguishes rates that differ by
#: a factor of about e. Ten visits distinguish rates that differ by a factor of about 1.6. A finer grid would give
#: nearly the same crawl values. At the slow end a page practically never changes while a crawl lasts. At the fast end
#: no crawler can follow. A page beyond either end counts as having the rate at that end.
DEFAULT_RATES: FloatArray = np.geomspace(1 / (3 * 365 * DAY), 1 / 30, 32)
DEFAULT_RATES.setflags(write=False)


def _check_rates(rates: npt.ArrayLike) -> FloatArray:
    """Return a grid of positive, finite, increasing rates as a read-only array, or raise `ValueError`."""
    grid = np.array(rates, dtype=np.float64)
    if grid.ndim != 1 or grid.size < 2:
        raise ValueError(f"rates must be a one-dimensional array of at least 2 rates, got shape {grid.shape}.")
    if not (np.isfinite(grid).all() and grid[0] > 0 and (np.diff(grid) > 0).all()):
        raise ValueError("rates must be positive, finite and increasing (changes per second), got " + repr(grid[:4]))
    grid.setflags(write=False)
    return grid


def grid_id(rates: npt.ArrayLike) -> str:
    """Return a short name that two grids share only if they have the same rates.

    The name is the number of rates and a digest of them. Each rate is rounded to nine digits, so that the name is the
    same on every machine.

    Examples
    --------
    >>> grid_id([0.001, 0.01, 0.1])
    '3-2c5f0359'
    """
    grid = _check_rates(rates)
    text = " ".join(f"{rate:.8e}" for rate in grid)
    return f"{grid.size}-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"


#: The name of `DEFAULT_RATES`; a test pins it, since rows in databases depend on it.
DEFAULT_RATES_ID = grid_id(DEFAULT_RATES)


class RenewalProcess:
    """One step of a hidden Markov chain of change rates, applied to the likelihoods of a grid.

    Parameters
    ----------
    farthest : float, default 10
        A new rate is at most this factor above or below the old rate, except for the share `far`.
    far : float, default 0.1
        This share of new rates is drawn from the prior, so that no rate is ever ruled out and a jump by a factor of a
        hundred is noticed.
    most : float, default 2
        In one step a rate gains at most this multiple of `probability` times its prior. Without the limit, evidence
        against rates that no page has would be forgotten at each step. A prior learned from such likelihoods would then
        give these rates weight.

    Notes
    -----
    With the prior π and likelihoods L the weights of the rates before the step are π L. The share ε of these weights
    moves to other rates. Nine tenths of this share move evenly to the W rates within a factor of ten. One tenth moves
    to all rates, in proportion to the prior. No rate gets more than 2 ε times its prior. The state is the likelihood
    without the prior. Up to a constant, with the odds o = ε / (1 - ε), the step is

        L_j ← L_j + min(o (0.9 Σ_near π_i L_i / (W π_j) + 0.1 Σ π_i L_i), 2 ε Σ π_i L_i).

    The fixed share of Herbster and Warmuth (1998) is this formula with the last sum alone. There, new rates are drawn
    from the prior, so a page's new rate is found soon only if many pages have such a rate. Here a new rate within a
    factor of ten of the old one is found soon, whatever the rates of other pages are.

    Examples
    --------
    >>> rates = np.array([0.01, 0.1, 1.0, 10.0, 100.0])
    >>> likelihood, prior = np.array([0.0, 0.0, 1.0, 0.0, 0.0]), np.full(5, 0.2)
    >>> renewed = np.exp(RenewalProcess(rates, 0.1).renewed(likelihood, prior))
    >>> (renewed / renewed[2]).round(3)
    array([0.002, 0.034, 1.   , 0.034, 0.002])
    """

    def __init__(
        self, rates: FloatArray, probability: float, *, farthest: float = 10.0, far: float = 0.1, most: float = 2.0
    ) -> None:
        # Rounding must not exclude rates that differ by exactly this factor.
        factors = np.array([1.0 / farthest, farthest]) * [1.0 - 1e-9, 1.0 + 1e-9]
        self.near: IndexArray = np.searchsorted(rates, np.outer(rates, factors))
        odds = probability / (1.0 - probability)
        widest = int(np.diff(self.near, axis=1).max())
        self._shares = (1.0 - far) * odds / widest, far * odds, most * probability
        # Each column has the shares that a rate gets from the rates near it; the last column adds up all weights.
        rows = np.arange(rates.size)[:, np.newaxis]
        nearby = (rows >= self.near[:, 0]) & (rows < self.near[:, 1])
        self._sums: FloatArray = np.column_stack([nearby * self._shares[0], np.ones(rates.size)])

    def renewed(self, likelihood: FloatArray, prior: FloatArray) -> FloatArray:
        """Return log-likelihoods of the rates after the step, up to a constant, from likelihoods before it.

        The result overwrites the argument `likelihood`.
        """
        _, far, most = self._shares
        weights = likelihood * prior
        if weights.ndim == 1:  # the case of every visit: a plain number is faster
            sums = weights.dot(self._sums)
            total = sums.item(-1)
        else:  # a product for each row: a product of two matrices would round differently
            sums = np.matmul(weights[:, np.newaxis], self._sums)[:, 0]
            total = sums[:, -1:]
        found: FloatArray = sums[..., :-1]
        found /= np.maximum(prior, TINY)
        found += far * total
        likelihood += np.minimum(found, most * total, out=found)
        return np.log(likelihood, out=likelihood)


class Posterior(Estimator):
    """Bayes' rule on a grid of change rates; the estimator that the scheduler uses by default.

    Parameters
    ----------
    rates : array_like, shape (K,), optional
        Possible change rates per second, increasing; `DEFAULT_RATES` by default (32 of them, from once in three years
        to once in 30 seconds). With ChangeSignals they are rates of *unsignalled* changes (α).
    prior : array_like, shape (K,), optional
        Probability of each rate before the first visit; equal by default. On a log-spaced grid, equal probabilities
        favour no order of magnitude. The prior is used for probabilities and by `renewal`.
    dtype : {numpy.float64, numpy.uint8}
        How log-likelihoods are stored: exactly (8 K bytes a page), or compactly (K bytes a page). Compact
        log-likelihoods are off by about sqrt(n)/50 nats after n visits, see Notes.
    renewal : float, optional
        Probability in [0, 1) that the page's rate changes between two visits, usually by less than a factor of ten
        (`RenewalProcess`); 0 by default.

    Attributes
    ----------
    rates_id : str
        The name of the grid, for rows in a store.

    Notes
    -----
    A visit after τ seconds multiplies the likelihood of rate r by ``exp(-r τ)`` if the page was unchanged and by
    ``1 - exp(-(r τ + e))`` if it had changed. The `evidence` e is the sum of κ n over the sources. Announcements lower
    the log-probability of freshness by e. (By the noisy-signals paper [1]_, section 3, a page is fresh with probability
    exp(-α τ - κ n).) For an unchanged page exp(-e) is common to all rates and drops out.

    The state is the log-likelihood relative to each row's maximum, *without* the prior, so that a newly learned prior
    applies to every page at once.

    With `renewal` ε the rate is a hidden Markov chain, and each visit begins with a step of its filter. This is the
    fixed share [3]_ with another distribution of new rates. Evidence against a rate is then never much more than
    log(1/ε), and the estimate soon follows a page whose rate has changed. The estimate of a steady rate is nearly as
    good as without `renewal`. docs/notes/learning.md has the figures.

    After only a few visits, the prior draws the posterior mean towards the prior's mean, as intended. For a page not
    yet visited, the bias is the error of the prior's mean. After n visits the bias is at most O(1/n). A page that
    changes faster than the last rate of the grid, or more slowly than the first, counts as having that rate. After many
    visits only two neighbouring rates of the grid are still likely. The mean may then be off by up to half a grid step
    (27 % of the rate with the default grid). This is the price of constant state.

    In compact form an offset is added to each update, which is then rounded down. The offset depends on the page and
    the number of updates. The offsets are evenly spread, so rounding is right on average even for updates far below a
    step. The caller counts the updates of such rows. Steps are coarser for less likely rates: 1/2048 nat at the
    likeliest rate, and 1/20 nat at a rate one nat below it. Crawl values of single pages are then off by half a percent
    after 30 visits. They are off by one or two percent if each visit teaches little, and `renewal` soon forgets it. The
    uncertainty of the rate has a larger effect: 10 to 45 %. In compact form, evidence against a rate counts for at most
    32 nats.

    References
    ----------
    .. [1] Busa-Fekete et al. (2025), "Scalable crawling with noisy change-indicating signals".
    .. [2] Cho, Garcia-Molina (2003), "Estimating frequency of change", appendix B, for the Bayesian view.
    .. [3] Herbster, Warmuth (1998), "Tracking the best expert", Machine Learning 32.

    Examples
    --------
    Two pages, both visited daily for a week; the first was found changed each time, the second never:

    >>> day = 86_400.0
    >>> posterior = Posterior(2, rates=[0.01 / day, 0.1 / day, 1 / day, 10 / day])
    >>> for _ in range(7):
    ...     posterior.update([0, 1], day, [True, False])
    >>> posterior.weights().round(3)
    array([[0.   , 0.   , 0.039, 0.961],
           [0.652, 0.347, 0.001, 0.   ]])
    >>> (posterior.change_rate() * day).round(3)
    array([9.652, 0.042])
    """

    def __init__(
        self,
        n_pages: int,
        rates: npt.ArrayLike | None = None,
        *,
        prior: npt.ArrayLike | None = None,
        dtype: npt.DTypeLike = np.float64,
        renewal: float = 0.0,
    ) -> None:
        self.rates = DEFAULT_RATES if rates is None else _check_rates(rates)
        self.rates_id = grid_id(self.rates)
        self._ones = np.ones(self.rates.size)
        self.dtype = np.dtype(dtype).name
        if self.dtype not in ("float64", "uint8"):
            raise ValueError(f"dtype must be numpy.float64 or numpy.uint8, got {self.dtype}.")
        n_rates = self.rates.size
        self.prior = check_prior(np.full(n_rates, 1.0) if prior is None else prior, n_rates)
        if not 0 <= renewal < 1:
            raise ValueError(f"renewal must be a probability from 0 to below 1, got {renewal!r}.")
        self.renewal = float(renewal)
        self._renewal = RenewalProcess(self.rates, self.renewal)
        # By page, the last visit if it was not learned from yet: elapsed, changed, evidence, prior, number of updates.
        self._noted: dict[int, tuple[float, bool, float, FloatArray, int]] = {}
        super().__init__(n_pages)

    def _new_rows(self, n: int) -> Columns:
        return {"log_likelihood": np.zeros((n, self.rates.size), dtype=self.dtype)}

    def update(
        self,
        pages: npt.ArrayLike,
        elapsed: npt.ArrayLike,
        changed: npt.ArrayLike,
        n_signals: npt.ArrayLike | None = None,
        time_since_modified: npt.ArrayLike | None = None,
        evidence: npt.ArrayLike | None = None,
        prior: npt.ArrayLike | None = None,
        n_updates: int | None = None,
    ) -> None:
        """Learn from one visit to each of some distinct pages.

        Parameters
        ----------
        evidence : array_like, optional
            The sum of κ n over the sources of announcements since the previous visit, in nats. Announcements lower the
            log-probability of freshness by this sum. 0 by default, ``inf`` where an announcement is proof.
        prior : array_like, shape (K,) or (n, K), optional
            The prior that `renewal` uses; the constructor's by default.
        n_updates : int, optional
            How many updates these rows have had; needed for compact rows, since rounding depends on it.
        """
        if self.dtype != "float64" and n_updates is None:
            raise ValueError(f"n_updates must be the number of updates that these {self.dtype} rows have had.")
        seen = check_observations(self.n_pages, pages, elapsed, changed, n_signals, time_since_modified)
        nats = per_page(0.0 if evidence is None else evidence, seen.pages.size, "evidence")
        if not (nats >= 0).all():
            raise ValueError(f"evidence must be nats that are not negative, got {nats[~(nats >= 0)][0]}.")
        before = self.prior if prior is None else check_prior(prior, self.rates.size, seen.pages.size)
        for part in blocks(seen.pages.size, self.rates.size):
            priors = before if before.ndim == 1 else before[part]
            self._learn(seen.pages[part], seen.elapsed[part], seen.changed[part], nats[part], priors, n_updates or 0)

    def _learn(
        self,
        pages: IndexArray,
        elapsed: FloatArray,
        changed: npt.NDArray[np.bool_],
        evidence: FloatArray,
        priors: FloatArray,
        n_updates: int | IndexArray,
    ) -> None:
        stored = self._stored
        if self.renewal:
            relative = self._renewal.renewed(relative_likelihoods(stored[pages]), priors)
        else:
            relative = decoded(stored[pages])
        relative += visit_log_likelihood(self.rates, elapsed, changed, evidence)
        relative -= relative.max(axis=1, keepdims=True)
        is_exact = self.dtype == "float64"
        stored[pages] = relative if is_exact else encoded(relative, dither(pages, n_updates)[:, np.newaxis])

    @property
    def _stored(self) -> npt.NDArray[Any]:
        if self._noted:
            self._learn_noted()
        return self._columns["log_likelihood"]

    def _learn_noted(self) -> None:
        noted, self._noted = self._noted, {}
        if len(noted) > 1:
            elapsed, changed, evidence, priors, n_updates = map(np.array, zip(*noted.values(), strict=True))
            self._learn(np.array(list(noted)), elapsed, changed, evidence, priors, n_updates)
        else:
            for page, visit in noted.items():
                self._learn_one(page, *visit)

    def rows_from_bytes(self, pages: npt.ArrayLike, packed: Sequence[bytes]) -> None:
        """Replace the state of distinct pages with rows that `rows_to_bytes` returned."""
        self._learn_noted()  # later it would change the new state
        super().rows_from_bytes(pages, packed)

    def _observe(self, seen: Observations) -> None:
        self.update(*seen)

    def update_one(
        self,
        page: int,
        elapsed: float,
        changed: bool,
        evidence: float = 0.0,
        *,
        doubt: float = 0.0,
        time_since_modified: float | None = None,
        prior: FloatArray | None = None,
        n_updates: int = 0,
    ) -> None:
        """Learn from one visit to one page; `update` learns from visits to several pages.

        Parameters
        ----------
        doubt : float, default 0
            Probability that a page which changed would have looked unchanged.
        time_since_modified : float, optional
            Seconds from the page's last change to this visit, if known. They are used only for a changed page without
            evidence, and only if they are fewer than `elapsed`.
        n_updates : int, default 0
            How many updates the row has had; rounding of compact rows depends on it.

        Notes
        -----
        With a doubt q, an unchanged page has the likelihood q + (1 - q) e^{-(rτ + e)}. So it lowers the log-likelihood
        of a rate by at most -log q. If a page is known to have changed last s seconds ago, its likelihood is r e^{-rs}
        instead of 1 - e^{-rτ}. The estimator of Cho and Garcia-Molina (2003, section 5) for pages with Last-Modified is
        based on the same likelihood. Here each rate of the grid has this likelihood.

        Most visits are only noted: numpy takes about as long for a hundred visits as for one. The next method that
        reads or sets rows learns from all noted visits first.

        Examples
        --------
        Both pages changed within the last 10,000 s. The page that last changed 9,000 s ago probably has the slower
        rate:

        >>> posterior = Posterior(2, rates=[1e-4, 1e-3])
        >>> posterior.update_one(0, 10_000.0, True)
        >>> posterior.update_one(1, 10_000.0, True, time_since_modified=9_000.0)
        >>> posterior.weights().round(3)
        array([[0.387, 0.613],
               [0.997, 0.003]])
        """
        if not (0 <= doubt < 1 and (time_since_modified is None or time_since_modified >= 0)):
            raise ValueError(
                "doubt must be a probability below 1 and time_since_modified seconds that are not negative, or None, "
                f"got {doubt!r} and {time_since_modified!r}."
            )
        if not (0 <= page < self.n_pages and 0 < elapsed < np.inf and evidence >= 0):
            check_observations(self.n_pages, page, elapsed, changed, None, None)  # raises the error
            raise ValueError(f"evidence must be nats that are not negative, got {evidence!r}.")
        dated = changed and time_since_modified is not None and time_since_modified < elapsed and not evidence
        if not SHORTEST <= elapsed <= LONGEST:
            elapsed = min(max(elapsed, SHORTEST), LONGEST)
        before = self.prior if prior is None else prior
        if page in self._noted or len(self._noted) == _MOST_NOTED:
            self._learn_noted()
        if dated or (doubt and not changed):
            modified = time_since_modified if dated else None
            self._learn_one(page, elapsed, changed, evidence, before, n_updates, doubt, modified)
        else:
            self._noted[page] = elapsed, changed, evidence, before, n_updates

    def _learn_one(
        self,
        page: int,
        elapsed: float,
        changed: bool,
        evidence: float,
        before: FloatArray,
        n_updates: int,
        doubt: float = 0.0,
        modified: float | None = None,
    ) -> None:
        """Do the same as `_learn` for one page, without the overhead of arrays."""
        stored = self._stored
        if self.renewal:
            relative = self._renewal.renewed(relative_likelihoods(stored[page]), before)
        else:
            relative = decoded(stored[page])
        expected = self.rates * elapsed
        if modified is not None:
            relative += np.log(self.rates) - self.rates * min(modified, LONGEST)
        elif changed:
            expected += evidence
            np.maximum(expected, float_info.min, out=expected)
            np.negative(expected, out=expected)
            np.expm1(expected, out=expected)
            np.negative(expected, out=expected)
            relative += np.log(expected, out=expected)
        elif doubt:
            relative += np.log(doubt + (1.0 - doubt) * np.exp(-(expected + evidence)))
        else:
            relative -= expected
        relative -= relative.item(relative.argmax())  # four times as fast as `max` for some dozens of numbers
        stored[page] = relative if self.dtype == "float64" else encoded(relative, dither_one(page, n_updates))

    def weights(
        self, pages: npt.ArrayLike | None = None, prior: npt.ArrayLike | None = None, learning_rate: float = 1.0
    ) -> FloatArray:
        """Return the probability of each rate of the grid, shape (n, K), or (K,) for a single page.

        Parameters
        ----------
        prior : array_like, shape (K,) or (n, K), optional
            Probability of each rate before the first visit, for all pages or for each; the constructor's prior by
            default. It need not add up to 1.
        learning_rate : float, default 1
            Power of the likelihood; below 1, each visit teaches less (a generalized posterior).
        """

        def read(rows: IndexArray) -> FloatArray:
            before = self.prior if prior is None else check_prior(prior, self.rates.size, rows.size)
            return posterior_probabilities(self._stored[rows], before, learning_rate)

        found: FloatArray = self._of(pages, read)
        return found

    def unchanged_one(
        self, page: int, elapsed: float, prior: FloatArray | None = None, learning_rate: float = 1.0
    ) -> float:
        """Return the probability that a page does not change in `elapsed` seconds; O(K). The prior is not checked."""
        before, fresh = self.prior if prior is None else prior, np.exp(self.rates * -elapsed)
        joint = relative_likelihoods(self._stored[page], learning_rate)
        joint *= before
        total = float(joint.dot(self._ones))
        if not TINY < total < np.inf:
            return float(self.weights(page, before, learning_rate).dot(fresh))
        return float(joint.dot(fresh)) / total

    def weights_many(
        self, pages: IndexArray, priors: FloatArray, groups: IndexArray, learning_rate: float = 1.0
    ) -> FloatArray:
        """Return the probability of each rate for some pages: `weights` without checks.

        `groups` has the row of `priors` that applies to each page.
        """
        stored = self._stored
        before = priors[0] if priors.shape[0] == 1 else priors[groups]
        return posterior_probabilities(stored[pages], before, learning_rate)

    def _estimate(self, pages: IndexArray) -> FloatArray:
        mean = np.empty(pages.size)
        for part in blocks(pages.size, self.rates.size):
            # A matrix product would round differently for other numbers of rows.
            weights = posterior_probabilities(self._stored[pages[part]], self.prior)
            mean[part] = (weights * self.rates).sum(axis=1)
        return mean

    def log_likelihood(self, pages: npt.ArrayLike | None = None) -> FloatArray:
        """Return the log-likelihood of each rate relative to the likeliest, in nats, without the prior."""
        found: FloatArray = self._of(pages, lambda rows: decoded(self._stored[rows]))
        return found

    def packed(self, pages: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return compact rows for a store, shape (n, K): steps of 1/2048 nat below the likeliest rate."""
        self._only_compact("packed")
        return to_steps(self._stored[check_rows(pages, self.n_pages)])

    def unpack(self, pages: npt.ArrayLike, packed: npt.ArrayLike) -> None:
        """Set rows to what `packed` returned, from a posterior with the same rates (compare `rates_id`)."""
        self._only_compact("unpack")
        rows = check_rows(pages, self.n_pages)
        given, expected = np.atleast_2d(np.asarray(packed)), (rows.size, self.rates.size)
        if given.dtype != np.uint16 or given.shape != expected:
            raise ValueError(
                f"packed must be an array of uint16 with shape {expected}, got {given.dtype} with shape {given.shape}."
            )
        self._stored[rows] = from_steps(given)

    def codes(self, n_pages: int) -> npt.NDArray[Any]:
        """Return the compact rows of the first `n_pages` pages as they are stored in memory, shape (n, K); a view."""
        self._only_compact("codes")
        return self._stored[:n_pages]

    def _only_compact(self, name: str) -> None:
        if self.dtype == "float64":
            raise ValueError(
                f"dtype must be uint8 for {name}(), got {self.dtype}; exact rows travel by rows_to_bytes()."
            )
