"""That pages of a collection have changed is not noted any more: only the snapshot file asked for it."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("collections", "last_change")


def downgrade() -> None:
    op.add_column("collections", sa.Column("last_change", sa.Text(), nullable=True))
