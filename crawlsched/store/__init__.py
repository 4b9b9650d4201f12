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
