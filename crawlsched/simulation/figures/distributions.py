"""Distributions that a figure's pages are drawn from, which say themselves what they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawlsched.columns.array_types import FloatArray

__all__ = ["Beta", "LogNormal", "Uniform"]


@dataclass(frozen=True)
class Uniform:
    """The uniform distribution between two numbers.

    Examples
    --------
    >>> print(Uniform(0.1, 0.6))
    Unif(0.1, 0.6)
    """

    low: float
    high: float

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return `n` numbers."""
        return rng.uniform(self.low, self.high, n)

    def __str__(self) -> str:
        return f"Unif({self.low:g}, {self.high:g})"


@dataclass(frozen=True)
class Beta:
    """The beta distribution.

    Examples
    --------
    >>> print(Beta(0.25, 0.25))
    Beta(0.25, 0.25)
    """

    a: float
    b: float

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return `n` numbers from 0 to 1."""
        return rng.beta(self.a, self.b, n)

    def __str__(self) -> str:
        return f"Beta({self.a:g}, {self.b:g})"


@dataclass(frozen=True)
class LogNormal:
    """The lognormal distribution, by its median and the standard deviation of the logarithm.

    Examples
    --------
    >>> print(LogNormal(0.05, 1.5))
    lognormal with median 0.05 and sigma 1.5
    """

    median: float
    sigma: float

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return `n` numbers above 0."""
        return rng.lognormal(np.log(self.median), self.sigma, n)

    def __str__(self) -> str:
        return f"lognormal with median {self.median:g} and sigma {self.sigma:g}"
