"""The tables, as SQLAlchemy Core tables.

Every primary key and unique constraint contains ``shard`` and ``collection`` (a small number from the table
``collections``). So several spiders, or several processes, share one database without seeing each other's rows. Times
are POSIX seconds (UTC). Structured values are JSON text; nothing is pickled.
The same tables serve SQLite and PostgreSQL.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha1
from typing import Any

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, MetaData, SmallInteger, Table, Text, text
from sqlalchemy.schema import CheckConstraint, SchemaItem, UniqueConstraint

__all__ = [
    "FIGURES",
    "FINGERPRINT_SIZE",
    "KINDS",
    "LOADED_COLUMNS",
    "READABLE_COLUMNS",
    "SITE",
    "STATE_COLUMNS",
    "TRACE_COLUMNS",
    "Outcome",
    "metadata",
]


class Outcome(StrEnum):
    """How a visit ended; each visit ends in exactly one of these."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    NOT_MODIFIED = "not_modified"
    FLAPPING = "flapping"
    PROBED = "probed"
    WRONG = "wrong"
    GONE = "gone"
    MOVED = "moved"
    ERROR = "error"
    REFUSED = "refused"
    DROPPED = "dropped"


#: Bytes of a request fingerprint (SHA-1, as Scrapy makes it).
FINGERPRINT_SIZE = sha1().digest_size

#: The kinds of rows of the change feed, by the number in ``changes.kind``.
KINDS = ("changed", "new", "gone", "back", "moved", "failing", "recovered")

#: Readable columns for people and their SQL: what a page's compact rows mean. They are written with `STATE_COLUMNS`,
#: and never read back.
READABLE_COLUMNS = (
    "change_rate",
    "change_rate_low",
    "change_rate_high",
    "expected_freshness",
    "precision",
    "recall",
)

#: Digests and sketches of a page's earlier contents; a table of their own keeps them out of each visit's write.
TRACE_COLUMNS = ("history", "text_sketch", "block_sketch")

