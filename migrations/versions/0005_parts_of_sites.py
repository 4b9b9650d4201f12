"""The part of its site that a page is in, by which what announcements are worth is told apart."""

from urllib.parse import urlsplit
from zlib import crc32

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_ROWS_AT_ONCE = 5_000


def _part(url: str) -> int:
    # As `crawlsched.change_signals.part_number` was then.
    try:
        directories = urlsplit(url).path.split("/")[1:-1]
    except ValueError:
        return 0
    part = f"/{directories[0]}/" if directories else "/"
    return 0 if part == "/" else crc32(part.encode("utf-8", "replace")) % 0xFFFF + 1


def upgrade() -> None:
    op.add_column("pages", sa.Column("part", sa.Integer(), server_default=sa.text("0"), nullable=False))
    integer = sa.Integer
    pages = sa.table(
        "pages",
        *(sa.column(name, integer) for name in ("shard", "collection", "page", "part")),
        sa.column("url", sa.Text),
    )
    key = sa.tuple_(pages.c.shard, pages.c.collection, pages.c.page)
    names = ("of_shard", "of_collection", "of_page")
    update = pages.update().where(key == sa.tuple_(*map(sa.bindparam, names))).values(part=sa.bindparam("new_part"))
    connection, last = op.get_bind(), (-1, -1, -1)
    select = sa.select(pages.c.shard, pages.c.collection, pages.c.page, pages.c.url)
    while rows := connection.execute(select.where(key > last).order_by(*key.clauses).limit(_ROWS_AT_ONCE)).all():
        last = tuple(rows[-1][:3])
        found = [dict(zip((*names, "new_part"), (*own, _part(url)), strict=True)) for *own, url in rows]
        if found := [row for row in found if row["new_part"]]:
            connection.execute(update, found)


def downgrade() -> None:
    op.drop_column("pages", "part")
