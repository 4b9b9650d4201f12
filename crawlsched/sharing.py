"""Sharing: the rules by which many processes share one collection and one rate, without database, clock or Scrapy.

A member is one of these processes. `shard_of` returns the shard of a host, `assigned` returns the member that should
own each shard, and `divided` returns each shard's part of the rate. A member renews its grant (`Renewal`, `Answer`).
The `Grant` then has the rate that the member may use. `store.members` sends renewals to PostgreSQL.

A function in the database decides on renewals (see the first migration). Tests compare it with the same rule in Python,
and try that rule with wrong clocks, lost answers, pauses and deaths. A lock on the budget's row makes calls run one
after the other. So the sum of all valid grants never exceeds the rate. A member uses a higher rate only after the
database has written this rate. A member uses a lower rate at once, and the next renewal writes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import inf, isclose
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LARGEST_NUMBER",
    "LEASE",
    "LEVELS",
    "MARGIN",
    "RENEWAL_INTERVAL",
    "Answer",
    "Grant",
    "Renewal",
    "assigned",
    "divided",
    "is_number_of_shards",
    "read_curve",
    "shard_of",
    "written_curve",
]

FloatArray = NDArray[np.float64]
Name = TypeVar("Name", str, int)

LARGEST_NUMBER = 4096
#: Seconds for which a grant is valid by the database's clock.
LEASE = 6.0
#: A member stops sending this many seconds before its grant ends, since the rates of clocks may differ by 8 percent.
MARGIN = LEASE / 12
#: Seconds between two renewals.
RENEWAL_INTERVAL = LEASE / 3
#: Every demand curve is published at these rising crawl values (importance times seconds).
LEVELS: FloatArray = np.geomspace(1e-4, 1e8, 97)
# Each shard gets at least this part of an equal share, so that changes of its pages are found.
_LEAST_SHARE = 0.002
# Loads may differ by this share of a fair load, since moving a shard takes time. A demand curve is not used if its plan
# had less than this share of the present pages.
_LITTLE = 0.1


def is_number_of_shards(n: int) -> bool:
    """Whether a collection may have this number of shards: a power of two from 2 to 4096."""
    return 2 <= n <= LARGEST_NUMBER and n & (n - 1) == 0


def shard_of(host: str, n_shards: int) -> int:
    """Return the shard of a host, the same on every machine and in every version; `n_shards` is a power of two.

    With twice as many shards, a host stays in shard ``s`` or moves to ``s + n_shards``.

    >>> shard_of("example.com", 8), shard_of("example.com", 16)
    (6, 6)
    """
    digest = blake2b(host.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") & (n_shards - 1)


def assigned(weights: Mapping[int, float], owners: Mapping[int, str], members: Collection[str]) -> dict[int, str]:
    """Assign each shard to a member, and move as few shards as fair loads need; `weights` are the loads of shards.

    >>> assigned({0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}, {0: "a", 1: "a", 2: "a", 3: "a"}, ["a", "b"])
    {0: 'b', 1: 'b', 2: 'a', 3: 'a'}
    >>> assigned({0: 1.0, 1: 1.0, 2: 1.0}, {0: "a", 1: "b"}, ["a", "b"])
    {0: 'a', 1: 'b', 2: 'a'}
    """
    order = sorted(members)
    given = {shard: owners[shard] for shard in sorted(weights) if owners.get(shard) in order}
    load = dict.fromkeys(order, 0.0)
    for shard, member in given.items():
        load[member] += weights[shard]
    vacant = [shard for shard in weights if shard not in given]
    for shard in sorted(vacant, key=lambda shard: (-weights[shard], shard)):
        least = min(order, key=lambda member: (load[member], member))
        given[shard] = least
        load[least] += weights[shard]
    _move(weights, given, load, _LITTLE * sum(weights.values()) / len(order))
    return {shard: given[shard] for shard in sorted(given)}


def _move(weights: Mapping[int, float], given: dict[int, str], load: dict[str, float], tolerance: float) -> None:
    """Move shards from the most to the least loaded member, until no move evens out the loads."""
    # Each move lowers the sum of squares of the loads by more than rounding errors, so the loop ends.
    while True:
        most = max(load, key=lambda member: (load[member], member))
        least = min(load, key=lambda member: (load[member], member))
        gap = load[most] - load[least]
        if gap <= tolerance:
            return
        # Moving a shard as heavy as the gap would only exchange the two loads, again and again.
        fitting = [
            shard
            for shard, member in given.items()
            if member == most and 0.0 < weights[shard] < gap and not isclose(weights[shard], gap, rel_tol=1e-6)
        ]
        if not fitting:
            return
        # Choose the shard whose move makes the two loads most equal.
        shard = min(fitting, key=lambda shard: (abs(gap - 2.0 * weights[shard]), shard))
        given[shard] = least
        load[most] -= weights[shard]
        load[least] += weights[shard]


def written_curve(demand: FloatArray, n_planned: int, n_pages: int) -> str | None:
    """Pack a demand curve (`Plan.demand`) at `LEVELS`, scaled from `n_planned` pages to the present `n_pages`.

    Return None if the plan had too few of the present pages.

    >>> demand = np.array([[10.0, 1.0], [1.0, 4.0]])
    >>> float(np.interp(1.0, LEVELS, read_curve(written_curve(demand, n_planned=10, n_pages=30))).round(2))
    12.0
    >>> written_curve(demand, n_planned=10, n_pages=1000) is None
    True
    """
    if not len(demand) or n_planned < _LITTLE * n_pages:
        return None
    level, rate = np.log(demand[::-1, 0]), np.log(np.maximum(demand[::-1, 1], np.finfo("<f4").tiny))
    asked = np.log(LEVELS)
    curve = np.exp(np.interp(asked, level, rate)) * n_pages / n_planned
    # Above the curve's highest level the demand is 0. Below its lowest level the demand stays the same.
    curve[asked > level[-1]] = 0.0
    return curve.astype("<f4").tobytes().hex()


def read_curve(packed: object) -> FloatArray | None:
    """Unpack a curve that `written_curve` has packed; None if the value is no such curve."""
    try:
        curve = np.frombuffer(bytes.fromhex(packed), "<f4").astype(np.float64)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    is_sound = curve.size == LEVELS.size and np.isfinite(curve).all() and (curve >= 0).all()
    return curve if is_sound else None


def divided(rate: float, curves: Mapping[Name, FloatArray | None], n_pages: Mapping[Name, int]) -> dict[Name, float]:
    """Divide a rate among shards by their demand curves, or without curves by their numbers of pages.

    Examples
    --------
    >>> busy, calm = (np.maximum(1e3 - LEVELS, 0) * n for n in (3.0, 1.0))
    >>> shares = divided(8.0, {"a": busy, "b": calm}, {"a": 10, "b": 10})
    >>> round(shares["a"] / shares["b"], 1), round(sum(shares.values()), 6)
    (3.0, 8.0)
    >>> divided(8.0, {"a": None, "b": None}, {"a": 2, "b": 0})
    {'a': 6.0, 'b': 2.0}
    """
    weights = {name: n_pages.get(name, 0) + 1.0 for name in curves}
    total = sum(weights.values())
    shares = {name: rate * weights[name] / total for name in curves if curves[name] is None}
    known = [name for name in curves if name not in shares]
    left = rate - sum(shares.values())
    if known:
        least = _LEAST_SHARE * rate / len(curves)
        floors = min(least * len(known), left)
        for name, share in zip(known, _at_one_level(left - floors, known, curves, weights), strict=True):
            shares[name] = share + floors / len(known)
    return {name: float(shares[name]) for name in curves}


def _at_one_level(
    rate: float, known: list[Name], curves: Mapping[Name, FloatArray | None], weights: Mapping[Name, float]
) -> FloatArray:
    wanted = np.array([curves[name] for name in known], np.float64)
    total = wanted.sum(axis=0)
    pages = np.array([weights[name] for name in known])
    if not total.max() > 0.0:
        by_pages: FloatArray = rate * pages / pages.sum()
        return by_pages
    # The total demand falls as the level rises. Interpolation finds the level at which the total demand equals the
    # rate.
    level = np.interp(-rate, -total, np.arange(total.size))
    below = min(int(level), total.size - 2)
    share = level - below
    got: FloatArray = wanted[:, below] * (1 - share) + wanted[:, below + 1] * share
    if not got.sum() > 0.0:  # the most valuable pages alone need more than the rate
        got = wanted[:, int(np.flatnonzero(total)[-1])]
    shares: FloatArray = rate * got / got.sum()
    return shares


@dataclass(frozen=True)
class Renewal:
    """A member's request to the database."""

    member: str  # its token, made at its start
    number: int  # higher than the number of any renewal before
    using: float  # the highest rate at which the member may be sending now; 0 after its grant has ended
    wants: float  # the rate that the member would like to have
    claims: tuple[int, ...] = ()  # the shards that the member takes if they are vacant


