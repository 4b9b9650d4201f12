"""A rule of a noise mask: how much of something is ignored, and whether it still flickers."""

from math import lgamma, log

__all__ = ["DIGITS", "DROPPED", "LIVING", "UNORDERED", "NoiseRule"]

LIVING, DIGITS, UNORDERED, DROPPED = range(4)
"""What is ignored: nothing, the digits, the order, everything."""

_MIN_EQUAL, _MAX_EQUAL = 5, 50
_LOG_DOUBT = log(0.01)


class NoiseRule:
    """How much of a block, a path or a name is ignored, and how it flickered.

    Parameters
    ----------
    level : int
        `DIGITS`, `UNORDERED` or `DROPPED`.
    n_compared : int
        Probes up to the last one in which it differed.
    n_differed : int
        Probes in which it differed.
    n_equal : int
        Probes since the last one in which it differed.

    Notes
    -----
    It returns to the living after so many equal probes in a row that, by how it flickered before, they had a
    probability below 1 %: n with E (1 - p)^n < 0.01, where p, the share of probes in which it differs, has the
    distribution Beta(1 + n_differed, 1 + n_compared - n_differed); 5 at least, and 50 at most. What has two states
    differs in every second probe: taken at the rate seen in one or two of them it would often return by chance.

    Examples
    --------
    >>> rule = NoiseRule(DROPPED)
    >>> rule.count(True)
    False
    >>> [rule.count(False) for probe in range(13)].index(True)
    12
    >>> often = NoiseRule(DROPPED, n_compared=20, n_differed=20)
    >>> [often.count(False) for probe in range(5)]
    [False, False, False, False, True]
    """

    __slots__ = ("level", "n_compared", "n_differed", "n_equal")

    def __init__(self, level: int, n_compared: int = 0, n_differed: int = 0, n_equal: int = 0) -> None:
        self.level = level
        self.n_compared = n_compared
        self.n_differed = n_differed
        self.n_equal = n_equal

    def count(self, differed: bool) -> bool:
        """Count a probe; True if the rule is to be forgotten: what it ignores has returned to the living."""
        if differed:
            self.n_compared += self.n_equal + 1
            self.n_differed += 1
            self.n_equal = 0
            return False
        self.n_equal += 1
        if not _MIN_EQUAL <= self.n_equal < _MAX_EQUAL:
            return self.n_equal >= _MAX_EQUAL
        whole, calm = self.n_compared + 2, self.n_compared - self.n_differed + 1
        n = self.n_equal
        return lgamma(calm + n) - lgamma(calm) + lgamma(whole) - lgamma(whole + n) < _LOG_DOUBT

    def to_list(self) -> list[int]:
        """Return the arguments that make this rule."""
        return [self.level, self.n_compared, self.n_differed, self.n_equal]
