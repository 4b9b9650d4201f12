"""Assignment: which member should own which shard, reckoned alike by every member."""

from __future__ import annotations

from collections.abc import Collection, Mapping

__all__ = ["assigned"]

# Loads that differ by less than this share of a fair one are left as they are: each move costs a loading.
_TOLERANCE = 0.1
# What moves weighs less than the gap by this factor: loads that only change places would do so for ever.
_LESS = 1.0 - 1e-6


def assigned(weights: Mapping[int, float], owners: Mapping[int, str], members: Collection[str]) -> dict[int, str]:
    """Give each shard a member, moving no more than fairness asks for; `weights` is what each costs its owner.

    >>> assigned({0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}, {0: "a", 1: "a", 2: "a", 3: "a"}, ["a", "b"])
    {0: 'b', 1: 'b', 2: 'a', 3: 'a'}
    >>> assigned({0: 1.0, 1: 1.0, 2: 1.0}, {0: "a", 1: "b"}, ["a", "b"])
    {0: 'a', 1: 'b', 2: 'a'}
    """
    if not members:
        return {}
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
    _move(weights, given, load, _TOLERANCE * sum(weights.values()) / len(order))
    return {shard: given[shard] for shard in sorted(given)}


def _move(weights: Mapping[int, float], given: dict[int, str], load: dict[str, float], tolerance: float) -> None:
    """Move shards from the member that has most to the one that has least, as long as that evens them out."""
    # Each move lessens the sum of squares of the loads by more than roundings change it, so it ends.
    while True:
        most = max(load, key=lambda member: (load[member], member))
        least = min(load, key=lambda member: (load[member], member))
        gap = load[most] - load[least]
        if gap <= tolerance:
            return
        fitting = [shard for shard, member in given.items() if member == most and 0.0 < weights[shard] < _LESS * gap]
        if not fitting:
            return
        # The one that leaves the two nearest to each other.
        shard = min(fitting, key=lambda shard: (abs(gap - 2.0 * weights[shard]), shard))
        given[shard] = least
        load[most] -= weights[shard]
        load[least] += weights[shard]
