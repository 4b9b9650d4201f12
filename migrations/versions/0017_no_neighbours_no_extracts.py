"""What pages had heard of their neighbours, and what shards had learned for each other, is not kept any more."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("extracts")
    op.drop_column("collections", "neighbours")


def downgrade() -> None:
    op.add_column("collections", sa.Column("neighbours", sa.LargeBinary(), nullable=True))
    op.create_table(
        "extracts",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.Column("grid", sa.Text(), nullable=False),
        sa.Column("n_pages", sa.BigInteger(), nullable=False),
        sa.Column("log_likelihood", sa.LargeBinary(), nullable=False),
        sa.Column("n_true", sa.Float(precision=53), nullable=False),
        sa.Column("n_judged", sa.Float(precision=53), nullable=False),
        sa.Column("neighbour_losses", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("shard", "collection", name=op.f("pk_extracts")),
    )
