"""The feed of delivered changes, how far each follower has read it, a history of figures, and first pages by view."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_FIGURES = (
    *("seconds", "bandwidth", "threshold", "expected_freshness", "freshness_error", "pages"),
    *("used", "idle", "no_free_host", "missed", "visits", "errors", "changes", "delivered", "undelivered", "withheld"),
)


def _key() -> tuple[sa.Column, sa.Column]:
    return (
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
    )


def upgrade() -> None:
    for name in ("changes_given", "changes_pruned"):
        op.add_column("collections", sa.Column(name, sa.BigInteger(), nullable=True))
    op.create_table(
        "changes",
        *_key(),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("is_new", sa.SmallInteger(), nullable=False),
        sa.Column("observation", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("shard", "collection", "id", name=op.f("pk_changes")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_changes_page_shard_collection"), "changes", ["page", "shard", "collection"])
    op.create_table(
        "followers",
        *_key(),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "name", name=op.f("pk_followers")),
    )
    op.create_table(
        "samples",
        *_key(),
        sa.Column("time", sa.BigInteger(), autoincrement=False, nullable=False),
        *[sa.Column(name, sa.Float(precision=53), nullable=True) for name in _FIGURES],
        sa.PrimaryKeyConstraint("shard", "collection", "time", name=op.f("pk_samples")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "first_pages",
        *_key(),
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "view", "place", name=op.f("pk_first_pages")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    for table in ("first_pages", "samples", "followers", "changes"):
        op.drop_table(table)
    for name in ("changes_pruned", "changes_given"):
        op.drop_column("collections", name)
