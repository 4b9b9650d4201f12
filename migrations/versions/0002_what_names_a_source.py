"""Who names a source: hosts whose robots.txt do, and the date that the index above it states."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sources", sa.Column("hosts", sa.Text(), nullable=True))
    op.add_column("sources", sa.Column("listed_lastmod", sa.Float(precision=53), nullable=True))
    op.add_column("sources", sa.Column("read_lastmod", sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    for column in ("hosts", "listed_lastmod", "read_lastmod"):
        op.drop_column("sources", column)
