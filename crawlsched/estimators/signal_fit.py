"""The maximum-likelihood fit of the weight of announcements, and the likelihood."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from sys import float_info
from typing import NamedTuple

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.columns.numerics import CONVERGED, LARGEST_LOG, ROUNDS

__all__ = ["DROP_95", "NORMAL_95", "SignalEvidence", "SignalFit", "fit_evidence", "regularized"]

#: The greatest weight of an announcement. exp(-36) is the rounding error of 1, so a greater weight would be the same as
#: certainty.
MAX_SIGNAL_WEIGHT = 36.0

#: The 97.5 % quantile of the normal distribution, and half the 95 % quantile of chi-squared with one degree of freedom.
NORMAL_95 = NormalDist().inv_cdf(0.975)
DROP_95 = NORMAL_95**2 / 2

# Odds of change are at least these, so that their inverses can be squared and added up.
_LEAST_ODDS = float(np.sqrt(float_info.min)) / float_info.epsilon


class SignalEvidence(NamedTuple):
    """Visits, summarized for the likelihood."""

    x: FloatArray  # elapsed time of visits that found a change; shape (m,)
    n: FloatArray  # announcements in that time; shape (m,)
    weight: FloatArray  # number of such visits in each row; shape (m,)
    unchanged_x: float  # elapsed time, summed over visits that found no change
    unchanged_n: float

    def with_prior(self, true_signals: float, false_signals: float) -> "SignalEvidence":
        """Return these visits with further announcements, which are certainly true or certainly false."""
        if true_signals == 0:
            return self._replace(unchanged_n=self.unchanged_n + false_signals)
        added = (np.append(self.x, 0.0), np.append(self.n, 1.0), np.append(self.weight, true_signals))
        return SignalEvidence(*added, self.unchanged_x, self.unchanged_n + false_signals)

    def log_likelihood(self, scale: float, signal_weight: float) -> float:
        """Return the logarithm of the likelihood."""
        odds = np.maximum(scale * self.x + signal_weight * self.n, _LEAST_ODDS)
        found = float(self.weight @ np.log(-np.expm1(-odds)))
        return found - scale * self.unchanged_x - signal_weight * self.unchanged_n

    def slopes(self, scale: float, signal_weight: float) -> tuple[float, float, float, float, float]:
        """Return first derivatives by scale and weight, and negated second derivatives (scale, mixed, weight)."""
        odds = np.clip(scale * self.x + signal_weight * self.n, _LEAST_ODDS, LARGEST_LOG)
        first = 1.0 / np.expm1(odds)
        second = self.weight * first * (1.0 + first)
        first *= self.weight
        by_scale, by_weight = float(first @ self.x) - self.unchanged_x, float(first @ self.n) - self.unchanged_n
        return (
            by_scale,
            by_weight,
            float(second @ self.x**2),
            float((second * self.n) @ self.x),
            float(second @ self.n**2),
        )


def regularized(evidence: SignalEvidence) -> SignalEvidence:
    """Return evidence whose likelihood has its maximum at finite parameters.

    The scale would be infinite if every visit found a change. The signal weight would be infinite if every visit after
    an announcement found a change. In these cases, half of an average visit is added as unchanged. Cho and
    Garcia-Molina (2003, section 4.2) do so for the same reason.
    """
    x, n, weight = evidence.x, evidence.n, evidence.weight
    if evidence.unchanged_x == 0 and (x > 0).any():
        evidence = evidence._replace(unchanged_x=0.5 * float(weight @ x) / float(weight[x > 0].sum()))
    if evidence.unchanged_n == 0 and (n > 0).any():
        evidence = evidence._replace(unchanged_n=0.5 * float(weight @ n) / float(weight[n > 0].sum()))
    return evidence


def _maximize(evidence: SignalEvidence) -> tuple[float, float]:
    """Return the scale and the signal weight of greatest likelihood.

    The likelihood is concave. Its maximum lies at weight 0, at scale 0, or where both are positive. If several of these
    points are equally likely, as with one announcement before every visit, weight 0 is returned. Announcements that
    explain nothing get no weight.
    """
    unit = float(evidence.weight @ evidence.x) + evidence.unchanged_x or 1.0
    evidence = evidence._replace(x=evidence.x / unit, unchanged_x=evidence.unchanged_x / unit)
    scale = _maximize_scale(evidence, 0.0)
    signals = float(evidence.weight @ evidence.n) + evidence.unchanged_n
    if signals == 0 or evidence.slopes(scale, 0.0)[1] <= 1e-9 * signals:
        return scale / unit, 0.0
    # This is the same problem, with time and announcements exchanged.
    other = SignalEvidence(evidence.n, evidence.x, evidence.weight, evidence.unchanged_n, evidence.unchanged_x)
    signal_weight = min(_maximize_scale(other, 0.0), MAX_SIGNAL_WEIGHT)
    if evidence.slopes(0.0, signal_weight)[0] <= 0:
        return 0.0, signal_weight
    # Scale and weight are positive. The weight is below the weight found with scale 0.
    scale, signal_weight = _climb(evidence, _maximize_scale(evidence, signal_weight / 2), signal_weight / 2)
    return scale / unit, signal_weight


def _maximize_scale(evidence: SignalEvidence, signal_weight: float, start: float = 0.0) -> float:
    """Return the scale of greatest likelihood for a signal weight, found from `start`.

    There must be an unchanged visit: without one the scale is infinite.
    """
    changed = evidence.x > 0
    if not changed.any():
        return 0.0
    x, n, weight = evidence.x[changed], evidence.n[changed], evidence.weight[changed]
    given = signal_weight * n
    if evidence.unchanged_x == 0:
        return float("inf")
    # Since 1/(e^y - 1) >= 1/y - 1/2, this scale lies below the solution if nothing is announced. With announcements it
    # is a guess.
    scale = start or float(weight.sum()) / (evidence.unchanged_x + 0.5 * float(weight @ x))
    if (
        signal_weight > 0
        and float(weight @ (x / np.expm1(np.clip(given, _LEAST_ODDS, LARGEST_LOG)))) <= evidence.unchanged_x
    ):
        return 0.0  # the likelihood falls from 0 on: announcements explain all changes
    # The logarithm of the slope of changed visits is convex and falls. So Newton's method on it never overshoots from
    # below the solution, and only once from above.
    target = np.log(evidence.unchanged_x)
    for _ in range(ROUNDS):
        first = 1.0 / np.expm1(np.clip(scale * x + given, _LEAST_ODDS, LARGEST_LOG))
        slope = float(weight @ (x * first))
        step = (np.log(slope) - target) * slope / float(weight @ (x * x * first * (1.0 + first)))
        scale += float(max(step, -0.5 * scale))
        if abs(step) <= CONVERGED * scale:
            break
    return scale


def _weight_interval(evidence: SignalEvidence, signal_weight: float, drop: float) -> tuple[float, float]:
    """Return the signal weights at which the profile likelihood lies `drop` nats below its greatest value.

    There must be an unchanged visit. `drop` is half the quantile of chi-squared with one degree of freedom: 1.92 for 95
    %.
    """
    near = _maximize_scale(evidence, signal_weight)
    best = evidence.log_likelihood(near, signal_weight)

    def excess(weight: float) -> float:
        # The square root of the loss is nearly linear, so its crossing is found in a few steps.
        lost = best - evidence.log_likelihood(_maximize_scale(evidence, weight, near), weight)
        return float(np.sqrt(max(lost, 0.0)) - np.sqrt(drop))

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
    """Return the zero of a function that is negative inside and positive outside (false position, Illinois rule)."""
    below, above = function(inside), function(outside)
    middle, side = inside, 0
    for _ in range(ROUNDS):
        middle = (inside * above - outside * below) / (above - below)
        value = function(middle)
        if abs(value) < 1e-4 or abs(outside - inside) < 1e-6 * outside:
            break
        # If two steps in a row do not replace an end, the value at this end is halved, so that both ends move.
        if value < 0:
            inside, below, above, side = middle, value, above / 2 if side < 0 else above, -1
        else:
            outside, above, below, side = middle, value, below / 2 if side > 0 else below, 1
    return middle


def _climb(evidence: SignalEvidence, scale: float, signal_weight: float) -> tuple[float, float]:
    """Maximize over scale and weight by Newton's method, from a point where both are positive."""
    value = evidence.log_likelihood(scale, signal_weight)
    for _ in range(ROUNDS):
        step = _step(evidence.slopes(scale, signal_weight), scale, signal_weight)
        length = 1.0
        for _ in range(30):
            next_scale = scale + length * step[0]
            next_weight = min(signal_weight + length * step[1], MAX_SIGNAL_WEIGHT)
            next_value = evidence.log_likelihood(next_scale, next_weight)
            if next_value >= value:
                break
            length /= 2
        moved = max(abs(next_scale - scale) / scale, abs(next_weight - signal_weight) / signal_weight)
        if next_value < value:
            break  # only rounding errors remain
        scale, signal_weight, value = next_scale, next_weight, next_value
        if moved < 1e-10:
            break
    return scale, signal_weight


