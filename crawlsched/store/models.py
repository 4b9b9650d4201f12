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

#: Columns that make a page's compact rows readable for people and their SQL. They are written with `STATE_COLUMNS`,
#: and never read by crawlsched.
READABLE_COLUMNS = (
    "change_rate",
    "change_rate_low",
    "change_rate_high",
    "expected_freshness",
    "precision",
    "recall",
)

#: Digests and sketches of a page's earlier contents. They have a table of their own, since few visits change them.
TRACE_COLUMNS = ("history", "text_sketch", "block_sketch")

#: The figures of a row of `samples`. Counts cover the `seconds` before its time; other figures are of that time.
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
    """Make a table; `key` has the types of the key columns after shard and collection."""
    types = {"shard": Integer, "collection": Integer, **key}
    keys = (Column(name, kind, primary_key=True, autoincrement=False) for name, kind in types.items())
    return Table(name, metadata, *keys, *parts, **options)


# A collection is a named set of pages, by default the pages of one spider.
collections = _table(
    "collections",
    {},
    Column("name", Text, nullable=False),
    # In this order: the largest page number ever used, the largest change number ever used, and the largest number of a
    # change that was deleted by age.
    Column("pages_given", BigInteger),
    Column("changes_given", BigInteger),
    Column("changes_pruned", BigInteger),
    UniqueConstraint("shard", "name"),
)


def _state(name: str, kind: Any, **options: Any) -> Column[Any]:
    """Make a table's column that stores an array of `crawlsched.pages.Pages` or of the planner."""
    return Column(name, kind, info={"is_state": True}, **options)


