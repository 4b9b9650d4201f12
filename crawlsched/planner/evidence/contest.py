"""A contest: which of some probabilities has foretold visits best."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from crawlsched.columns.array_types import FloatArray

__all__ = ["Contest"]

# So many visits are looked at together, which costs a tenth of looking at each when it comes.
_TOGETHER = 64
_LEAST_PROBABILITY = 1e-9


class Contest:
    """Sums of log losses, by row of visits, by bias, and by hypothesis.

    Parameters
    ----------
    n_rows : int
        Kinds of hints, of which each has a best hypothesis; visits without a hint are of one row more.
    probabilities : ndarray, shape (w,)
        Hypotheses: with what probability w a hint is true. The first, 0, is that of no hint at all.
    lead : float
        By how many nats any other has to be better than the first.
    biases : ndarray, shape (b,)
        By how much more often pages may be found changed than was expected, whatever hints say.

    Attributes
    ----------
    losses : ndarray, shape (n_rows + 1, b, w)
        How much worse each has foretold visits than the best, nats: the whole state.
    losses_elsewhere : ndarray, shape (n_rows + 1, b, w)
        The same of visits that others have made, as `hear` was told.
    best : ndarray, shape (n_rows,)
        By row the probability with the least loss in all visits, at the bias that is best for all.

    Notes
    -----
    A page of which a hint of strength f was heard is unchanged with (1 - b)(1 - w f) times the probability expected
    otherwise. The bias b is there so that what is wrong with expectations in general is not blamed on hints.

    Examples
    --------
    Visits after hints of the second kind mostly find a change which nobody would expect:

    >>> contest = Contest(2, np.array([0.0, 0.5, 0.9]), 3.0, np.array([0.0, 0.1]))
    >>> for visit in range(64):
    ...     contest.foretold(row=1, strength=1.0, unchanged=0.9, changed=visit % 8 > 0)
    >>> contest.best.tolist()
    [0.0, 0.9]
    """

    def __init__(self, n_rows: int, probabilities: FloatArray, lead: float, biases: FloatArray) -> None:
        self._n_rows = n_rows
        self._probabilities = probabilities
        self._biases = biases
        self._rows = np.arange(n_rows + 1)
        self.n_visits = 0
        self._waiting: list[tuple[int, float, float, bool]] = []
        self._lead = lead
        self.losses: FloatArray = np.zeros((n_rows + 1, biases.size, probabilities.size))
        self.losses_elsewhere: FloatArray = np.zeros_like(self.losses)
        self.best = self._find_best()

    def foretold(self, row: int, strength: float, unchanged: float, changed: bool) -> None:
        """Compare a visit with what was to be expected.

        Parameters
        ----------
        row : int
            Kind of hint; the last one where there was none.
        strength : float
            From 0 to 1.
        unchanged : float
            Probability that the page had not changed but for the hint.
        changed : bool
        """
        self.n_visits += 1
        self._waiting.append((row, strength, unchanged, changed))
        if len(self._waiting) == _TOGETHER:
            self._look()

    def _look(self) -> None:
        # The losses so far stand before the visits of their row.
        before = [(row, 0.5, 0.5, False) for row in self._rows.tolist()]
        visits = sorted((*before, *self._waiting), key=itemgetter(0))
        rows, strengths, unchanged, changed = (np.array(column) for column in zip(*visits, strict=True))
        self._waiting.clear()
        expected = np.minimum(np.maximum(unchanged, _LEAST_PROBABILITY), 1.0 - _LEAST_PROBABILITY)
        # By bias, probability and visit: numpy is fast where the longest stretch stands last.
        by_bias = np.multiply.outer(1.0 - self._biases, expected)
        found = by_bias[:, np.newaxis] * (1.0 - np.multiply.outer(self._probabilities, strengths))
        # 1 less that, where a change was found.
        np.abs(np.subtract(changed, found, out=found), out=found)
        np.log(found, out=found)
        first = rows.searchsorted(self._rows)
        found[:, :, first] = self.losses.transpose(1, 2, 0)
        losses = np.subtract.reduceat(found, first, axis=2)
        losses -= losses.min(axis=(0, 1))
        self.losses = np.ascontiguousarray(losses.transpose(2, 0, 1))
        self.best = self._find_best()

    def _find_best(self) -> FloatArray:
        losses = self.losses + self.losses_elsewhere
        losses[: self._n_rows, :, 1:] += self._lead
        bias = int(losses.min(axis=2).sum(axis=0).argmin())
        best: FloatArray = self._probabilities[losses[: self._n_rows, bias].argmin(axis=1)]
        return best

    def recall(self, losses: FloatArray) -> None:
        """Go on from the `losses` of an earlier one; those of another shape say nothing."""
        if np.shape(losses) == self.losses.shape:
            self.losses = np.array(losses)
            self.best = self._find_best()

    def hear(self, losses: FloatArray) -> None:
        """Take in the `losses` of others, in the place of what was heard before: all visits together decide."""
        if np.shape(losses) == self.losses.shape:
            self.losses_elsewhere = np.array(losses)
            self.best = self._find_best()
