"""The first tables: what 0021 begins with. Databases of earlier revisions were never released, and are refused."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = None
branch_labels = None
depends_on = None

# `tests.renewal_rule` is the same in Python, and a test holds the two against each other. One call, so that
# the budget's row is locked only while the server works, however slow or stopped the caller is.
_RENEW = """
CREATE FUNCTION crawlsched_renew(
    col integer, me text, num bigint, using_ double precision, wants double precision, claims integer[],
    lease double precision, about json, said text, at double precision, server double precision
) RETURNS TABLE (
    answer double precision, shards integer[], epochs bigint[], moment double precision, paused double precision
) LANGUAGE plpgsql AS $$
DECLARE
    budget budgets%ROWTYPE;
    mine members%ROWTYPE;
    moment_ double precision;
    may_rise boolean;
    use double precision;
    others double precision;
    granted_ double precision;
    vacant integer;
BEGIN
    SELECT * INTO budget FROM budgets b WHERE b.shard = -1 AND b.collection = col FOR UPDATE;
    moment_ := coalesce(at, extract(epoch FROM clock_timestamp()));
    SELECT * INTO mine FROM members m WHERE m.shard = -1 AND m.collection = col AND m.token = me;
    IF mine.number >= num THEN
        RETURN;
    END IF;
    IF coalesce(server, extract(epoch FROM pg_postmaster_start_time())) > budget.renewed_at THEN
        budget.hold_until := moment_ + lease;
    END IF;
    UPDATE budgets b SET renewed_at = moment_, hold_until = budget.hold_until WHERE b.shard = -1 AND b.collection = col;
    may_rise := budget.hold_until IS NULL OR moment_ >= budget.hold_until;
    use := CASE WHEN mine.expires_at > moment_ OR NOT may_rise THEN using_ ELSE 0 END;
    SELECT coalesce(sum(m.granted), 0) INTO others FROM members m
        WHERE m.shard = -1 AND m.collection = col AND m.token <> me AND m.expires_at > moment_;
    granted_ := greatest(0, least(wants, budget.rate - others));
    IF NOT may_rise THEN
        granted_ := least(granted_, use);
    END IF;
    INSERT INTO members (shard, collection, token, number, granted, expires_at, host, machine, pid, process_started,
            spider, version, status)
        VALUES (-1, col, me, num, greatest(use, granted_), moment_ + lease, about->>'host', about->>'machine',
            (about->>'pid')::bigint, about->>'process_started', about->>'spider', about->>'version', said)
        ON CONFLICT (shard, collection, token) DO UPDATE SET number = excluded.number, granted = excluded.granted,
            expires_at = excluded.expires_at, status = excluded.status;
    IF may_rise THEN
        -- A lease that its owner is just writing under is left for the next time, and never waited for.
        FOR vacant IN
            SELECT l.shard FROM leases l WHERE l.collection = col AND l.shard = ANY (claims) AND NOT EXISTS (
                SELECT 1 FROM members m WHERE m.shard = -1 AND m.collection = col AND m.token = l.member
                AND m.expires_at > moment_) ORDER BY l.shard FOR UPDATE OF l SKIP LOCKED
        LOOP
            UPDATE leases l SET member = me, epoch = l.epoch + 1, token = me || ':' || (l.epoch + 1), ready = 0,
                host = about->>'host', machine = about->>'machine', pid = (about->>'pid')::bigint,
                process_started = about->>'process_started', spider = about->>'spider', started_at = moment_,
                heartbeat_at = moment_, released_at = NULL
                WHERE l.collection = col AND l.shard = vacant;
        END LOOP;
    END IF;
    RETURN QUERY SELECT granted_, coalesce(array_agg(l.shard ORDER BY l.shard), '{}'),
        coalesce(array_agg(l.epoch ORDER BY l.shard), '{}'), moment_, budget.paused_since
        FROM leases l WHERE l.collection = col AND l.member = me;
