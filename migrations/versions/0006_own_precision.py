"""How many announcements of each page visits found true and false."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_COLUMNS = ("true_signals", "false_signals")


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column("pages", sa.Column(name, sa.Float(precision=53), server_default=sa.text("0"), nullable=False))


def downgrade() -> None:
    for name in reversed(_COLUMNS):
        op.drop_column("pages", name)
