"""Numerics: numbers that depend on how floating-point numbers are kept, or on nothing at all."""

import math
from sys import float_info

__all__ = ["CONVERGED", "GOLDEN", "LARGEST_LOG", "LONGEST", "ROUNDS", "SHORTEST", "TINY"]

#: Below this a sum may have lost digits, since those of its terms end at the smallest number.
TINY = float_info.min / float_info.epsilon
#: exp of this, and of its negative, are numbers with all their digits: what is larger is as good as infinite.
LARGEST_LOG = -math.log(float_info.min)
#: Shorter and longer times count as these seconds, so that sums and quotients of them are numbers.
SHORTEST, LONGEST = 1e-9, 1e15
#: The golden section. No sequence is spread more evenly than its multiples modulo 1.
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
#: After a relative step of Newton's method as small as this the next one, about its square, is lost in rounding.
CONVERGED = float_info.epsilon**0.75
#: A method that has not ended after this number of rounds is kept from its end by rounding.
ROUNDS = 100
