"""Sharing: one collection, one rate, many processes, as rules without a database, a clock or Scrapy.

`shards` says to which shard a host belongs; `demand_curves` divides the rate; `assignment` says which member should
own which shard; `renewal` is what a member says when it renews its grant, and the answer; `grant` is what the member
makes of that. `store.members` brings both to PostgreSQL.
"""

from crawlsched.sharing.assignment import assigned
from crawlsched.sharing.demand_curves import LEVELS, divided, read_curve, written_curve
from crawlsched.sharing.grant import LEASE, MARGIN, RENEWAL_INTERVAL, Grant
from crawlsched.sharing.renewal import Answer, Renewal
from crawlsched.sharing.shards import LARGEST_NUMBER, is_number_of_shards, shard_of

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
