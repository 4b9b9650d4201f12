"""What is on disk: the tables, their migrations, and one process's reading and writing of one collection.

Knows no Scrapy and decides nothing: `now` is an argument. Begin reading with `store`, then `models`.
"""

from crawlsched.store.batch import (
    Batch,
    ChangeRow,
    Host,
    KeptText,
    NewPage,
    ObservationRow,
    Outgoing,
    PageFacts,
    Source,
)
from crawlsched.store.commands import Command
from crawlsched.store.forgetting import FORGET_KINDS
from crawlsched.store.lease import Lease, LeaseRow
from crawlsched.store.models import SITE, TRACE_COLUMNS, Outcome
from crawlsched.store.plans import StoredPlan
from crawlsched.store.saving import Saved
from crawlsched.store.soundness import sound_pages
from crawlsched.store.store import Store
from crawlsched.store.tombstones import Tombstone, Tombstones, host_of
from crawlsched.store.write_behind import WriteBehind

__all__ = [
    "FORGET_KINDS",
    "SITE",
    "TRACE_COLUMNS",
    "Batch",
    "ChangeRow",
    "Command",
    "Host",
    "KeptText",
    "Lease",
    "LeaseRow",
    "NewPage",
    "ObservationRow",
    "Outcome",
    "Outgoing",
    "PageFacts",
    "Saved",
    "Source",
    "Store",
    "StoredPlan",
    "Tombstone",
    "Tombstones",
    "WriteBehind",
    "host_of",
    "sound_pages",
]
