"""When the pass of a shared collection began."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("budgets", sa.Column("pass_since", sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    op.drop_column("budgets", "pass_since")
