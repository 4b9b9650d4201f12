"""Several pages of one URL, and what has been asked of a page beside its being kept fresh."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("pages", sa.Column("request_digest", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("pages", sa.Column("marks", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column("pages", sa.Column("variant", sa.Text(), nullable=True))
    op.create_index(
        "ix_pages_variants",
        "pages",
        ["shard", "collection", "page"],
        sqlite_where=sa.text("variant IS NOT NULL"),
        postgresql_where=sa.text("variant IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_pages_variants", table_name="pages")
    for name in ("variant", "marks", "request_digest"):
        op.drop_column("pages", name)
