"""Numerics: limits of floating-point numbers, and numbers of mathematics."""

import math
from sys import float_info

__all__ = ["CONVERGED", "GOLDEN", "LARGEST_LOG", "LONGEST", "ROUNDS", "SHORTEST", "TINY"]

#: Below this a sum may have lost digits, since its terms may lie below the smallest normal number.
TINY = float_info.min / float_info.epsilon
#: exp of this and of its negative have all their digits; a larger exponent counts as infinite.
LARGEST_LOG = -math.log(float_info.min)
#: Shorter and longer times count as these (seconds), so that sums and quotients of times are finite.
SHORTEST, LONGEST = 1e-9, 1e15
#: The golden section. No sequence is spread more evenly than its multiples modulo 1.
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
#: After a relative step of Newton's method as small as this, rounding hides the next one, which is about its square.
CONVERGED = float_info.epsilon**0.75
#: After this number of rounds, only rounding keeps a method from ending.
ROUNDS = 100
