"""A name for the last change of a collection's pages, by which a snapshot is known to fit."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("collections", sa.Column("last_change", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("collections", "last_change")