END $$
"""


_FLOAT = sa.Float(precision=53)


def _key() -> tuple[sa.Column[int], sa.Column[int]]:
    return (
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
    )


def upgrade() -> None:
    op.create_table(
        "announcements",
        *_key(),
        sa.Column("page", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("source", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("lastmod", _FLOAT),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "page", "source", name="pk_announcements"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "budgets",
        *_key(),
        sa.Column("n_shards", sa.Integer(), nullable=False),
        sa.Column("rate", _FLOAT, nullable=False),
        sa.Column("renewed_at", _FLOAT),
        sa.Column("hold_until", _FLOAT),
        sa.Column("paused_since", _FLOAT),
        sa.Column("pass_since", _FLOAT),
        sa.PrimaryKeyConstraint("shard", "collection", name="pk_budgets"),
    )
    op.create_table(
        "changes",
        *_key(),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=False),
        sa.Column("time", _FLOAT, nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("observation", sa.BigInteger()),
        sa.PrimaryKeyConstraint("shard", "collection", "id", name="pk_changes"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_changes_page_shard_collection", "changes", ["page", "shard", "collection"], unique=False)
    op.create_table(
        "collections",
        *_key(),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("pages_given", sa.BigInteger()),
        sa.Column("changes_given", sa.BigInteger()),
        sa.Column("changes_pruned", sa.BigInteger()),
        sa.PrimaryKeyConstraint("shard", "collection", name="pk_collections"),
        sa.UniqueConstraint("shard", "name", name="uq_collections_shard_name"),
    )
    op.create_table(
        "commands",
        *_key(),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("created_at", _FLOAT, nullable=False),
        sa.Column("done_at", _FLOAT),
        sa.Column("result", sa.Text()),
        sa.PrimaryKeyConstraint("shard", "collection", "id", name="pk_commands"),
    )
    op.create_index(
        "ix_commands_shard_collection_done_at", "commands", ["shard", "collection", "done_at"], unique=False
    )
    op.create_table(
        "followers",
        *_key(),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "name", name="pk_followers"),
    )
    op.create_table(
        "further_sources",
        *_key(),
        sa.Column("page", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("source", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("n_signals", sa.Integer(), nullable=False),
        sa.Column("n_signals_total", sa.BigInteger(), nullable=False),
        sa.Column("signalled_since", _FLOAT, nullable=False),
        sa.Column("n_heard", sa.BigInteger(), nullable=False),
        sa.Column("signalled_at", _FLOAT),
        sa.Column("true_signals", _FLOAT, server_default=sa.text("0"), nullable=False),
        sa.Column("false_signals", _FLOAT, server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "page", "source", name="pk_further_sources"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "hosts",
        *_key(),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("rest_until", _FLOAT, nullable=False),
        sa.Column("crawl_delay", _FLOAT),
        sa.Column("robots_seen_at", _FLOAT),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "host", name="pk_hosts"),
    )
    op.create_table(
        "inbox",
        *_key(),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("created_at", _FLOAT, nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "sender", "number", name="pk_inbox"),
    )
    op.create_table(
        "leases",
        *_key(),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("process_started", sa.Text(), nullable=False),
        sa.Column("spider", sa.Text(), nullable=False),
        sa.Column("started_at", _FLOAT, nullable=False),
        sa.Column("heartbeat_at", _FLOAT, nullable=False),
        sa.Column("released_at", _FLOAT),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("member", sa.Text()),
        sa.Column("epoch", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("ready", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("n_pages", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", name="pk_leases"),
    )
    op.create_table(
        "members",
        *_key(),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("granted", _FLOAT, nullable=False),
        sa.Column("expires_at", _FLOAT, nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("process_started", sa.Text(), nullable=False),
        sa.Column("spider", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "token", name="pk_members"),
    )
    op.create_table(
        "noise_masks",
        *_key(),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "template", name="pk_noise_masks"),
    )
    op.create_table(
        "observations",
        *_key(),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=False),
        sa.Column("time", _FLOAT, nullable=False),
        sa.Column("elapsed", _FLOAT),
        sa.Column("n_signals", sa.Integer(), nullable=False),
        sa.Column("source", sa.Integer(), nullable=False),
        sa.Column("changed", sa.SmallInteger()),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("size", sa.BigInteger()),
        sa.Column("further", sa.Text()),
        sa.Column("changed_share", _FLOAT),
        sa.Column("similarity", _FLOAT),
        sa.Column("time_since_modified", _FLOAT),
        sa.PrimaryKeyConstraint("shard", "collection", "id", name="pk_observations"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_observations_page_shard_collection_time",
        "observations",
        ["page", "shard", "collection", "time"],
        unique=False,
    )
    op.create_index(
        "ix_observations_shard_collection_time", "observations", ["shard", "collection", "time"], unique=False
    )
    op.create_table(
        "page_texts",
        *_key(),
        sa.Column("page", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seen_at", _FLOAT, nullable=False),
        sa.Column("text", sa.LargeBinary(), nullable=False),
        sa.Column("before_seen_at", _FLOAT),
        sa.Column("before", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("shard", "collection", "page", name="pk_page_texts"),
    )
    op.create_table(
        "page_traces",
        *_key(),
        sa.Column("page", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("history", sa.LargeBinary(), nullable=False),
        sa.Column("text_sketch", sa.LargeBinary(), nullable=False),
        sa.Column("block_sketch", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "page", name="pk_page_traces"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pages",
        *_key(),
        sa.Column("page", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("importance", _FLOAT, nullable=False),
        sa.Column("crawled_at", _FLOAT),
        sa.Column("first_seen", _FLOAT, nullable=False),
        sa.Column("changed_at", _FLOAT),
        sa.Column("not_before", _FLOAT, nullable=False),
        sa.Column("n_crawls", sa.BigInteger(), nullable=False),
        sa.Column("n_changes", sa.BigInteger(), nullable=False),
        sa.Column("n_errors", sa.SmallInteger(), nullable=False),
        sa.Column("n_signals", sa.Integer(), nullable=False),
        sa.Column("n_signals_total", sa.BigInteger(), nullable=False),
        sa.Column("signalled_since", _FLOAT),
        sa.Column("source", sa.Integer(), nullable=False),
        sa.Column("grid", sa.Text()),
        sa.Column("log_likelihood", sa.LargeBinary()),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("url_digest", sa.BigInteger(), nullable=False),
        sa.Column("request_fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("request_fingerprinter", sa.Text(), nullable=False),
        sa.Column("template", sa.LargeBinary()),
        sa.Column("fingerprint", sa.LargeBinary()),
        sa.Column("pending_fingerprint", sa.LargeBinary()),
        sa.Column("recipe", sa.Text()),
        sa.Column("etag", sa.Text()),
        sa.Column("last_modified", sa.Text()),
        sa.Column("moved_to", sa.Text()),
        sa.Column("part", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("true_signals", _FLOAT, server_default=sa.text("0"), nullable=False),
        sa.Column("false_signals", _FLOAT, server_default=sa.text("0"), nullable=False),
        sa.Column("request_digest", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("marks", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("importance_stated", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("change_rate", _FLOAT),
        sa.Column("change_rate_low", _FLOAT),
        sa.Column("change_rate_high", _FLOAT),
        sa.Column("expected_freshness", _FLOAT),
        sa.Column("precision", _FLOAT),
        sa.Column("recall", _FLOAT),
        sa.Column("estimator", sa.Text()),
        sa.Column("estimator_state", sa.LargeBinary()),
        sa.CheckConstraint("length(request_fingerprint) = 20", name=op.f("ck_pages_request_fingerprint_size")),
        sa.PrimaryKeyConstraint("shard", "collection", "page", name="pk_pages"),
        sa.UniqueConstraint(
            "request_fingerprint", "shard", "collection", name="uq_pages_request_fingerprint_shard_collection"
        ),
    )
    op.create_index(
        "ix_pages_undelivered",
        "pages",
        ["shard", "collection", "page"],
        unique=False,
        sqlite_where=sa.text("pending_fingerprint IS NOT NULL"),
        postgresql_where=sa.text("pending_fingerprint IS NOT NULL"),
    )
    op.create_index(
        "ix_pages_url_digest_shard_collection", "pages", ["url_digest", "shard", "collection"], unique=False
    )
    op.create_table(
        "plans",
        *_key(),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("made_at", _FLOAT, nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "id", name="pk_plans"),
    )
    op.create_table(
        "request_templates",
        *_key(),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "digest", name="pk_request_templates"),
    )
    op.create_table(
        "samples",
        *_key(),
        sa.Column("time", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seconds", _FLOAT),
        sa.Column("expected_freshness", _FLOAT),
        sa.Column("freshness_error", _FLOAT),
        sa.Column("wanted", _FLOAT),
        sa.Column("used", _FLOAT),
        sa.Column("idle", _FLOAT),
        sa.Column("no_free_host", _FLOAT),
        sa.Column("missed", _FLOAT),
        sa.Column("visits", _FLOAT),
        sa.Column("errors", _FLOAT),
        sa.Column("changes", _FLOAT),
        sa.Column("delivered", _FLOAT),
        sa.PrimaryKeyConstraint("shard", "collection", "time", name="pk_samples"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sources",
        *_key(),
        sa.Column("source", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("parent", sa.Integer()),
        sa.Column("polled_at", _FLOAT),
        sa.Column("next_poll_at", _FLOAT),
        sa.Column("etag", sa.Text()),
        sa.Column("last_modified", sa.Text()),
        sa.Column("fingerprint", sa.LargeBinary()),
        sa.Column("n_entries", sa.BigInteger(), nullable=False),
        sa.Column("problems", sa.Text(), nullable=False),
        sa.Column("quality", sa.Text(), nullable=False),
        sa.Column("hosts", sa.Text()),
        sa.Column("listed_lastmod", _FLOAT),
        sa.Column("read_lastmod", _FLOAT),
        sa.PrimaryKeyConstraint("shard", "collection", "source", name="pk_sources"),
    )
    op.create_table(
        "tombstones",
        *_key(),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("created_at", _FLOAT, nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "kind", "digest", name="pk_tombstones"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_RENEW)
