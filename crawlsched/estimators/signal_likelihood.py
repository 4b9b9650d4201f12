"""The likelihood of what visits found, given a change rate and the weight of an announcement, and where it is greatest.

A visit finds the page changed with probability ``1 - exp(-(a x + k n))``, where x is the elapsed time (or the changes
expected in it), n the number of announcements, a the unsignalled change rate (or a scale on it) and k the signal
weight. The logarithm is concave in (a, k), linear for unchanged visits: of those only the sums of x and n matter.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_SIGNAL_WEIGHT", "Evidence", "maximize", "maximize_scale", "regularized", "weight_interval"]

FloatArray = npt.NDArray[np.float64]

#: exp(-36) is the rounding error of 1 - exp(-36): a heavier announcement cannot be told from a certain one.
MAX_SIGNAL_WEIGHT = 36.0

_TOLERANCE = 1e-12
_ROUNDS = 200
_SMALLEST = 1e-300
# A scale at which not one change in a million million is owed to it, with x in units of its sum.
_NEGLIGIBLE = 1e-12


class Evidence(NamedTuple):
    """Visits as the likelihood needs them.

    Attributes
    ----------
    x : ndarray, shape (m,)
        Elapsed time (or changes expected) of visits that found a change.
    n : ndarray, shape (m,)
        Announcements in it.
    weight : ndarray, shape (m,)
        How many such visits each row stands for.
    unchanged_x, unchanged_n : float
        Sums over visits that found no change.
    true_signals, false_signals : float
        Visits with a single announcement and no other possible change, changed and unchanged, which the prior on the
        signal weight amounts to.
    """

    x: FloatArray
    n: FloatArray
    weight: FloatArray
    unchanged_x: float
    unchanged_n: float
    true_signals: float = 0.0
    false_signals: float = 0.0

    def log_likelihood(self, scale: float, signal_weight: float) -> float:
        """Return the logarithm of the likelihood, prior included."""
        odds = np.maximum(scale * self.x + signal_weight * self.n, _SMALLEST)
        found = float(self.weight @ np.log(-np.expm1(-odds)))
        found -= scale * self.unchanged_x + signal_weight * (self.unchanged_n + self.false_signals)
        if self.true_signals:
            found += self.true_signals * float(np.log(-np.expm1(-max(signal_weight, _SMALLEST))))
        return found

    def slopes(self, scale: float, signal_weight: float) -> tuple[float, float, float, float, float]:
        """Return the first derivatives by scale and weight, and the second (scale, mixed, weight), negated."""
        odds = np.maximum(scale * self.x + signal_weight * self.n, _SMALLEST)
        first = 1.0 / np.expm1(np.minimum(odds, 700.0))
        second = self.weight * first * (1.0 + first)
        first *= self.weight
        by_scale = float(first @ self.x) - self.unchanged_x
        by_weight = float(first @ self.n) - self.unchanged_n - self.false_signals
        curvature = second * self.n
        by_weight_twice = float(curvature @ self.n)
        if self.true_signals:
            one = 1.0 / float(np.expm1(max(signal_weight, _SMALLEST)))
            by_weight += self.true_signals * one
            by_weight_twice += self.true_signals * one * (1.0 + one)
        return by_scale, by_weight, float(second @ (self.x * self.x)), float(curvature @ self.x), by_weight_twice


def regularized(evidence: Evidence) -> Evidence:
    """Return evidence whose likelihood is greatest at a finite place.

    Where every visit found a change the scale would be infinite, and where every visit after an announcement did, so
    would be the signal weight. Half an unchanged visit of the mean kind is added then, as Cho and Garcia-Molina (2003)
    do in their section 4.2 for the same reason.
    """
    total = float(evidence.weight.sum())
    if total and evidence.unchanged_x == 0:
        evidence = evidence._replace(unchanged_x=0.5 * float(evidence.weight @ evidence.x) / total)
    if evidence.unchanged_n + evidence.false_signals == 0:
        signalled = evidence.n > 0
        visits = float(evidence.weight[signalled].sum()) + evidence.true_signals
        if visits:
            signals = float(evidence.weight @ evidence.n) + evidence.true_signals
            evidence = evidence._replace(unchanged_n=0.5 * signals / visits)
    return evidence


def maximize(evidence: Evidence) -> tuple[float, float]:
    """Return the scale and the signal weight of greatest likelihood.

    The likelihood being concave, there are three cases: the greatest value lies on the edge without weight, on the edge
    without scale, or inside. The first has precedence where they tie (announcements that come with every visit and say
    nothing): what does not help is not trusted.
    """
    unit = float(evidence.weight @ evidence.x) + evidence.unchanged_x or 1.0
    evidence = evidence._replace(x=evidence.x / unit, unchanged_x=evidence.unchanged_x / unit)
    scale = maximize_scale(evidence, 0.0)
    if not evidence.true_signals:
        signals = float(evidence.weight @ evidence.n) + evidence.unchanged_n + evidence.false_signals
        by_weight = evidence.slopes(scale, 0.0)[1] if signals else 0.0
        if by_weight <= 1e-9 * signals:
            return scale / unit, 0.0
    scale, signal_weight = _climb(evidence, max(scale, _NEGLIGIBLE))
    return scale / unit, signal_weight


def maximize_scale(evidence: Evidence, signal_weight: float) -> float:
    """Return the scale of greatest likelihood for a given signal weight."""
    changed = evidence.x > 0
    if not changed.any():
        return 0.0
    x, n, weight = evidence.x[changed], evidence.n[changed], evidence.weight[changed]
    given = signal_weight * n
    if evidence.unchanged_x == 0:
        return float("inf")
    # With y = scale x + given, 1/(e^y - 1) >= 1/y - 1/2: where nothing is announced this bounds the scale from below.
    scale = _NEGLIGIBLE / (float(weight @ x) + evidence.unchanged_x)
    if signal_weight == 0:
        scale = float(weight.sum()) / (evidence.unchanged_x + 0.5 * float(weight @ x))
    elif float(weight @ (x / np.expm1(np.clip(given, _SMALLEST, 700.0)))) <= evidence.unchanged_x:
        return 0.0  # downhill from the start: announcements explain all changes
    # The logarithm of the slope of changed visits is convex and falls, so that Newton's method on it comes to the root
    # from the left and never overshoots.
    target = np.log(evidence.unchanged_x)
    for _ in range(_ROUNDS):
        first = 1.0 / np.expm1(np.clip(scale * x + given, _SMALLEST, 700.0))
        slope = float(weight @ (x * first))
        step = (np.log(slope) - target) * slope / float(weight @ (x * x * first * (1.0 + first)))
        scale += float(max(step, -0.5 * scale))
        if abs(step) <= _TOLERANCE * scale:
            break
    return scale


def weight_interval(evidence: Evidence, signal_weight: float, drop: float) -> tuple[float, float]:
    """Return the signal weights at which the profile likelihood lies `drop` nats below its greatest value.

    Parameters
    ----------
    evidence : Evidence
        Visits; with an unchanged one among them.
    signal_weight : float
        Where the profile likelihood is greatest; `MAX_SIGNAL_WEIGHT` where it rises for ever.
    drop : float
        Half the quantile of the chi-squared distribution with one degree of freedom; 1.92 for 95 %.
    """

    def excess(weight: float) -> float:
        return best - drop - evidence.log_likelihood(maximize_scale(evidence, weight), weight)

    best = 0.0
    best = -excess(signal_weight) - drop
    low, high = 0.0, MAX_SIGNAL_WEIGHT
    if excess(0.0) > 0:
        low = _crossing(excess, signal_weight, 0.0)
    if signal_weight < MAX_SIGNAL_WEIGHT and excess(MAX_SIGNAL_WEIGHT) > 0:
        far = min(2 * signal_weight + 0.1, MAX_SIGNAL_WEIGHT)
        while excess(far) < 0:
            far = min(2 * far, MAX_SIGNAL_WEIGHT)
        high = _crossing(excess, signal_weight, far)
    return low, high


def _crossing(function: Callable[[float], float], inside: float, outside: float) -> float:
    """Return where a function that is negative inside and positive outside is 0 (false position, Illinois rule)."""
    below, above = function(inside), function(outside)
    for _ in range(60):
        middle = (inside * above - outside * below) / (above - below)
        value = function(middle)
        if abs(value) < 1e-6 or abs(outside - inside) < 1e-9:
            break
        if value < 0:
            inside, below, above = middle, value, above / 2
        else:
            outside, above, below = middle, value, below / 2
    return middle


def _climb(evidence: Evidence, scale: float) -> tuple[float, float]:
    """Maximize over both by Newton's method from inside; x is in units of its sum."""
    signal_weight = 0.1
    value = evidence.log_likelihood(scale, signal_weight)
    for _ in range(_ROUNDS):
        by_scale, by_weight, a, b, c = evidence.slopes(scale, signal_weight)
        # A little curvature where there is none: along the ridge of announcements proportional to time, for instance.
        a, c = a * (1 + 1e-9) + 1e-12, c * (1 + 1e-9) + 1e-12
        determinant = a * c - b * b
        step = (c * by_scale - b * by_weight) / determinant, (a * by_weight - b * by_scale) / determinant
        length = 1.0
        while True:
            # Never more than nine tenths of the way to an edge at once.
            next_scale = max(scale + length * step[0], 0.1 * scale)
            next_weight = min(max(signal_weight + length * step[1], 0.1 * signal_weight), MAX_SIGNAL_WEIGHT)
            next_value = evidence.log_likelihood(next_scale, next_weight)
            if next_value >= value or length < 1e-6:
                break
            length /= 2
        moved = max(abs(next_scale - scale) / scale, abs(next_weight - signal_weight) / signal_weight)
        if next_value >= value:
            scale, signal_weight, value = next_scale, next_weight, next_value
        if scale < _NEGLIGIBLE:
            # The other edge: announcements explain all changes, and without scale the weight settles by itself.
            return 0.0, signal_weight
        if moved < 1e-10 or next_value < value:
            break
    return scale, signal_weight
