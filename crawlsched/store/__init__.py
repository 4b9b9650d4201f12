"""The database: its tables, their migrations, and how a process reads and writes a collection.

This package does not know Scrapy and decides nothing: `now` is an argument. Begin reading with `store`, then `models`.
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
from crawlsched.store.forgetting import host_of
from crawlsched.store.lease import Lease
from crawlsched.store.models import Outcome
from crawlsched.store.store import Store
from crawlsched.store.write_behind import WriteBehind

__all__ = [
    "Batch",
    "ChangeRow",
    "Host",
    "KeptText",
    "Lease",
    "NewPage",
    "ObservationRow",
    "Outcome",
    "Outgoing",
    "PageFacts",
    "Source",
    "Store",
    "WriteBehind",
    "host_of",
]
