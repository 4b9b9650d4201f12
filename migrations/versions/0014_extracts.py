"""What each shard of a collection has learned, for the others."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
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


def downgrade() -> None:
    op.drop_table("extracts")
