"""Learned noise, traces of earlier contents, kept texts, and the size of a change."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "noise_masks",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "template", name=op.f("pk_noise_masks")),
    )
    op.create_table(
        "page_traces",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("page", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("history", sa.LargeBinary(), nullable=False),
        sa.Column("text_sketch", sa.LargeBinary(), nullable=False),
        sa.Column("block_sketch", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "page", name=op.f("pk_page_traces")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "page_texts",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("page", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seen_at", sa.Float(precision=53), nullable=False),
        sa.Column("text", sa.LargeBinary(), nullable=False),
        sa.Column("before_seen_at", sa.Float(precision=53), nullable=True),
        sa.Column("before", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("shard", "collection", "page", name=op.f("pk_page_texts")),
    )
    op.add_column("observations", sa.Column("changed_share", sa.Float(precision=53), nullable=True))
    op.add_column("observations", sa.Column("similarity", sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    op.drop_column("observations", "similarity")
    op.drop_column("observations", "changed_share")
    op.drop_table("page_texts")
    op.drop_table("page_traces")
    op.drop_table("noise_masks")