@dataclass(frozen=True)
class Answer:
    """The database's answer to a renewal."""

    granted: float  # the rate that the member may use from now on
    shards: dict[int, int]  # the shards that the member owns, with their epochs
    paused_since: float | None = None  # by the database's clock


class Grant:
    """The rate at which a member may send.

    Only the member's own monotonic clock counts here, and it is read before the renewal is sent. So the grant ends
    here before it ends in the database, however long the answer takes. The rates of clocks may differ by 8 percent.

    Examples
    --------
    >>> grant = Grant()
    >>> grant.ask(now=100.0), grant.using(100.0)
    (1, 0.0)
    >>> grant.answered(1, 5.0)
    >>> grant.using(105.4), grant.using(105.5)
    (5.0, 0.0)
    """

    def __init__(self) -> None:
        self.rate = 0.0
        self.deadline = -inf
        self.number = 0
        self._asked_at = -inf

    def ask(self, now: float) -> int:
        """Return the number of a renewal that begins now."""
        self.number += 1
        self._asked_at = now
        return self.number

    def answered(self, number: int, granted: float) -> None:
        """Take over the answer to a renewal, unless a later renewal was answered before."""
        if number == self.number:
            # A lower rate is set before its deadline, and a higher rate after its deadline. So a thread that reads rate
            # and deadline without a lock never gets a rate that was not granted until this deadline.
            if granted < self.rate:
                self.rate = granted
            self.deadline = self._asked_at + LEASE - MARGIN
            self.rate = granted

    def using(self, now: float) -> float:
        """Return the rate that may be in use now; 0 after the deadline."""
        return self.rate if now < self.deadline else 0.0