# Each page's data, which a crawl reads when it begins, and writes at each visit.
pages = _table(
    "pages",
    {"page": BigInteger},
    # The shard's owner uses a page number only once. The page's row in the owner's arrays has another number.
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
    # The URL itself cannot have an index: PostgreSQL refuses keys above 2,704 bytes; URLs may have 8,000.
    Column("url_digest", BigInteger, nullable=False),
    Column("request_fingerprint", LargeBinary, nullable=False),
    Column("request_fingerprinter", Text, nullable=False),
    Column("template", LargeBinary),
    Column("fingerprint", LargeBinary),
    Column("pending_fingerprint", LargeBinary),  # of a content that is not yet delivered
    Column("recipe", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("moved_to", Text),
    Column("part", Integer, nullable=False, server_default=text("0")),  # `change_signals.part_number`
    # Counts of announcements that proved true, and false; see `crawlsched.planner.evidence.announcements`.
    _state("true_signals", Float(53), nullable=False, server_default=text("0")),
    _state("false_signals", Float(53), nullable=False, server_default=text("0")),
    # A digest of the page's request template, by which requests for the page are compared; 0: not known.
    _state("request_digest", BigInteger, nullable=False, server_default=text("0")),
    _state("marks", Integer, nullable=False, server_default=text("0")),  # `crawlsched.pages.marks`
    # 1: a request, a file or a sitemap has stated the importance, so CRAWLSCHED_IMPORTANCE is not called.
    Column("importance_stated", SmallInteger, nullable=False, server_default=text("0")),
    # Estimates at the time when the row was written: changes per second with a 90 % interval, and the probability that
    # the copy is fresh. The last two are precision and recall of the page's first source; NULL without a source.
    *[Column(name, Float(53)) for name in READABLE_COLUMNS],
    # The estimator of CRAWLSCHED_ESTIMATOR and its state; NULL for the posterior, whose state is log_likelihood.
    Column("estimator", Text),
    Column("estimator_state", LargeBinary),
    # No other index may begin with shard and collection. Before the table is analysed, PostgreSQL would use such an
    # index to find one page, and read the whole collection.
    UniqueConstraint("request_fingerprint", "shard", "collection"),
    CheckConstraint(f"length(request_fingerprint) = {FINGERPRINT_SIZE}", name="request_fingerprint_size"),
    Index(None, "url_digest", "shard", "collection"),
)
#: The columns of `Pages` and the planner, in the order in which they are written.
STATE_COLUMNS = tuple(column.name for column in pages.columns if column.info)

#: The columns of each page that `Store.load` returns.
LOADED_COLUMNS = (*STATE_COLUMNS, "first_seen", "changed_at")

# On PostgreSQL a migration makes this index with the same condition. The condition is not repeated here, since each
# command would then load PostgreSQL's module.
_key = (pages.c[name] for name in ("shard", "collection", "page"))
Index("ix_pages_undelivered", *_key, sqlite_where=text("pending_fingerprint IS NOT NULL"))

# Digests and sketches of a page's earlier contents, by which a return to an earlier content is recognised.
page_traces = _table(
    "page_traces",
    {"page": BigInteger},
    Column("history", LargeBinary, nullable=False),  # digests of the last different contents, oldest first
    Column("text_sketch", LargeBinary, nullable=False),
    Column("block_sketch", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# The text of a page and its earlier text, stored if CRAWLSCHED_KEPT_TEXT_BYTES is above 0.
page_texts = _table(
    "page_texts",
    {"page": BigInteger},
    Column("seen_at", Float(53), nullable=False),
    Column("text", LargeBinary, nullable=False),  # compressed
    Column("before_seen_at", Float(53)),
    Column("before", LargeBinary),
)

#: The prefix of sites' names in the table `noise_masks`; templates' names do not begin with it.
SITE = "//"

# The noise of a template's pages, and the texts that a site's pages share.
noise_masks = _table(
    "noise_masks",
    {"template": Text},
    Column("data", Text, nullable=False),  # JSON
)

# A page's request without its URL: callback, headers, cookies. Many pages share a template.
request_templates = _table(
    "request_templates",
    {"digest": LargeBinary},
    Column("data", Text, nullable=False),  # JSON
)

# A visit, its evidence, and its outcome.
observations = _table(
    "observations",
    {"id": BigInteger},
    # The owning process numbers visits, so that a batch written twice counts once.
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
    Column("similarity", Float(53)),  # of the new text and the text before
    Column("time_since_modified", Float(53)),  # seconds, by an honest Last-Modified; NULL: not known
    Index(None, "shard", "collection", "time"),
    Index(None, "page", "shard", "collection", "time"),  # with the time, so that a page's newest visit is found quickly
    sqlite_with_rowid=False,
)

# The last date that a source has stated for a page.
announcements = _table(
    "announcements",
    {"page": BigInteger, "source": Integer},
    Column("lastmod", Float(53)),  # the last announced date; NULL: announced without a date; below 0: a text_mark
    Column("n", BigInteger, nullable=False),  # how often a new date was seen
    sqlite_with_rowid=False,
)

# The announcements of a page's sources, if it has several. For the page's first source, this table has only the number
# and the dates of announcements; the other numbers of this source are in `pages`.
further_sources = _table(
    "further_sources",
    {"page": BigInteger, "source": Integer},
    Column("n_signals", Integer, nullable=False),  # since the last crawl
    Column("n_signals_total", BigInteger, nullable=False),
    Column("signalled_since", Float(53), nullable=False),
    Column("n_heard", BigInteger, nullable=False),  # includes announcements that counted for another source
    Column("signalled_at", Float(53)),  # NULL: never
    # Counts of announcements that proved true, and false; for the page's first source these are in `pages`.
    Column("true_signals", Float(53), nullable=False, server_default=text("0")),
    Column("false_signals", Float(53), nullable=False, server_default=text("0")),
    sqlite_with_rowid=False,
)

# Sitemaps, feeds and senders of pings: when they are polled, and how often their announcements are true.
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
    Column("hosts", Text),  # JSON: hosts whose robots.txt names the source; NULL: only its host
    Column("listed_lastmod", Float(53)),  # its lastmod in the sitemap index
    Column("read_lastmod", Float(53)),  # the value of listed_lastmod when this source was last read
)

# The pause and the delay that a host has asked for, and counts of events.
hosts = _table(
    "hosts",
    {"host": Text},
    Column("rest_until", Float(53), nullable=False),
    Column("crawl_delay", Float(53)),
    Column("robots_seen_at", Float(53)),
    Column("counts", Text, nullable=False),  # JSON
)

# The newest plan (threshold, priors and signal quality), with which the next crawl begins.
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
        Column("process_started", Text, nullable=False),  # a later process with the same pid has another value
        Column("spider", Text, nullable=False),
    ]


# The process that owns a collection, or a shard of it, and the last status that the process wrote.
leases = _table(
    "leases",
    {},
    Column("token", Text, nullable=False),
    *_process(),
    Column("started_at", Float(53), nullable=False),
    Column("heartbeat_at", Float(53), nullable=False),
    Column("released_at", Float(53)),
    Column("status", Text, nullable=False),  # JSON
    # For a shard of a shared collection. Its lease's token is the member's token, a colon, and the epoch.
    Column("member", Text),  # the owner, until its row in `members` expires; NULL: no owner
    Column("epoch", BigInteger, nullable=False, server_default=text("0")),  # one more with each new owner
    Column("ready", SmallInteger, nullable=False, server_default=text("0")),  # 0: its owner is still loading it
    Column("n_pages", BigInteger, nullable=False, server_default=text("0")),
)

# One row for each shared collection, with shard -1. A change of a grant locks this row first.
budgets = _table(
    "budgets",
    {},
    Column("n_shards", Integer, nullable=False),
    Column("rate", Float(53), nullable=False),  # requests per second of all members together
    Column("renewed_at", Float(53)),  # NULL: no member has joined yet
    Column("hold_until", Float(53)),  # before this time no grant rises, and no member claims a shard
    Column("paused_since", Float(53)),
    Column("pass_since", Float(53)),  # the start of the present pass; NULL: there is none
)

# The processes that share a collection, with shard -1.
members = _table(
    "members",
    {"token": Text},
    Column("number", BigInteger, nullable=False),  # the number of its last renewal
    Column("granted", Float(53), nullable=False),  # requests per second until the row expires
    Column("expires_at", Float(53), nullable=False),
    *_process(),
    Column("version", Text, nullable=False),
    Column("status", Text, nullable=False),  # JSON
)

# Findings of processes for shards of other processes. The shard's owner deletes a row when it writes the result.
inbox = _table(
    "inbox",
    # A member's token and the member's number of the row, so that a row written twice is stored once.
    {"sender": Text, "number": BigInteger},
    Column("kind", Text, nullable=False),
    Column("data", Text, nullable=False),  # JSON
    Column("created_at", Float(53), nullable=False),
)

# URLs, patterns and hosts that a user has forgotten, and that the crawl does not add again.
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

# Changes with which the spider's callback and pipelines have finished. A row is written in the same transaction as the
# page's fingerprint, so after a crash a delivery without a row is repeated. Rows for pages that vanish, fail or recover
# are written with the page's state.
changes = _table(
    "changes",
    {"id": BigInteger},  # counted by the owning process
    Column("page", BigInteger, nullable=False),
    Column("time", Float(53), nullable=False),  # of the delivery or, if nothing was delivered, of the visit
    Column("kind", SmallInteger, nullable=False),  # of KINDS
    Column("observation", BigInteger),  # the visit that found it
    Index(None, "page", "shard", "collection"),
    sqlite_with_rowid=False,
)

# For each follower, such as the webhook, the last row of `changes` that it has received.
followers = _table(
    "followers",
    {"name": Text},
    Column("position", BigInteger, nullable=False),  # the last id that arrived
)

# A row for each minute of a crawl, thinned out with age; curves are drawn from these rows.
samples = _table(
    "samples",
    {"time": BigInteger},
    *[Column(name, Float(53)) for name in FIGURES],
    sqlite_with_rowid=False,
)
