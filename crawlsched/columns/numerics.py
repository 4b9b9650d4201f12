"""Numerics: numbers that depend on how floating-point numbers are kept, or on nothing at all."""

import numpy as np

__all__ = ["CONVERGED", "EPSILON", "GOLDEN", "LARGEST_LOG", "LONGEST", "ROUNDS", "SHORTEST", "SMALLEST", "TINY"]

#: The distance from 1 to the next number.
EPSILON = float(np.finfo(np.float64).eps)
#: The smallest number with all its digits. What must not be 0, because it is divided by or its logarithm taken, is
#: raised to this.
SMALLEST = float(np.finfo(np.float64).tiny)
#: Below this a sum may have lost digits, since those of its smaller terms end at `SMALLEST`.
TINY = SMALLEST / EPSILON
#: exp of this, and of its negative, are numbers with all their digits: what is larger is as good as infinite.
LARGEST_LOG = float(-np.log(SMALLEST))
#: Shorter and longer times count as these seconds, so that sums and quotients of them are numbers.
SHORTEST, LONGEST = 1e-9, 1e15
#: The golden section. No sequence is spread more evenly than its multiples modulo 1.
GOLDEN = float(np.sqrt(5.0) - 1.0) / 2.0
#: After a relative step of Newton's method as small as this the next one, about its square, is lost in rounding.
CONVERGED = EPSILON**0.75
#: A method that has not ended after this number of rounds is kept from its end by rounding.
ROUNDS = 100
