"""Sharing: one collection, one rate, many processes, as rules without a database, a clock or Scrapy.

`shards` says to which shard a host belongs; `demand_curves` divides the rate; `assignment` says which member should
own which shard; `renewal` is what the database decides when a member renews its grant; `grant` is what the member
makes of the answer. `store.members` carries the same rules out on PostgreSQL.
"""

from crawlsched.sharing.assignment import assigned
from crawlsched.sharing.demand_curves import LEVELS, divided, grown_curve, read_curve, written_curve
from crawlsched.sharing.grant import LEASE, MARGIN, RENEWAL_INTERVAL, Grant
from crawlsched.sharing.renewal import Answer, MemberRow, Renewal, Rows, ShardRow, renew
from crawlsched.sharing.shards import LARGEST_NUMBER, is_number_of_shards, shard_of

__all__ = [
    "LARGEST_NUMBER",
    "LEASE",
    "LEVELS",
    "MARGIN",
    "RENEWAL_INTERVAL",
    "Answer",
    "Grant",
    "MemberRow",
    "Renewal",
    "Rows",
    "ShardRow",
    "assigned",
    "divided",
    "grown_curve",
    "is_number_of_shards",
    "read_curve",
    "renew",
    "shard_of",
    "written_curve",
]