def _step(slopes: tuple[float, float, float, float, float], scale: float, signal_weight: float) -> tuple[float, float]:
    """Return Newton's step, limited so that no parameter falls below a tenth of its value.

    If the step would go further, one parameter stops at this limit, and the other takes its best value there.
    """
    by_scale, by_weight, a, b, c = slopes
    # Add a little curvature where there is none, such as along the ridge where announcements are proportional to time.
    a, c = a * (1 + 1e-9) + 1e-12, c * (1 + 1e-9) + 1e-12
    determinant = a * c - b * b
    step_scale = (c * by_scale - b * by_weight) / determinant
    step_weight = (a * by_weight - b * by_scale) / determinant
    if step_scale < -0.9 * scale:
        step_scale = -0.9 * scale
        step_weight = max((by_weight - b * step_scale) / c, -0.9 * signal_weight)
    elif step_weight < -0.9 * signal_weight:
        step_weight = -0.9 * signal_weight
        step_scale = max((by_scale - b * step_weight) / a, -0.9 * scale)
    return step_scale, step_weight


@dataclass(frozen=True, slots=True)
class SignalFit:
    """The rates and the weight of one source's announcements, fitted from visits."""

    unsignalled_change_rate: float  # changes per second that are not announced (α)
    signal_weight: float  # nats by which an announcement lowers the log-probability of freshness (κ), at most 36
    signal_rate: float  # announcements per second (γ)
    # 95 % interval of the signal weight, by profile likelihood; (0, 36) where nothing is known.
    interval: tuple[float, float]

    @property
    def precision(self) -> float:
        """Probability that an announcement is true: 1 - exp(-κ)."""
        return float(-np.expm1(-self.signal_weight))

    @property
    def precision_interval(self) -> tuple[float, float]:
        """95 % interval of the precision."""
        low, high = self.interval
        return float(-np.expm1(-low)), float(-np.expm1(-high))

    @property
    def change_rate(self) -> float:
        """Changes per second, announced or not: Δ = α + γ (1 - exp(-κ))."""
        return self.unsignalled_change_rate + self.signal_rate * self.precision

    @property
    def recall(self) -> float:
        """Probability that a change is announced: γ (1 - exp(-κ)) / Δ; 0 where nothing ever changed."""
        rate = self.change_rate
        return self.signal_rate * self.precision / rate if rate > 0 else 0.0

    @property
    def false_signal_rate(self) -> float:
        """Announcements per second without a change: ν = γ exp(-κ)."""
        return self.signal_rate * float(np.exp(-self.signal_weight))

    def false_signal_rate_interval(self, n_signals: float) -> tuple[float, float]:
        """Return the 95 % interval of the false signal rate, fitted from `n_signals` announcements, per second.

        On the logarithmic scale, the error of ν = γ exp(-κ) combines the errors of κ and γ. γ comes from a count, so
        its relative variance is 1 / count, whatever the visits found.

        >>> fit = SignalFit(0.01, 0.7, 0.1, (0.5, 1.0))
        >>> [round(rate, 3) for rate in (fit.false_signal_rate, *fit.false_signal_rate_interval(400.0))]
        [0.05, 0.036, 0.062]
        """
        if n_signals <= 0:
            return 0.0, np.inf
        (low, high), error = self.interval, NORMAL_95 / np.sqrt(n_signals)
        below, above = np.hypot(high - self.signal_weight, error), np.hypot(self.signal_weight - low, error)
        return float(self.false_signal_rate * np.exp(-below)), float(self.false_signal_rate * np.exp(above))


def fit_evidence(
    evidence: SignalEvidence, time: float, signals: float, prior: tuple[float, float] | None, interval: bool
) -> SignalFit:
    """Return the fit of greatest likelihood to visits that cover `time` seconds, with `signals` announcements.

    `prior` has the numbers of announcements assumed to have been seen beforehand, (true, false).
    """
    if prior is not None:
        true_signals, false_signals = (float(count) for count in prior)
        if not (0 <= true_signals < np.inf and 0 <= false_signals < np.inf):
            raise ValueError(f"prior must be two finite numbers (true, false) that are not negative, got {prior!r}.")
        evidence = evidence.with_prior(true_signals, false_signals)
    bounded = regularized(evidence)
    rate, weight = _maximize(bounded)
    limits = (0.0, MAX_SIGNAL_WEIGHT)
    if interval and (signals > 0 or prior is not None):
        limits = _weight_interval(bounded, weight, DROP_95)
        if bounded.unchanged_n != evidence.unchanged_n:
            # Half a visit was added to make the estimate finite, so nothing bounds the weight from above.
            limits = (limits[0], MAX_SIGNAL_WEIGHT)
    return SignalFit(rate, weight, signals / time, limits) if time else SignalFit(0.0, weight, 0.0, limits)
