"""What is known of each page in plain columns, the grid of rates, and all that an estimator can be rebuilt from."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_READABLE = ("change_rate", "change_rate_low", "change_rate_high", "expected_freshness", "precision", "recall")


def upgrade() -> None:
    stated = sa.Column("importance_stated", sa.SmallInteger(), server_default=sa.text("0"), nullable=False)
    op.add_column("pages", stated)
    for name in _READABLE:
        op.add_column("pages", sa.Column(name, sa.Float(precision=53), nullable=True))
    op.add_column("pages", sa.Column("estimator", sa.Text(), nullable=True))
    op.add_column("pages", sa.Column("estimator_state", sa.LargeBinary(), nullable=True))
    op.add_column("observations", sa.Column("time_since_modified", sa.Float(precision=53), nullable=True))
    op.create_table(
        "rate_grids",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("grid", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("change_rate", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("shard", "collection", "grid", "position", name=op.f("pk_rate_grids")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("rate_grids")
    op.drop_column("observations", "time_since_modified")
    for name in ("estimator_state", "estimator", *reversed(_READABLE), "importance_stated"):
        op.drop_column("pages", name)