#: The figures of a row of `samples`. Counts are of the `seconds` before its time; other figures are of that moment.
FIGURES = (
    *("seconds", "expected_freshness", "freshness_error", "wanted"),
    *("used", "idle", "no_free_host", "missed", "visits", "errors", "changes", "delivered"),
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _table(name: str, key: dict[str, Any], *parts: SchemaItem, **options: Any) -> Table:
    """Make a table; `key` gives the types of the key columns that follow shard and collection."""
    types = {"shard": Integer, "collection": Integer, **key}
    keys = (Column(name, kind, primary_key=True, autoincrement=False) for name, kind in types.items())
    return Table(name, metadata, *keys, *parts, **options)


# A named set of pages that belong together, by default those of one spider.
collections = _table(
    "collections",
    {},
    Column("name", Text, nullable=False),
    # The largest page number and the largest change number ever used, which deleting does not lower; and the largest
    # number of a change that was deleted for its age.
    Column("pages_given", BigInteger),
    Column("changes_given", BigInteger),
    Column("changes_pruned", BigInteger),
    UniqueConstraint("shard", "name"),
)


def _state(name: str, kind: Any, **options: Any) -> Column[Any]:
    """Make one of the columns of `crawlsched.pages.Pages`, or of the planner's columns beside them."""
    return Column(name, kind, info={"is_state": True}, **options)


# The data of a page, without long or seldom written parts: read when a crawl begins, written at each visit.
pages = _table(
    "pages",
    {"page": BigInteger},
    # The owner of the shard gives this number once. The page's row in the owner's arrays has another number.
    _state("state", SmallInteger, nullable=False),
    _state("importance", Float(53), nullable=False),
    _state("crawled_at", Float(53)),  # NULL: never
    Column("first_seen", Float(53), nullable=False),
    Column("changed_at", Float(53)),
    _state("not_before", Float(53), nullable=False),
    _state("n_crawls", BigInteger, nullable=False),
    _state("n_changes", BigInteger, nullable=False),
    _state("n_errors", SmallInteger, nullable=False),
    _state("n_signals", Integer, nullable=False),  # since the last crawl
    _state("n_signals_total", BigInteger, nullable=False),
    _state("signalled_since", Float(53)),  # NULL: no source ever named the page
    _state("source", Integer, nullable=False),  # -1: none
    Column("grid", Text),  # the grid of rates of log_likelihood
    Column("log_likelihood", LargeBinary),
    Column("depth", Integer, nullable=False),
    Column("host", Text, nullable=False),
    Column("url", Text, nullable=False),
    # An index on the URL itself is impossible: PostgreSQL refuses keys above 2,704 bytes, and URLs reach 8,000.
    Column("url_digest", BigInteger, nullable=False),
    Column("request_fingerprint", LargeBinary, nullable=False),
    Column("request_fingerprinter", Text, nullable=False),
    Column("template", LargeBinary),
    Column("fingerprint", LargeBinary),
    Column("pending_fingerprint", LargeBinary),  # found, but not yet through callback and pipelines
    Column("recipe", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("moved_to", Text),
    Column("part", Integer, nullable=False, server_default=text("0")),  # of its site; `change_signals.part_number`
    # How many announcements visits found true and false: `crawlsched.planner.evidence.announcements`.
    _state("true_signals", Float(53), nullable=False, server_default=text("0")),
    _state("false_signals", Float(53), nullable=False, server_default=text("0")),
    # A digest of the request in `template`, by which most requests for the page are compared; 0: not known.
    _state("request_digest", BigInteger, nullable=False, server_default=text("0")),
    _state("marks", Integer, nullable=False, server_default=text("0")),  # `crawlsched.pages.marks`
    # 1: a request, a file or a sitemap stated the importance, so CRAWLSCHED_IMPORTANCE is not called.
    Column("importance_stated", SmallInteger, nullable=False, server_default=text("0")),
    # Estimates when the row was last written: changes per second with a 90 % interval; the probability that the copy
    # is fresh; precision and recall of the page's first source, NULL without a source.
    *[Column(name, Float(53)) for name in READABLE_COLUMNS],
    # The estimator of CRAWLSCHED_ESTIMATOR and its row; NULL for the posterior, whose row is log_likelihood.
    Column("estimator", Text),
    Column("estimator_state", LargeBinary),
    # No other index may begin with shard and collection. On a table that was not yet analysed, PostgreSQL would use it
    # to find one page, and read the whole collection.
    UniqueConstraint("request_fingerprint", "shard", "collection"),
    CheckConstraint(f"length(request_fingerprint) = {FINGERPRINT_SIZE}", name="request_fingerprint_size"),
    Index(None, "url_digest", "shard", "collection"),
)
#: The planner's columns of each page, in the order in which they are written.
STATE_COLUMNS = tuple(column.name for column in pages.columns if column.info)

#: The columns of each page that `Store.load` gives.
LOADED_COLUMNS = (*STATE_COLUMNS, "first_seen", "changed_at")

# In PostgreSQL the migration leaves out the same rows. It is not repeated here, or each command would load
# PostgreSQL's module.
_key = (pages.c[name] for name in ("shard", "collection", "page"))
Index("ix_pages_undelivered", *_key, sqlite_where=text("pending_fingerprint IS NOT NULL"))

# Digests and sketches of a page's earlier contents, by which a content that comes back is recognised.
page_traces = _table(
    "page_traces",
    {"page": BigInteger},
    Column("history", LargeBinary, nullable=False),  # digests of the last different contents, oldest first
    Column("text_sketch", LargeBinary, nullable=False),
    Column("block_sketch", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# The text of a page and the one before, where CRAWLSCHED_KEPT_TEXT_BYTES asks for them.
page_texts = _table(
    "page_texts",
    {"page": BigInteger},
    Column("seen_at", Float(53), nullable=False),
    Column("text", LargeBinary, nullable=False),  # compressed
    Column("before_seen_at", Float(53)),
    Column("before", LargeBinary),
)

#: The beginning of sites' names in the table of the templates' noise masks; no template's name begins so.
SITE = "//"

# The noise of a template's pages, and the texts that a site's pages share.
noise_masks = _table(
    "noise_masks",
    {"template": Text},
    Column("data", Text, nullable=False),  # JSON
)

# A page's request without its URL: callback, headers, cookies; many pages have the same.
request_templates = _table(
    "request_templates",
    {"digest": LargeBinary},
    Column("data", Text, nullable=False),  # JSON
)

# A visit, its evidence, and its outcome.
observations = _table(
    "observations",
    {"id": BigInteger},
    # The owning process chooses the id, so that a batch written twice counts once.
    Column("page", BigInteger, nullable=False),
    Column("time", Float(53), nullable=False),
    Column("elapsed", Float(53)),  # NULL: the first crawl
    Column("n_signals", Integer, nullable=False),
    Column("source", Integer, nullable=False),  # -1: none
    Column("changed", SmallInteger),  # NULL: nothing was learned
    Column("outcome", Text, nullable=False),
    Column("status", Integer),
    Column("size", BigInteger),
    Column("further", Text),  # JSON: (source, ChangeSignals) of every further source; NULL: there is none
    Column("changed_share", Float(53)),  # of the page's blocks; NULL: no change, or not known
    Column("similarity", Float(53)),  # of its text to the one before
    Column("time_since_modified", Float(53)),  # seconds, by an honest Last-Modified; NULL: not known
    Index(None, "shard", "collection", "time"),
    Index(None, "page", "shard", "collection", "time"),  # its time: the newest is found at once
    sqlite_with_rowid=False,
)

# The last date that a source stated for a page.
announcements = _table(
    "announcements",
    {"page": BigInteger, "source": Integer},
    Column("lastmod", Float(53)),  # the last one announced; NULL: named without one; below 0: a text_mark
    Column("n", BigInteger, nullable=False),  # how often it was seen to differ
    sqlite_with_rowid=False,
)

# The announcements of a page's sources, if it has several. The row of its first source has only how often and when that
# source announced; its other numbers stand in `pages`.
further_sources = _table(
    "further_sources",
    {"page": BigInteger, "source": Integer},
    Column("n_signals", Integer, nullable=False),  # since the last crawl
    Column("n_signals_total", BigInteger, nullable=False),
    Column("signalled_since", Float(53), nullable=False),
    Column("n_heard", BigInteger, nullable=False),  # also announcements that counted for another source
    Column("signalled_at", Float(53)),  # NULL: never
    # How many announcements visits found true and false; for the page's first source they stand in `pages`.
    Column("true_signals", Float(53), nullable=False, server_default=text("0")),
    Column("false_signals", Float(53), nullable=False, server_default=text("0")),
    sqlite_with_rowid=False,
)

# A sitemap, a feed or a sender of pings: when it is polled, and how far it can be trusted.
sources = _table(
    "sources",
    {"source": Integer},
    Column("kind", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("parent", Integer),
    Column("polled_at", Float(53)),
    Column("next_poll_at", Float(53)),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("fingerprint", LargeBinary),
    Column("n_entries", BigInteger, nullable=False),
    Column("problems", Text, nullable=False),  # JSON
    Column("quality", Text, nullable=False),  # JSON
    Column("hosts", Text),  # JSON: hosts whose robots.txt name it; NULL: none but its own
    Column("listed_lastmod", Float(53)),  # the date in the index above it
    Column("read_lastmod", Float(53)),  # that date when this source was last read
)

# The rest and delay that a host asked for, and counts of events there.
hosts = _table(
    "hosts",
    {"host": Text},
    Column("rest_until", Float(53), nullable=False),
    Column("crawl_delay", Float(53)),
    Column("robots_seen_at", Float(53)),
    Column("counts", Text, nullable=False),  # JSON
)

# The newest plan: threshold, priors and signal quality, which the next crawl begins with.
plans = _table(
    "plans",
    {"id": BigInteger},
    Column("made_at", Float(53), nullable=False),
    Column("data", Text, nullable=False),  # JSON
)


def _process() -> list[Column[Any]]:
    """Make the columns that describe a process."""
    return [
        Column("host", Text, nullable=False),
        Column("machine", Text, nullable=False),  # a pid can only be looked up on the same machine
        Column("pid", BigInteger, nullable=False),
        Column("process_started", Text, nullable=False),  # distinguishes the process from a later one with its pid
        Column("spider", Text, nullable=False),
    ]


# Which process owns the collection, or one shard of it, and the status that it wrote last.
leases = _table(
    "leases",
    {},
    Column("token", Text, nullable=False),
    *_process(),
    Column("started_at", Float(53), nullable=False),
    Column("heartbeat_at", Float(53), nullable=False),
    Column("released_at", Float(53)),
    Column("status", Text, nullable=False),  # JSON
    # Of a shard that several processes share. The token is then that of the member, a colon, and the epoch.
    Column("member", Text),  # the owner, until its row in `members` expires; NULL: none
    Column("epoch", BigInteger, nullable=False, server_default=text("0")),  # grows with each owner
    Column("ready", SmallInteger, nullable=False, server_default=text("0")),  # 0: its owner is still loading it
    Column("n_pages", BigInteger, nullable=False, server_default=text("0")),
)

# One row for each collection that processes share, with -1 for its shard; a change of a grant locks it first.
budgets = _table(
    "budgets",
    {},
    Column("n_shards", Integer, nullable=False),
    Column("rate", Float(53), nullable=False),  # requests per second of all members together
    Column("renewed_at", Float(53)),  # NULL: no member has joined yet
    Column("hold_until", Float(53)),  # until then no grant rises, and no member claims a shard
    Column("paused_since", Float(53)),
    Column("pass_since", Float(53)),  # the start of the present pass; NULL: there is none
)

# The processes that share a collection, with -1 for the shard.
members = _table(
    "members",
    {"token": Text},
    Column("number", BigInteger, nullable=False),  # of its last renewal
    Column("granted", Float(53), nullable=False),  # requests per second that it may send until its row expires
    Column("expires_at", Float(53), nullable=False),
    *_process(),
    Column("version", Text, nullable=False),
    Column("status", Text, nullable=False),  # JSON
)

# Findings of processes for shards of other processes; the owner deletes a row when it writes the result.
inbox = _table(
    "inbox",
    # The token of a member, and a number that it counts up, so that a row written twice is kept once.
    {"sender": Text, "number": BigInteger},
    Column("kind", Text, nullable=False),
    Column("data", Text, nullable=False),  # JSON
    Column("created_at", Float(53), nullable=False),
)

# URLs, patterns and hosts that were forgotten on purpose, and do not come back by themselves.
tombstones = _table(
    "tombstones",
    {"kind": Text, "digest": LargeBinary},  # url, pattern or host
    Column("value", Text, nullable=False),
    Column("created_at", Float(53), nullable=False),
)

# Commands of the command line to a running crawl, and their results.
commands = _table(
    "commands",
    {"id": BigInteger},
    Column("name", Text, nullable=False),
    Column("arguments", Text, nullable=False),  # JSON
    Column("created_at", Float(53), nullable=False),
    Column("done_at", Float(53)),
    Column("result", Text),  # JSON
    Index(None, "shard", "collection", "done_at"),
)

# Every change that the spider's callback and pipelines have finished with, written together with the page's
# fingerprint: if a crash undoes a delivery, its row is missing too, and the delivery is repeated. Rows for pages that
# vanish, fail or come back are written together with the page's state.
changes = _table(
    "changes",
    {"id": BigInteger},  # chosen by the owning process, in their order
    Column("page", BigInteger, nullable=False),
    Column("time", Float(53), nullable=False),  # of the delivery; without one, of the visit
    Column("kind", SmallInteger, nullable=False),  # of KINDS
    Column("observation", BigInteger),  # the visit that found it
    Index(None, "page", "shard", "collection"),
    sqlite_with_rowid=False,
)

# How far the webhook has read `changes`.
followers = _table(
    "followers",
    {"name": Text},
    Column("position", BigInteger, nullable=False),  # the last id that arrived
)

# A row a minute while a crawl runs, thinned out with age, from which curves are drawn.
samples = _table(
    "samples",
    {"time": BigInteger},
    *[Column(name, Float(53)) for name in FIGURES],
    sqlite_with_rowid=False,
)
