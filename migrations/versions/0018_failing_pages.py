"""Over how many pages freshness was taken, and how many of them failed."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("wanted", "failing"):
        op.add_column("samples", sa.Column(name, sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    for name in ("failing", "wanted"):
        op.drop_column("samples", name)
