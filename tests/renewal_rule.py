"""The rule of renewals, as a function of rows: what `crawlsched_renew` does in PostgreSQL."""

from dataclasses import dataclass, field
from math import inf

from crawlsched.sharing import Answer, Renewal


@dataclass
class MemberRow:
    """A process."""

    granted: float  # requests per second that it may send until it expires
    expires_at: float  # by the database's clock
    number: int  # of its last renewal; what comes later with a lower one was held up on the way, and is void


@dataclass
class ShardRow:
    """Who owns a shard; each new owner has a higher epoch."""

    member: str | None = None
    epoch: int = 0


@dataclass
class Rows:
    """A shared collection, as the database knows it."""

    rate: float  # requests per second of all members together
    shards: dict[int, ShardRow]
    members: dict[str, MemberRow] = field(default_factory=dict)
    renewed_at: float = -inf  # when a member was last answered
    # Until then nobody gets a higher rate and nobody claims, for the server has lost its last moments.
    hold_until: float = -inf

    def granted(self, now: float, besides: str = "") -> float:
        """Add up the grants that have not expired."""
        return sum(row.granted for name, row in self.members.items() if name != besides and row.expires_at > now)

    def is_vacant(self, shard: int, now: float) -> bool:
        """Say whether a shard may be claimed."""
        owner = self.members.get(self.shards[shard].member or "")
        return owner is None or owner.expires_at <= now


def renew(rows: Rows, said: Renewal, now: float, lease: float, started_at: float = -inf) -> Answer | None:
    """Answer a renewal, and change the rows; None if a later one of the same member has overtaken it.

    `lease` is in seconds; all times are the database's, `now` read under the lock. If the server started after the last
    renewal, its answer may be lost.
    """
    mine = rows.members.get(said.member)
    if mine is not None and said.number <= mine.number:
        return None
    if started_at > rows.renewed_at > -inf:
        rows.hold_until = now + lease
    rows.renewed_at = now
    may_rise = now >= rows.hold_until
    # A grant that has expired may be in use by others already, and is not used by the member itself any more. While
    # the server has lost its last moments, the member knows better than the row.
    is_known = mine is not None and mine.expires_at > now
    using = said.using if is_known or not may_rise else 0.0
    granted = max(0.0, min(said.wants, rows.rate - rows.granted(now, besides=said.member)))
    if not may_rise:
        granted = min(granted, using)
    rows.members[said.member] = MemberRow(max(using, granted), now + lease, said.number)
    if may_rise:
        for shard in said.claims:
            if rows.is_vacant(shard, now):
                rows.shards[shard] = ShardRow(said.member, rows.shards[shard].epoch + 1)
    owned = {shard: row.epoch for shard, row in sorted(rows.shards.items()) if row.member == said.member}
    return Answer(granted, owned)
