"""How many announcements of each further source of a page visits found true and false."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_COLUMNS = ("true_signals", "false_signals")


def upgrade() -> None:
    for name in _COLUMNS:
        column = sa.Column(name, sa.Float(precision=53), server_default=sa.text("0"), nullable=False)
        op.add_column("further_sources", column)


def downgrade() -> None:
    for name in reversed(_COLUMNS):
        op.drop_column("further_sources", name)
