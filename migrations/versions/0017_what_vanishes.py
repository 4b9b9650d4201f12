"""The change feed tells what vanishes, fails and comes back, too."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # 0 and 1 mean what they meant.
    op.execute("ALTER TABLE changes RENAME COLUMN is_new TO kind")


def downgrade() -> None:
    op.execute("DELETE FROM changes WHERE kind > 1")
    op.execute("ALTER TABLE changes RENAME COLUMN kind TO is_new")
