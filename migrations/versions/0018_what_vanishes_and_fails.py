"""The change feed tells what vanishes, fails and comes back; samples, over how many pages freshness was taken."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # 0 and 1 mean what they meant.
    op.execute("ALTER TABLE changes RENAME COLUMN is_new TO kind")
    for name in ("wanted", "failing"):
        op.add_column("samples", sa.Column(name, sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    for name in ("failing", "wanted"):
        op.drop_column("samples", name)
    op.execute("DELETE FROM changes WHERE kind > 1")
    op.execute("ALTER TABLE changes RENAME COLUMN kind TO is_new")
