"""Several sources of one page: what each of them has announced, and what visits heard of each."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("observations", sa.Column("further", sa.Text(), nullable=True))
    op.create_table(
        "further_sources",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("page", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("source", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("n_signals", sa.Integer(), nullable=False),
        sa.Column("n_signals_total", sa.BigInteger(), nullable=False),
        sa.Column("signalled_since", sa.Float(precision=53), nullable=False),
        sa.Column("n_heard", sa.BigInteger(), nullable=False),
        sa.Column("signalled_at", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("shard", "collection", "page", "source", name=op.f("pk_further_sources")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("further_sources")
    op.drop_column("observations", "further")
