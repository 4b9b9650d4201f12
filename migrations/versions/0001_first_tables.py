"""The tables of version 0.1."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "announcements",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("page", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("source", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("lastmod", sa.Float(precision=53), nullable=True),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "page", "source", name=op.f("pk_announcements")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "collections",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", name=op.f("pk_collections")),
        sa.UniqueConstraint("shard", "name", name=op.f("uq_collections_shard_name")),
    )
    op.create_table(
        "commands",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("done_at", sa.Float(precision=53), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("shard", "collection", "id", name=op.f("pk_commands")),
    )
    op.create_index(
        op.f("ix_commands_shard_collection_done_at"), "commands", ["shard", "collection", "done_at"], unique=False
    )

    op.create_table(
        "hosts",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("rest_until", sa.Float(precision=53), nullable=False),
        sa.Column("crawl_delay", sa.Float(precision=53), nullable=True),
        sa.Column("robots_seen_at", sa.Float(precision=53), nullable=True),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "host", name=op.f("pk_hosts")),
    )
    op.create_table(
        "leases",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("process_started", sa.Text(), nullable=False),
        sa.Column("spider", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Float(precision=53), nullable=False),
        sa.Column("heartbeat_at", sa.Float(precision=53), nullable=False),
        sa.Column("released_at", sa.Float(precision=53), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", name=op.f("pk_leases")),
    )
    op.create_table(
        "observations",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("elapsed", sa.Float(precision=53), nullable=True),
        sa.Column("n_signals", sa.Integer(), nullable=False),
        sa.Column("source", sa.Integer(), nullable=False),
        sa.Column("changed", sa.SmallInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("shard", "collection", "id", name=op.f("pk_observations")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_observations_page_shard_collection_time"),
        "observations",
        ["page", "shard", "collection", "time"],
        unique=False,
    )
    op.create_index(
        op.f("ix_observations_shard_collection_time"), "observations", ["shard", "collection", "time"], unique=False
    )

    op.create_table(
        "pages",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("page", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("importance", sa.Float(precision=53), nullable=False),
        sa.Column("crawled_at", sa.Float(precision=53), nullable=True),
        sa.Column("first_seen", sa.Float(precision=53), nullable=False),
        sa.Column("changed_at", sa.Float(precision=53), nullable=True),
        sa.Column("not_before", sa.Float(precision=53), nullable=False),
        sa.Column("n_crawls", sa.BigInteger(), nullable=False),
        sa.Column("n_changes", sa.BigInteger(), nullable=False),
        sa.Column("n_errors", sa.SmallInteger(), nullable=False),
        sa.Column("n_signals", sa.Integer(), nullable=False),
        sa.Column("n_signals_total", sa.BigInteger(), nullable=False),
        sa.Column("signalled_since", sa.Float(precision=53), nullable=True),
        sa.Column("source", sa.Integer(), nullable=False),
        sa.Column("grid", sa.Text(), nullable=True),
        sa.Column("log_likelihood", sa.LargeBinary(), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("url_digest", sa.BigInteger(), nullable=False),
        sa.Column("request_fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("request_fingerprinter", sa.Text(), nullable=False),
        sa.Column("template", sa.LargeBinary(), nullable=True),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=True),
        sa.Column("pending_fingerprint", sa.LargeBinary(), nullable=True),
        sa.Column("recipe", sa.Text(), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("moved_to", sa.Text(), nullable=True),
        sa.CheckConstraint("length(request_fingerprint) = 20", name=op.f("ck_pages_request_fingerprint_size")),
        sa.PrimaryKeyConstraint("shard", "collection", "page", name=op.f("pk_pages")),
        sa.UniqueConstraint(
            "request_fingerprint", "shard", "collection", name=op.f("uq_pages_request_fingerprint_shard_collection")
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
        op.f("ix_pages_url_digest_shard_collection"), "pages", ["url_digest", "shard", "collection"], unique=False
    )

    op.create_table(
        "plans",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "id", name=op.f("pk_plans")),
    )
    op.create_table(
        "request_templates",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "digest", name=op.f("pk_request_templates")),
    )
    op.create_table(
        "sources",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("parent", sa.Integer(), nullable=True),
        sa.Column("polled_at", sa.Float(precision=53), nullable=True),
        sa.Column("next_poll_at", sa.Float(precision=53), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=True),
        sa.Column("n_entries", sa.BigInteger(), nullable=False),
        sa.Column("problems", sa.Text(), nullable=False),
        sa.Column("quality", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "source", name=op.f("pk_sources")),
    )
    op.create_table(
        "tombstones",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "kind", "digest", name=op.f("pk_tombstones")),
    )


def downgrade() -> None:
    for table in (
        "tombstones",
        "sources",
        "request_templates",
        "plans",
        "pages",
        "observations",
        "leases",
        "hosts",
        "commands",
        "collections",
        "announcements",
    ):
        op.drop_table(table)
