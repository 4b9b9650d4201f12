"""What pages had heard of their neighbours when the last crawl ended."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("collections", sa.Column("neighbours", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column("collections", "neighbours")
