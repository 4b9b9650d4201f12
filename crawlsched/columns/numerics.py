"""Numerics: limits of floating-point numbers, and mathematical constants."""

import math
from sys import float_info

__all__ = ["CONVERGED", "GOLDEN", "LARGEST_LOG", "LONGEST", "ROUNDS", "SHORTEST", "TINY"]

#: A sum below this may have lost digits, since its terms may lie below the smallest normal number.
TINY = float_info.min / float_info.epsilon
#: Up to this number x, neither exp(x) nor exp(-x) loses digits. A larger exponent counts as infinite.
LARGEST_LOG = -math.log(float_info.min)
#: Times in seconds are limited to this range, so that sums and quotients of times are finite.
SHORTEST, LONGEST = 1e-9, 1e15
#: The golden section. Its multiples modulo 1 are spread as evenly as possible.
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
#: Newton's method ends after a step whose relative size is below this. The relative size of the next step would be
#: about the square of this, which is below the rounding error.
CONVERGED = float_info.epsilon**0.75
#: If a method has not ended after this number of rounds, only rounding errors prevent its end.
ROUNDS = 100
