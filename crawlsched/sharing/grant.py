"""Grant: the rate that a member may use, and until when, by its own monotonic clock."""

from __future__ import annotations

from math import inf

__all__ = ["LEASE", "MARGIN", "RENEWAL_INTERVAL", "Grant"]

#: Seconds for which a grant is valid by the database's clock, and by which its holder stops sooner by its own.
LEASE, MARGIN = 6.0, 0.5
#: Seconds between two renewals.
RENEWAL_INTERVAL = 2.0


class Grant:
    """What a member may send.

    No clock but the member's own monotonic one counts here, and it is read before the database is asked: however long
    the answer takes, the grant ends here before it ends there. Clocks may differ in their rates by 8 percent.

    Examples
    --------
    >>> grant = Grant()
    >>> grant.ask(now=100.0), grant.using(100.0)
    (1, 0.0)
    >>> grant.answered(1, 5.0)
    >>> grant.using(105.4), grant.using(105.5)
    (5.0, 0.0)
    """

    def __init__(self, lease: float = LEASE, margin: float = MARGIN) -> None:
        self.rate = 0.0
        self.deadline = -inf
        self.number = 0
        self._valid_for = lease - margin
        self._asked_at = -inf

    def ask(self, now: float) -> int:
        """Give the number of a renewal that begins now."""
        self.number += 1
        self._asked_at = now
        return self.number

    def answered(self, number: int, granted: float) -> None:
        """Take over the answer to a renewal, unless a later one was answered before."""
        if number == self.number:
            # The deadline last: whoever reads both without a lock never sees the higher rate under the new deadline
            # before it is so, nor an old rate after a lower one was promised.
            if granted < self.rate:
                self.rate = granted
            self.deadline = self._asked_at + self._valid_for
            self.rate = granted

    def using(self, now: float) -> float:
        """Return the rate that may be in use now; 0 after the deadline."""
        return self.rate if now < self.deadline else 0.0
