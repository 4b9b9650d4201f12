"""Renewal: what a member says when it renews its grant, and what the database answers.

What the database decides is a function in PostgreSQL (the first migration has it); the tests hold it against the same
rule in Python, and that one against clocks that differ, lost answers, pauses and deaths. Its call is serialised by a
lock on the budget's row, so that the sum of the grants which have not expired never exceeds the rate. A higher rate is
written into the row first, and used after the answer. A lower one is used first, and written by the next renewal.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Answer", "Renewal"]


@dataclass(frozen=True)
class Renewal:
    """What a member reports."""

    member: str  # its token, made at its start
    number: int  # higher than that of any renewal before
    using: float  # the highest rate at which it may be sending now; 0 after its own deadline
    wants: float  # the rate that it would like to have
    claims: tuple[int, ...] = ()  # the shards that it takes if they are vacant


@dataclass(frozen=True)
class Answer:
    """What the database answers."""

    granted: float  # the rate that the member may use from now on
    shards: dict[int, int]  # the shards that it owns, with their epochs
    paused_since: float | None = None  # by the database's clock
