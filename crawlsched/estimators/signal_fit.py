"""What announcements of one source are worth, once fitted."""

from dataclasses import dataclass

import numpy as np

from crawlsched.estimators.signal_likelihood import MAX_SIGNAL_WEIGHT, Evidence, maximize, regularized, weight_interval

__all__ = ["SignalFit", "fit_evidence"]

# Half the 95 % quantile of the chi-squared distribution with one degree of freedom.
_DROP_95 = 1.9207294103470494
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class SignalFit:
    """What announcements of one source are worth."""

    unsignalled_change_rate: float  # changes per second that are not announced (α)
    signal_weight: float  # nats that one announcement takes off the log-probability of freshness (κ), at most 36
    signal_rate: float  # announcements per second (γ)
    scale: float  # factor on the change rates that were passed; without any, the unsignalled change rate itself
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

        On the logarithmic scale ν = γ exp(-κ) has the errors of κ, and of γ, a count of the relative variance
        1 / count that does not depend on what the visits found.

        >>> fit = SignalFit(0.01, 0.7, 0.1, 1.0, (0.5, 1.0))
        >>> [round(rate, 3) for rate in (fit.false_signal_rate, *fit.false_signal_rate_interval(400.0))]
        [0.05, 0.036, 0.062]
        """
        if n_signals <= 0:
            return 0.0, np.inf
        (low, high), error = self.interval, _NORMAL_95 / np.sqrt(n_signals)
        below, above = np.hypot(high - self.signal_weight, error), np.hypot(self.signal_weight - low, error)
        return float(self.false_signal_rate * np.exp(-below)), float(self.false_signal_rate * np.exp(above))


def fit_evidence(
    evidence: Evidence, time: float, signals: float, x: float, prior: tuple[float, float] | None, interval: bool
) -> SignalFit:
    """Return the fit of greatest likelihood to visits of `time` seconds with `signals` announcements.

    `x` is the number of changes expected in them, or seconds again where no rates are known; `prior` the announcements
    assumed to have been seen already, (true, false).
    """
    if prior is not None:
        true_signals, false_signals = (float(count) for count in prior)
        if not (0 <= true_signals < np.inf and 0 <= false_signals < np.inf):
            raise ValueError(f"prior must be two finite numbers (true, false) that are not negative, got {prior!r}.")
        evidence = evidence.with_prior(true_signals, false_signals)
    bounded = regularized(evidence)
    scale, weight = maximize(bounded)
    limits = (0.0, MAX_SIGNAL_WEIGHT)
    if interval and (signals > 0 or prior is not None):
        limits = weight_interval(bounded, weight, _DROP_95)
        if bounded.unchanged_n != evidence.unchanged_n:
            # Half a visit was added for the sake of a finite estimate: nothing bounds the weight from above.
            limits = (limits[0], MAX_SIGNAL_WEIGHT)
    rate = float(scale * x / time) if time else 0.0
    return SignalFit(rate, weight, signals / time if time else 0.0, scale, limits)
